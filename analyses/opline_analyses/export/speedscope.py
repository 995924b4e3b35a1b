# SPDX-License-Identifier: MIT
"""speedscope's JSON (https://www.speedscope.app/file-format-schema.json, version 1.25): a profile per class of ops.

A sample is a stage of an op: its stack the thread's name, then the stage; its weight the stage's nanoseconds. They
follow each other as the ops begin and as an op meets its stages, what no stage claims at an op's end: the view "time
order" shows one op after the other, "left heavy" the sums. The weights of a profile sum to the latency of its ops.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import opline
from opline.talk import shown
from opline_analyses.export.json_list import write_list
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

ROWS = 65_536
_PARTS = """
    CREATE OR REPLACE TEMP VIEW parts AS
    SELECT o.class, o.begin_ns, o.op_id, coalesce(o.comm, '?') AS comm, s.seq, s.stage, s.duration_ns
    FROM stages s JOIN ops o USING (op_id) SEMI JOIN counted USING (op_id) WHERE s.duration_ns > 0
    UNION ALL
    SELECT class, begin_ns, op_id, coalesce(comm, '?'), NULL, 'unattributed', unattributed_ns
    FROM ops SEMI JOIN counted USING (op_id) WHERE unattributed_ns > 0"""
_ORDERED = """SELECT {columns} FROM parts WHERE class IS NOT DISTINCT FROM ?
    ORDER BY begin_ns, op_id, seq NULLS LAST"""


class Frames:
    """Names by number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        return self._numbers.setdefault(shown(name), len(self._numbers))

    def all(self) -> list[dict[str, str]]:
        return [{"name": name} for name in self._numbers]


def about(run: Run) -> dict[str, Any]:
    """The file's head."""
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"opline@{opline.__version__}",
        "name": shown(run.given.name or str(run.given)),
    }


def _samples(run: Run, op_class: str | None, frames: Frames) -> Iterator[str]:
    found = run.con.execute(_ORDERED.format(columns="comm, stage"), [op_class])
    while rows := found.fetchmany(ROWS):
        for comm, stage in rows:
            yield f"[{frames.number(comm)}, {frames.number(stage)}]"


def _weights(run: Run, op_class: str | None) -> Iterator[str]:
    found = run.con.execute(_ORDERED.format(columns="duration_ns"), [op_class])
    while rows := found.fetchmany(ROWS):
        yield from (str(ns) for (ns,) in rows)


def _profiles(run: Run, out: BinaryIO, frames: Frames) -> None:
    run.con.execute(_PARTS)
    classes = run.rows("SELECT class, sum(duration_ns)::HUGEINT FROM parts GROUP BY class ORDER BY class")
    for number, (op_class, total) in enumerate(classes):
        name = json.dumps(shown(op_class) if op_class is not None else "ops without a class")
        head = f'"type": "sampled", "name": {name}, "unit": "nanoseconds", "startValue": 0, "endValue": {total}'
        out.write(f'{"," if number else ""}\n{{{head}, "samples": '.encode())
        write_list(out, _samples(run, op_class, frames))
        out.write(b', "weights": ')
        write_list(out, _weights(run, op_class))
        out.write(b"}")


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the ops that count, as in `opline stages`; gives their number."""
    ops, _, _ = select_counted(run, which, False)
    frames = Frames()
    out.write(f'{json.dumps(about(run))[:-1]}, "profiles": ['.encode())
    _profiles(run, out, frames)
    out.write(f'], "shared": {{"frames": {json.dumps(frames.all())}}}}}\n'.encode())
    return ops
