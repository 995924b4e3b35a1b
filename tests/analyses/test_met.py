# SPDX-License-Identifier: MIT
"""`opline ops --behind`: at which other ops an op's threads were meanwhile, against a walk over all points."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Callable

import pytest
from tests.lib.recorded import RunOf

from opline_analyses.base.result_table import rendered
from opline_analyses.ops.met import MOST, met, met_list
from opline_analyses.ops.oplist import read_ops
from opline_analyses.runs.run import Run, open_tables
from opline_analyses.runs.selection import Selection


def walked(run: Run, op_id: int) -> dict[tuple[int, int], int]:
    """(stage, other op) → ns, piece by piece."""
    points = defaultdict(list)
    for tid, ts_ns, other in run.rows("SELECT tid, ts_ns, op_id FROM transitions ORDER BY ts_ns, op_id, seq"):
        points[tid].append((ts_ns, other))
    found: defaultdict[tuple[int, int], int] = defaultdict(int)
    columns = "seq, tid, begin_ns, begin_ns + duration_ns"
    for seq, tid, begin, end in run.rows(f"SELECT {columns} FROM stages WHERE op_id = ? AND tid IS NOT NULL", (op_id,)):
        for (at, one), (until, other) in zip(points[tid], points[tid][1:], strict=False):
            covered = min(until, end) - max(at, begin)
            if one == other != op_id and covered > 0:
                found[seq, one] += covered
    return dict(found)


@pytest.mark.parametrize("name", ["demo-qd4", "ctf-deb12-uprobes-qd16"])
def test_each_piece_is_one_between_two_points_of_another_op(run_of: RunOf, name: str) -> None:
    run, behind = open_tables(run_of(name).path), 0
    slowest = [op for (op,) in run.rows("SELECT op_id FROM ops WHERE complete ORDER BY latency_ns DESC LIMIT 12")]
    for op in read_ops(run, Selection(f"o.op_id IN ({', '.join(map(str, slowest))})"), with_blocks=False):
        found = met(run, op)
        assert {(m.seq, m.op_id): m.ns for m in found if m.ns} == walked(run, op.op_id)
        assert [m.seq for m in found] == sorted(m.seq for m in found)
        assert len(list(rendered(met_list(found)))) == (2 + min(len(found), MOST) + (len(found) > MOST) if found else 0)
        behind += bool(found)
    assert behind > 6, "threads that several ops share make them wait"


def test_it_is_printed_when_asked_for(run_of: RunOf, opline: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    run = run_of("demo-qd4").path
    asked = ["ops", run, "--slowest", "1"]
    text = opline(*asked, "--behind").stdout
    assert "behind other ops:\n" in text and all(len(line) <= 80 for line in text.splitlines())
    assert "behind other ops" not in opline(*asked).stdout
    (op,) = map(json.loads, opline(*asked, "--behind", "--json").stdout.splitlines())
    assert op["behind"] and all(piece["op_id"] != op["op_id"] for piece in op["behind"])
    assert "behind other ops:\n" in opline("ops", run, "--op", str(op["op_id"])).stdout
