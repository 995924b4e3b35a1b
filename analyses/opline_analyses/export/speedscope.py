# SPDX-License-Identifier: MIT
"""speedscope's JSON (https://www.speedscope.app/file-format-schema.json, version 1.25): a profile per class of ops.

A sample is a stage of an op: its stack the thread's name, then the stage; its weight the stage's nanoseconds. They
follow each other as the ops begin and as an op meets its stages, what no stage claims at an op's end: the view "time
order" shows one op after the other, "left heavy" the sums. The weights of a profile sum to the latency of its ops.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import opline
from opline.scratch import scratch
from opline.talk import passing, shown
from opline_analyses.export.json_list import write_list
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

_CHUNK_OPS = 16_384
_OPS = (
    "SELECT op_id FROM ops SEMI JOIN counted USING (op_id) WHERE class IS NOT DISTINCT FROM ? ORDER BY begin_ns, op_id"
)
_PARTS = """
    SELECT comm, stage, duration_ns FROM (
        SELECT c.place, coalesce(o.comm, '?') AS comm, s.seq, s.stage, s.duration_ns
        FROM stages s JOIN chunk c USING (op_id) JOIN ops o USING (op_id)
        WHERE s.op_id BETWEEN {low} AND {high} AND o.op_id BETWEEN {low} AND {high} AND s.duration_ns > 0
        UNION ALL
        SELECT c.place, coalesce(o.comm, '?'), NULL, 'unattributed', o.unattributed_ns
        FROM ops o JOIN chunk c USING (op_id) WHERE o.op_id BETWEEN {low} AND {high} AND o.unattributed_ns > 0)
    ORDER BY place, seq NULLS LAST"""


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


def _parts(run: Run, op_class: str | None) -> Iterator[tuple[str, str, int]]:
    """Thread, stage and ns of each part of the class's ops that count; some thousand ops at a time."""
    found = run.con.execute(_OPS, [op_class]).fetchnumpy()["op_id"]
    for first in passing(range(0, len(found), _CHUNK_OPS)):
        ids = found[first : first + _CHUNK_OPS]
        some = "SELECT unnest(?::BIGINT[]) AS op_id, unnest(range(?)) AS place"
        run.con.execute(f"CREATE OR REPLACE TEMP TABLE chunk AS {some}", [ids.tolist(), len(ids)])
        yield from run.rows(_PARTS.format(low=ids.min(), high=ids.max()))


def _profile(run: Run, op_class: str | None, out: BinaryIO, frames: Frames, weights: BinaryIO) -> None:
    """The members of a profile behind its name. ``weights``: an empty file that keeps them meanwhile."""
    total = 0

    def samples() -> Iterator[str]:
        nonlocal total
        for comm, stage, ns in _parts(run, op_class):
            weights.write(b"%s%d" % (b",\n" if total else b"[\n", ns))
            total += ns
            yield f"[{frames.number(comm)}, {frames.number(stage)}]"

    out.write(b'"samples": ')
    write_list(out, samples())
    weights.write(b"\n]" if total else b"[\n]")
    weights.seek(0)
    out.write(b', "weights": ')
    shutil.copyfileobj(weights, out)
    out.write(f', "startValue": 0, "endValue": {total}'.encode())


def _profiles(run: Run, out: BinaryIO, frames: Frames) -> None:
    classes = run.rows("SELECT DISTINCT class FROM ops SEMI JOIN counted USING (op_id) WHERE latency_ns > 0 ORDER BY 1")
    with scratch("speedscope") as folder:
        for number, (op_class,) in enumerate(classes):
            name = json.dumps(shown(op_class) if op_class is not None else "ops without a class")
            out.write(f'{"," if number else ""}\n{{"type": "sampled", "name": {name}, "unit": "nanoseconds", '.encode())
            with (Path(folder) / "weights").open("w+b") as weights:
                _profile(run, op_class, out, frames, weights)
            out.write(b"}")


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the ops that count, as in `opline stages`; gives their number."""
    ops, _, _ = select_counted(run, which, False)
    frames = Frames()
    out.write(f'{json.dumps(about(run))[:-1]}, "profiles": ['.encode())
    _profiles(run, out, frames)
    out.write(f'], "shared": {{"frames": {json.dumps(frames.all())}}}}}\n'.encode())
    return ops
