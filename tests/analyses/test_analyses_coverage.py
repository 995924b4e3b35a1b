# SPDX-License-Identifier: MIT
"""Closing the loop: clients' reports (C1.12), coverage (C1.10), IOPS (C1.11), sanity laws, agreement of links."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
from tests.analyses.test_client_reports import NEW_READ
from tests.lib.build_run import P, Rq, RunBuilder
from tests.lib.client_logs import DEMO, bench_run, with_unknown

from opline_analyses.base.result_table import ResultTable, rendered
from opline_analyses.cli import main
from opline_analyses.client import checks
from opline_analyses.client.block_steps import block_steps
from opline_analyses.client.client_files import find_log, find_report
from opline_analyses.client.client_report import ClientReport
from opline_analyses.client.coverage import measure
from opline_analyses.client.coverage_text import PARTS, coverage_lines, part_rows
from opline_analyses.client.span import Span, client_span
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection, clients_classes, matching_classes, nearest_classes


def test_parts_sum_to_the_clients_mean(tmp_path: Path) -> None:
    opened = open_tables(with_unknown(bench_run()).write(tmp_path))
    found = measure(opened, Selection(), ClientReport("x", 50_000.0))
    assert (found.mean_ns, found.attributed_ns, found.unknown_ns) == (40_000, 30_000, 10_000)
    assert found.coverage == 0.6
    assert sum(p.mean_ns for p in found.parts() if p.level == 0) == pytest.approx(50_000)
    assert sum(found.by_kind.values()) == pytest.approx(found.attributed_ns)
    residual = [p.mean_ns for p in found.parts()][-3:]
    assert residual == [10_000, 10_000, 0]


def test_what_tainted_ops_add_to_the_clients_mean_is_not_outside_of_the_ops(
    tmp_path: Path,
) -> None:
    run = with_unknown(bench_run())
    run.op([P("a", 0), P("b", 340_000, stage="slow")], tainted=True)
    opened = open_tables(run.write(tmp_path))
    (everything,) = opened.row("SELECT avg(latency_ns) FROM ops WHERE complete")
    found = measure(opened, Selection(), ClientReport("x", everything + 10_000.0))
    assert found.tainted == 1 and found.mean_ns == 40_000 < everything
    parts = {p.name: p.mean_ns for p in found.parts()}
    assert parts["unknown: outside of the op's points"] == 10_000 and parts["residual"] == 20_000
    assert parts["added by tainted ops"] == pytest.approx(everything - 40_000)
    assert sum(p.mean_ns for p in found.parts() if p.level == 0) == pytest.approx(everything + 10_000)
    assert found.coverage == pytest.approx(0.6) and found.explained <= 0.6
    text = list(rendered(coverage_lines(found, ResultTable(PARTS, part_rows(found)), None, None, None)))
    assert any(line.startswith("tainted ops are in the client's mean and not in the stages") for line in text)
    without = measure(opened, Selection(), None)
    assert without.tainted_ns == 0 and sum(p.mean_ns for p in without.parts() if p.level == 0) == 40_000


def test_network_out_and_back_have_lines_of_their_own(tmp_path: Path) -> None:
    run = RunBuilder()
    run.op(
        [P("call", 0), P("received", 7, stage="to the server", kind="network"), P("sent", 17),
         P("reply", 20, stage="to the client", kind="network")]
    )  # fmt: skip
    for row in run.rows["transitions"]:
        row["pid"] = 2 if row["point"] in ("received", "sent") else run.rows["ops"][0]["pid"]
    opened = open_tables(run.write(tmp_path))
    found = measure(opened, Selection(), None)
    assert found.by_kind == {"work": 10, "network out": 7, "network back": 3}


def test_ops_of_other_classes_are_not_the_clients(tmp_path: Path) -> None:
    run = RunBuilder()
    for cls, n in (("pwrite64", 20), ("write", 3), ("aio write", 10), ("pread64", 4), ("openat", 1)):
        for _ in range(n):
            run.op([P("a", 0), P("b", 100)], op_class=cls)
    opened = open_tables(run.write(tmp_path))
    assert clients_classes(opened, Selection(), {"write": 20}) == ["pwrite64"]
    assert clients_classes(opened, Selection(), {"write": 30, "read": 4}) == ["aio write", "pread64", "pwrite64"]
    assert clients_classes(opened, Selection(), {"write": 50}) is None
    assert clients_classes(opened, Selection(), {}) == []


def test_block_io_of_the_whole_machine_is_a_programs_only_one_to_one() -> None:
    """A trim is a discard. Bios below a program's writes are other ops, though nearly as many (write-back)."""
    found = {"bio discard": 1501, "bio write": 2108, "io_uring read": 1948, "write": 159}
    assert matching_classes(found, {"trim": 1500}) == ["bio discard"]
    assert matching_classes(found, {"read": 1948}) == ["io_uring read"]
    assert matching_classes(found, {"read": 1948, "write": 2048}) is None
    assert nearest_classes(found, {"read": 1948, "write": 2048}) == []


