# SPDX-License-Identifier: MIT
"""Waits as folded stacks: a line per stack, `class;stage;function;... nanoseconds` (the format: folded.py).

Of slow ops against typical ones a line has two numbers, as those of FlameGraph's difffolded.pl, which flamegraph.pl
draws: first the mean per op of the typical ones, then that of the slow ones.
"""

from __future__ import annotations

from typing import BinaryIO

from opline_analyses.export.folded import frame
from opline_analyses.export.wait_stacks import waited, waited_against_typical
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection
from opline_analyses.why.sets import Rule


def write(run: Run, which: Selection, out: BinaryIO, against: Rule | None = None) -> int:
    """Writes the stacks; gives the number of ops that count. ``against``: which of them are slow."""
    if against is None:
        ops, stacks = waited(run, which)
        lines = ((one.op_class, one.frames, str(one.ns)) for one in stacks)
    else:
        ops, both = waited_against_typical(run, which, against)
        lines = ((one.op_class, one.frames, f"{one.typical_ns} {one.slow_ns}") for one in both)
    for op_class, frames, numbers in lines:
        out.write(f"{';'.join(map(frame, (op_class, *frames)))} {numbers}\n".encode())
    return ops
