# SPDX-License-Identifier: MIT
"""The line that says what a recording has of other programs."""

from __future__ import annotations

from opline.population import Population
from opline_analyses.runs.not_yours import left_out_line


def test_processes_without_a_name_are_not_said_to_be_elsewhere() -> None:
    """The trace has no thread of such I/Os: their first records are in a chunk that was removed."""
    others = [
        {"pid": 17, "comm": "fio", "dev": 7 << 20, "ops": 0, "bios": 9},
        {"pid": -1, "comm": "", "dev": 7 << 20 | 2, "ops": 0, "bios": 28},
    ]
    line = left_out_line(Population(1, 0, 1, 0, 37, False, ["dd"], others), {7 << 20 | 2: "loop2"})
    assert line == (
        "not yours: 28 I/Os of processes that the trace does not name on loop2, 9 I/Os of 1 more process; "
        "--all-programs counts them"
    )