def test_what_comes_before_a_ramps_end_is_not_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """fio counts the last two of three seconds; other reads of the program come before."""
    run = RunBuilder()
    for n in range(300):
        run.op([P("a", 10_000_000 * n), P("b", 10_000_000 * n + 50_000)], op_class="pread64")
    for n in range(20):
        run.op([P("a", 3_100_000_000 + n * 1000), P("b", 3_100_000_100 + n * 1000)], op_class="read")
    job = {"read": {"runtime": 2000, "io_bytes": 200 * 4096, "lat_ns": {"N": 200, "mean": 51_000.0}}}
    path = run.write(tmp_path / "run")
    for given in ({"job options": {"ramp_time": "1"}}, {"job options": {"ramp_time": "1000ms"}}):
        (path / "fio.json").write_text(json.dumps({"jobs": [job | given]}))
        assert main(["coverage", str(path)]) == 0
        out, err = capfd.readouterr()
        assert "the client's figures are about pread64" in err
        assert "(it counts after a ramp of 1 s): 100, left out." in err
        assert "pass  IOPS: 200 completions / 2 s = 100.0, client 100.0: +0.00 %" in " ".join(out.split("\n      "))


def test_bytes_are_compared_per_op(tmp_path: Path) -> None:
    opened = open_tables(bench_run().write(tmp_path))
    opened.con.execute("CREATE TEMP VIEW ops AS SELECT * REPLACE (4096 AS length_bytes) FROM memory.main.ops")
    select_counted(opened, Selection(), tainted=False)
    assert checks.bytes_moved(opened, ClientReport("x", 1.0, 10, bytes=40960)).passed is True
    assert checks.bytes_moved(opened, ClientReport("x", 1.0, 10, bytes=81920)).passed is False
    assert checks.bytes_moved(opened, ClientReport("x", 1.0)).passed is None


def test_stages_that_leave_a_gap_are_not_in_order(tmp_path: Path) -> None:
    run = bench_run()
    opened = open_tables(run.write(tmp_path / "a"))
    select_counted(opened, Selection(), tainted=False)
    assert checks.chain(opened).passed is True
    run.rows["stages"][1]["begin_ns"] += 1
    opened = open_tables(run.write(tmp_path / "b"))
    select_counted(opened, Selection(), tainted=False)
    assert (checks.chain(opened).passed, checks.chain(opened).numbers["bad"]) == (False, 2)


