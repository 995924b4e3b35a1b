# SPDX-License-Identifier: MIT
"""The shapes in which programs run, and what the lab application's recording is in each: the same ops, points, stages
and links, and no op has the requests of another process.

``python -m tests.lib.shapes LAB DISK DISK`` prints, for a virtual machine's shell, a line for each shape: ``shape NAME
AROUND-THE-RECORDER COMMAND...``.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lib.namespaces import PID_NAMESPACE

COUNT, WORKERS, DEPTH = 53, 2, 4
POINTS = ["client_submit", "queue_enter", "dequeue", "io_begin", "io_end", "client_reply"]
CONTAINER = [*PID_NAMESPACE]

OfOpline = Callable[..., "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What is around the recorder and around the program, the program's mode and shape, and how many there are."""

    recorder_in: Sequence[str] = ()
    program_in: Sequence[str] = ()
    mode: str = "direct"
    more: Sequence[str] = ()
    programs: int = 1

    def command(self, lab: str, disks: Sequence[str]) -> list[str]:
        """The programs, each on its disk, at once."""
        numbers = [str(number) for number in (COUNT, WORKERS, DEPTH)]
        each = [[*self.program_in, lab, self.mode, disk, *numbers, *self.more] for disk in disks[: self.programs]]
        return each[0] if len(each) == 1 else ["sh", "-c", " & ".join(map(shlex.join, each)) + " & wait"]


SHAPES = {
    "host": Shape(),
    "container, recorder outside": Shape(program_in=CONTAINER),
    "container, recorder inside": Shape(recorder_in=CONTAINER),
    "containers of two levels": Shape(recorder_in=CONTAINER, program_in=CONTAINER),
    "two containers": Shape(program_in=CONTAINER, programs=2),
    "prefork": Shape(more=["prefork"]),
    "double fork": Shape(more=["doublefork"]),
    "prefork in a container": Shape(program_in=CONTAINER, more=["prefork"]),
    "io_uring by a worker": Shape(mode="uring"),
    "RWF_NOWAIT": Shape(mode="nowait"),
    "two beside each other": Shape(programs=2),
}


def rows(opline: OfOpline, run: Path, query: str) -> list[dict[str, Any]]:
    """What `opline sql` finds."""
    done = opline("sql", run, query, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def check(opline: OfOpline, run: Path, shape: Shape, devs: Sequence[int]) -> None:
    """Asserts that the run is what the programs did. ``devs``: the numbers of their disks."""
    ops = rows(opline, run, "SELECT pid, key, complete, unattributed_ns FROM ops")
    assert len(ops) == shape.programs * COUNT and all(op["complete"] for op in ops)
    points = rows(
        opline, run, "SELECT op_id, list(point ORDER BY seq) AS points FROM transitions WHERE NOT aside GROUP BY op_id"
    )
    assert [row["points"] for row in points] == [POINTS] * len(ops)
    names = rows(opline, run, "SELECT DISTINCT stage FROM stages WHERE stage IN ('client', 'queue', 'worker', 'D2C')")
    assert len(names) == 4
    linked = rows(
        opline,
        run,
        """SELECT o.pid, r.dev, count(DISTINCT o.op_id) AS ops, count(*) AS links, list(DISTINCT l.evidence) AS how
        FROM ops o JOIN links l ON l.op_id = o.op_id JOIN requests r ON r.request_id = l.request_id GROUP BY ALL""",
    )
    assert {row["dev"] for row in linked} == set(devs[: shape.programs])
    assert len({row["pid"] for row in linked}) == shape.programs, "each process is one, whatever its namespace calls it"
    assert [(row["ops"], row["links"]) for row in linked] == [(COUNT, COUNT)] * shape.programs, linked
    if shape.mode != "uring":
        assert all("thread" in how for row in linked for how in row["how"])


def name_of(shape: str) -> str:
    """Its name as a file's."""
    return "shape-" + shape.replace(",", "").replace(" ", "-").lower()


if __name__ == "__main__":
    lab, *disks = sys.argv[1:]
    for name, shape in SHAPES.items():
        print(shlex.join(["shape", name_of(name), shlex.join(shape.recorder_in), *shape.command(lab, disks)]))
