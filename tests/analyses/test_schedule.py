# SPDX-License-Identifier: MIT
"""Coordinated omission: latencies since ops were due, where a schedule is known; never where none is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.lib.build_run import P, RunBuilder
from tests.lib.recorder import record_well

from opline_analyses.base.result_table import rendered
from opline_analyses.cli import main
from opline_analyses.client.client import parse_report
from opline_analyses.client.schedule import Corrected, Schedule, corrected, loop_lines
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection

ROOT = Path(__file__).resolve().parents[2]
MS = 1_000_000
EVERY = 10 * MS


def server(stalls: dict[int, int], ops: int = 1000, catches_up: bool = True, others: int = 0) -> RunBuilder:
    """One op is due each 10 ms and takes 1 ms, or what ``stalls`` says; one is in flight, late ones begin at once."""
    run, free, shift = RunBuilder(), 0, 0
    for n in range(ops):
        begin = max(EVERY * n + shift, free)
        if not catches_up:
            shift = begin - EVERY * n
        free = begin + stalls.get(n, MS)
        run.op([P("begin", begin), P("end", free)])
    for n in range(others):
        run.op([P("begin", 7 * MS * n, tid=55), P("end", 7 * MS * n + 100, tid=55)])
    return run


def of(run: RunBuilder, path: Path) -> Corrected:
    opened = open_tables(run.write(path))
    select_counted(opened, Selection(), tainted=False)
    found = corrected(opened, Schedule(EVERY, "test"))
    assert found is not None
    return found


def hdr(latencies: list[int], every: int) -> list[int]:
    """HdrHistogram's recordValueWithExpectedInterval, as its documentation has it."""
    values = []
    for latency in latencies:
        values.append(latency)
        missing = latency - every
        while missing >= every:
            values.append(missing)
            missing -= every
    return sorted(values)


def test_ops_that_were_due_in_a_stall_count_from_there(tmp_path: Path) -> None:
    found = of(server({300: 500 * MS, 700: 200 * MS}), tmp_path)
    since, free = [], 0
    for n in range(1000):
        free = max(EVERY * n, free) + {300: 500 * MS, 700: 200 * MS}.get(n, MS)
        since.append(free - EVERY * n)
    since.sort()
    assert found.recorded == {"p50": MS, "p99": MS, "p99.9": 200 * MS}
    assert found.due == {"p50": since[499], "p99": since[989], "p99.9": since[998]}
    values = hdr([MS] * 998 + [200 * MS, 500 * MS], EVERY)
    assert found.hdr == {
        name: values[-int(-q * len(values) // 1) - 1] for name, q in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
    }
    assert found.late_ns == 490 * MS
    text = "\n".join(rendered(loop_lines(1, found)))
    assert "schedule: one op each 10 ms (test); the latest begins 490 ms late" in text
    assert "closed loop" not in text


def test_a_client_that_skips_what_it_missed_has_no_such_schedule(tmp_path: Path) -> None:
    found = of(server({300: 500 * MS}, catches_up=False), tmp_path)
    assert found.due is None
    assert found.hdr is not None
    assert "it never caught up: the last ops begin 490 ms late" in "\n".join(rendered(loop_lines(None, found)))


def test_threads_that_begin_few_ops_have_none(tmp_path: Path) -> None:
    found = of(server({300: 500 * MS}, others=50), tmp_path)
    assert (found.threads, found.late_ns) == (1, 490 * MS)


def test_several_in_flight_are_not_hdrhistograms(tmp_path: Path) -> None:
    run = RunBuilder()
    for n in range(100):
        run.op([P("begin", EVERY * n), P("end", EVERY * n + 15 * MS)])
    found = of(run, tmp_path)
    assert (found.hdr, found.late_ns) == (None, 0)
    assert found.due == found.recorded


def test_without_a_schedule_nothing_is_corrected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(server({300: 500 * MS}).write(tmp_path / "run"))
    for command in ("why", "coverage"):
        assert main([command, run]) == 0
        assert "schedule:" not in capsys.readouterr().out
        assert main([command, run, "--every", "10ms"]) == 0
        assert "schedule: one op each 10 ms (--every)" in capsys.readouterr().out
        assert main([command, run, "--every", "soon"]) == 2
        assert "--every soon: not a duration" in capsys.readouterr().err


def test_fios_rate_is_a_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = server({}).write(tmp_path / "run")
    argv = ["fio", "--rate_iops=100", "job.fio"]
    (run / "recording.json").write_text(json.dumps({"schema": "opline recording 1", "command": {"argv": argv}}))
    assert main(["why", str(run)]) == 0
    assert "schedule: one op each 10 ms (--rate_iops=100)" in capsys.readouterr().out


@pytest.mark.live
def test_it_is_what_the_benchmark_says_itself(tmp_path: Path) -> None:
    """The demo store at a rate, with stalls: its own latencies since due against those of the trace."""
    opline = [sys.executable, "-m", "opline_analyses"]
    store = [str(ROOT / "examples" / "demo-store" / "run"), "--qd", "4", "--ops", "2000", "--rate", "1000"]
    store += ["--inject", "worker:100000:0.001", "--json", str(tmp_path / "results.json")]
    record = [*opline, "record", "-o", str(tmp_path / "run"), "--model", "demo", "--", *store]
    record_well(record, stdout=subprocess.DEVNULL, timeout=120)
    command = [*opline, "coverage", str(tmp_path / "run"), "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout)["schedule"]
    text = (tmp_path / "results.json").read_text()
    report, truth = parse_report(text), json.loads(text)["since_due_ns"]
    assert report is not None
    assert report.rate == 1000
    assert np.isclose(found["schedule"]["every_ns"], MS)
    if found["due"] is None:  # a busy machine's last ops are late, too
        assert found["behind_ns"] > MS
        return
    assert found["due"]["p50"] == pytest.approx(truth["p50"], abs=0.1 * MS, rel=0.02)
    assert found["due"]["p99"] == pytest.approx(truth["p99"], rel=0.03)
    assert found["recorded"]["p99"] < found["due"]["p99"]
