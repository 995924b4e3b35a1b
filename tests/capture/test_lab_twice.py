# SPDX-License-Identifier: MIT
"""The lab application, recorded by its LTTng tracepoints and by probes on its functions at once: the same ops, stages
and block requests, by the same model.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.block_capture import loop_device
from tests.lib.lab import build_lab
from tests.lib.recorded import LAB
from tests.lib.recorder import status

from opline.correlation import correlate
from opline.model import load_model

COUNT = 211
EVENTS = (
    "client_submit", "queue_enter", "dequeue", "io_begin", "io_end", "sync_begin", "sync_end", "client_reply",
)  # fmt: skip
FIELDS = '{ oid = "arg1:text16", op_id = "arg2", off = "arg3", len = "arg4:u32", aux = "arg5:s32" }'

Run = Callable[..., subprocess.CompletedProcess[str]]
Row = dict[str, object]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model, its events being hits of the functions of these names."""
    lines = [f'"hit:{name}" = {{ function = "lab_{name}", fields = {FIELDS} }}' for name in EVENTS]
    text = LAB.read_text().replace("lab:", "hit:")
    head, keys, rest = text.partition("[keys]")
    path = tmp_path_factory.mktemp("model") / "hit.toml"
    path.write_text("\n".join([head, "[probes]", 'program = "lab"', *lines, "", keys + rest]))
    return path


def _rows(opline: Run, run: Path, query: str) -> list[Row]:
    done = opline("sql", run, query, "--json")
    assert done.returncode == 0, done.stderr
    found: list[Row] = json.loads(done.stdout)
    return found


@pytest.mark.live
@pytest.mark.parametrize(("mode", "workers"), [("direct", 2), ("aio", 2), ("buffered", 1)])
def test_tracepoints_and_probes_give_the_same_ops_stages_and_requests(
    mode: str, workers: int, lab: Path, probes: Path, opline: Run, tmp_path: Path
) -> None:
    """Of several workers' syncs the order of two events a microsecond apart says which covers what: one worker
    there.
    """
    run = tmp_path / "run"
    with loop_device() as device:
        argv = ["record", "-o", run, "--model", probes, "--events", "lab:*", "--"]
        done = opline(*argv, lab, mode, device, str(COUNT), str(workers), "4")
    assert status(done) == 0, done.stderr
    runs = []
    for model in (LAB, probes):
        runs.append(tmp_path / model.stem)
        runs[-1].mkdir()
        correlate(run / "trace", load_model(str(model)), runs[-1], progress=False)
    points = """SELECT o.key, o.class, o.object, t.seq, t.point, t.tid, t.pid, t.comm, t.evidence, t.aside
        FROM ops o JOIN transitions t USING (op_id) ORDER BY o.key, t.seq"""
    stages = """SELECT o.key, s.stage, s.kind, count(*) AS n FROM ops o JOIN stages s USING (op_id)
        GROUP BY ALL ORDER BY ALL"""
    times = """SELECT o.key, t.point, t.ts_ns FROM ops o JOIN transitions t USING (op_id) ORDER BY o.key, t.seq"""
    links = "SELECT o.key, l.* EXCLUDE (op_id) FROM ops o JOIN links l USING (op_id) ORDER BY ALL"
    for query in (points, stages, links):
        by_tracepoints, by_probes = (_rows(opline, one, query) for one in runs)
        assert by_tracepoints == by_probes and by_probes, query
    both = zip(*(_rows(opline, one, times) for one in runs), strict=True)
    late_ns = [int(str(probe["ts_ns"])) - int(str(tracepoint["ts_ns"])) for tracepoint, probe in both]
    steps = 8 if mode == "buffered" else 6
    assert len(late_ns) == steps * COUNT and min(late_ns) >= 0, "the function is called after the tracepoint"
    linked = {row["key"] for row in _rows(opline, runs[1], links)}
    assert mode == "buffered" or len(linked) == COUNT