def test_found_in_the_recording(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = with_unknown(bench_run()).write(tmp_path / "run")
    (path / "work").mkdir()
    (path / "work" / "out.json").write_text(json.dumps(DEMO))
    (path / "work" / "log.csv").write_text("class,object,begin_ns,end_ns\nwrite,o0,2000,48000\n")
    command = {"argv": ["demo-bench", "--json", "out.json", "--log=log.csv"], "cwd": str(path / "work")}
    (path / "recording.json").write_text(json.dumps({"command": command}))
    report = find_report(path)
    assert report is not None
    assert (report.tool, report.queue_depth, report.seconds) == ("demo-bench", 2, 0.002)
    assert find_log(path) == path / "work" / "log.csv"
    assert main(["coverage", str(path)]) == 0
    out = capfd.readouterr().out
    assert "explained 60.0 %, accounted for 60.0 %\n" in out
    assert "client: before the begin point" in out
    assert main(["csv", str(path)]) == 0
    assert [row["client_ns"] for row in csv.DictReader(capfd.readouterr().out.splitlines())] == ["46000", ""]


def test_a_report_of_another_time_is_not_this_runs(tmp_path: Path) -> None:
    """The next run of the same command line has overwritten the file."""
    path = bench_run().write(tmp_path / "run")
    (path / "work").mkdir()
    (path / "work" / "out.json").write_text(json.dumps(DEMO))
    command = {"argv": ["demo-bench", "--json", "out.json"], "cwd": str(path / "work")}
    wall = {"begin": {"wall": "2020-01-01T00:00:00.000000Z"}, "end": {"wall": "2020-01-01T00:00:09.000000Z"}}
    (path / "recording.json").write_text(json.dumps({"command": command, **wall}))
    assert find_report(path) is None
    os.utime(path / "work" / "out.json", (1577836805, 1577836805))
    assert find_report(path) is not None


def test_standard_output_of_the_command_is_the_report(tmp_path: Path) -> None:
    path = bench_run().write(tmp_path / "run")
    (path / "stdout.txt").write_text(NEW_READ)
    report = find_report(path)
    assert report is not None
    assert report.source.endswith("stdout.txt")


def test_our_own_export_is_not_a_clients_log(tmp_path: Path) -> None:
    path = bench_run().write(tmp_path / "run")
    (path / "ops.csv").write_text("op_id,begin_ns,end_ns\n0,1,2\n")
    assert find_log(path) is None


def test_littles_law_needs_every_op(tmp_path: Path) -> None:
    """Half of the client's ops are not in the trace: in flight is half of rate * latency."""
    opened = open_tables(bench_run().write(tmp_path))
    window_s = 1_040_000 / 1e9
    good = ClientReport("x", 50_000.0, 2, window_s, 2 / window_s)
    bad = ClientReport("x", 50_000.0, 4, window_s, 4 / window_s)
    assert checks.littles_law(opened, Selection(), good).passed is True
    check = checks.littles_law(opened, Selection(), bad)
    assert check.passed is False
    assert check.numbers["difference"] == pytest.approx(-0.5)


def test_littles_law_leaves_out_ops_whose_end_was_lost(tmp_path: Path) -> None:
    """An end that nobody saw is no time in flight; an op younger than the slowest complete one may well be running."""
    run = bench_run()
    run.op([P("begin", 10_000)], complete=False, reason="no_end")
    run.op([P("begin", 1_025_000)], complete=False, reason="no_end")
    check = checks.littles_law(open_tables(run.write(tmp_path)), Selection(), None)
    assert check.numbers["lost"] == 1
    assert check.numbers["in_flight"] == pytest.approx((40_000 + 40_000 + 20_000) / 1_040_000)
    assert check.text.endswith("; left out: 1 of 4 whose end was lost")


def test_widest_unsplit_leaves_out_device_and_waits(tmp_path: Path) -> None:
    opened = open_tables(bench_run().write(tmp_path))
    select_counted(opened, Selection(), tainted=False)
    check = checks.widest_unsplit(opened)  # queue 10 us waits, D2C 16 us is the device; then reap, which is a wait too
    assert check.numbers["stage"] == "submit" and check.passed is None, "it is no doubt about the data"
    assert check.numbers["share"] == pytest.approx(2_000 / 40_000)


def test_hops_and_missing_steps(tmp_path: Path) -> None:
    run = RunBuilder()
    ends = [P("begin", 0), P("end", 100)]
    run.op(ends, [Rq(q=10, g=20, d=30, c=40)])
    run.op(ends, [Rq(q=10, g=20, d=30, c=None)])
    run.op(ends, [Rq(q=10, g=20, i=25, d=30, c=40, by_sector=False)])
    run.op(ends, no_request="none_queued")
    run.rows["bios"][1]["op_by_sector"] = 0
    agree = {"agree": 3, "differ": 0, "pointer_only": 0, "sector_only": 0, "neither": 0, "ambiguous": 1}
    run.manifest["core"] = {"hops": {"bio_to_request": agree}}
    opened = open_tables(run.write(tmp_path))
    select_counted(opened, Selection(), tainted=False)
    hops = {h["hop"]: h for h in checks.hop_agreement(opened)}
    assert (hops["op_to_bio"]["agree"], hops["op_to_bio"]["differ"], hops["op_to_bio"]["thread_only"]) == (1, 1, 1)
    assert hops["bio_to_request"]["ambiguous"] == 1
    steps = block_steps(opened)
    assert (steps["ops"], steps["with_q"], steps["with_q_to_c"]) == (4, 3, 2)
    assert steps["missing"] == {"Q": 0, "G": 0, "I": 2, "D": 0, "C": 1}
    assert steps["no_request"] == {"none_queued": 1}


def far_run(before: int, after: int) -> RunBuilder:
    """A hundred ops of 1 ms, one after the other, and some a second before and after."""
    run = RunBuilder()
    starts = [*(n * 1_000_000 for n in range(before)), *(1_000_000_000 + n * 1_000_000 for n in range(100))]
    for t in (*starts, *(2_100_000_000 + n * 1_000_000 for n in range(after))):
        run.op([P("begin", t), P("end", t + 1_000_000)])
    return run


FIRST, LAST = 1_000_000_000, 1_099_000_000


@pytest.mark.parametrize(
    "client",
    [
        ClientReport("how many and how long", 1e6, 100, 0.1, 1000.0),
        ClientReport("how many", 1e6, 100, None, 1000.0),
        ClientReport("neither", 1e6, None, None, 1000.0),
    ],
    ids=lambda client: client.tool,
)
def test_ops_far_outside_the_clients_span_are_not_its(
    client: ClientReport, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """rados bench writes its own metadata a second later: its rate is of the ops before."""
    opened = open_tables(far_run(0, 1).write(tmp_path))
    span = client_span(opened, Selection(), client)
    assert span == Span(FIRST, LAST, 100, 1)
    mine = Selection().also("o.begin_ns BETWEEN ? AND ?", span.first_ns, span.last_ns)
    assert checks.littles_law(opened, mine, client).passed is True
    if client.seconds is None:
        assert checks.littles_law(opened, Selection(), client).passed is False
    (tmp_path / "bench.txt").write_text("Average IOPS:           1000\nAverage Latency(s):     0.001\n")
    assert main(["coverage", str(tmp_path), "--client", str(tmp_path / "bench.txt"), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["ops"] == 100
    assert all(check["passed"] for check in document["checks"] if check["check"] in ("IOPS", "Little's law"))


def test_all_ops_are_the_clients_where_it_says_nothing_else(tmp_path: Path) -> None:
    far, near = (open_tables(far_run(*n).write(tmp_path / str(n))) for n in ((50, 50), (0, 0)))
    # Half of the ops after a pause are no afterthought; a client that counts them all means them all.
    assert client_span(far, Selection(), ClientReport("x", 1e6, None, None, 1000.0)) is None
    assert client_span(far, Selection(), ClientReport("x", 1e6, 200, 0.2, 1000.0)) is None
    assert client_span(far, Selection(), ClientReport("x", 1e6, 100, 0.1, 1000.0)) == Span(FIRST, LAST, 100, 100)
    for client in (ClientReport("x", 1e6, 100, 0.1, 1000.0), ClientReport("x", 1e6, 90, 0.05, 1800.0)):
        assert client_span(near, Selection(), client) is None


def test_time_in_one_piece_is_accounted_for_and_not_explained(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """96 % in one stage that no event splits; a wait that the model declares, or the device, is another thing."""
    run = RunBuilder()
    run.op([P("call", 0), P("sent", 2), P("received", 98, stage="server", kind="work"), P("end", 100)])
    path = run.write(tmp_path / "one")
    found = measure(open_tables(path), Selection(), None)
    assert (found.attributed_ns, round(found.explained, 6)) == (100, 0.04)
    assert [(w.stage, w.from_point, w.to_point, w.kind, w.mean_ns) for w in found.wide] == [
        ("server", "sent", "received", "work", 96)
    ]
    assert main(["coverage", str(path)]) == 0
    out = capfd.readouterr().out
    assert "explained 4.0 %, accounted for 100.0 %\n  unsplit: server, sent → received 96.0 %\n" in out
    run = RunBuilder()
    run.op([P("call", 0), P("taken", 60, stage="queue", kind="wait"), P("end", 100)], [Rq(q=62, g=64, d=66, c=95)])
    found = measure(open_tables(run.write(tmp_path / "split")), Selection(), None)
    assert ([w.stage for w in found.wide if w.kind != "wait"], found.explained) == ([], 1.0)


def test_bios_that_no_two_rules_name_are_said_to_be_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = RunBuilder()
    run.op([P("begin", 0), P("end", 100)], [Rq(q=10, g=20, d=30, c=40, by_thread=False, by_sector=False)])
    for bio in run.rows["bios"]:
        bio["op_id"] = None
    run.rows["links"].clear()
    assert main(["coverage", str(run.write(tmp_path / "a"))]) == 0
    assert "hops: 1 bios and 1 requests, none of which two rules name\n" in capfd.readouterr().out
    run = RunBuilder()
    run.op([P("begin", 0), P("end", 100)])
    assert main(["coverage", str(run.write(tmp_path / "b"))]) == 0
    assert "hops: no bio and no request in the trace\n" in capfd.readouterr().out
