# SPDX-License-Identifier: MIT
"""Closing the loop: clients' reports (C1.12), coverage (C1.10), IOPS (C1.11), sanity laws, agreement of links."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
from tests.lib.build_run import P, Rq, RunBuilder

from opline.errors import OplineError
from opline_analyses.cli import main
from opline_analyses.client import checks
from opline_analyses.client.client import ClientReport, parse_report, read_report
from opline_analyses.client.client_files import find_log, find_report
from opline_analyses.client.client_log import join_client_log
from opline_analyses.client.coverage import measure, ratio
from opline_analyses.client.fio_log import Joined
from opline_analyses.client.span import Span, client_span
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection, clients_classes

# The ceph-devel mail's block, tabs as in the mail.
MAIL = """
	Total time run:         20.001899
	Total writes made:      16136
	Write size:             4096
	Bandwidth (MB/sec):     3.151 

	Stddev Bandwidth:       0.721435
	Max bandwidth (MB/sec): 3.39453
	Min bandwidth (MB/sec): 0
	Average Latency:        0.00123722
	Stddev Latency:         0.000103216
	Max latency:            0.002637
	Min latency:            0.000401
"""  # noqa: W291
NEW_WRITE = """\
hints = 1
Maintaining 16 concurrent writes of 4096 bytes to objects of size 4096 for up to 5 seconds or 0 objects
  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
    0       0         0         0         0         0           -           0
Total time run:         5.00021
Total writes made:      20730
Write size:             4096
Object size:            4096
Bandwidth (MB/sec):     16.1943
Stddev Bandwidth:       1.68626
Max bandwidth (MB/sec): 17.8047
Min bandwidth (MB/sec): 13.707
Average IOPS:           4145
Stddev IOPS:            431.563
Max IOPS:               4558
Min IOPS:               3509
Average Latency(s):     0.000240245
Stddev Latency(s):      0.00012136
Max latency(s):         0.0108942
Min latency(s):         0.000113671
"""
NEW_READ = """\
Total time run:       2.00013
Total reads made:     9001
Read size:            4096
Object size:          4096
Bandwidth (MB/sec):   17.5788
Average IOPS:         4500
Stddev IOPS:          12.5
Max IOPS:             4600
Min IOPS:             4400
Average Latency(s):   0.000221
Max latency(s):       0.0091
Min latency(s):       0.0001
"""


def parsed(text: str) -> ClientReport:
    report = parse_report(text)
    assert report is not None
    return report


def test_c1_12_all_numbers_of_the_mails_block() -> None:
    """Eleven are read, two follow from them: rate and bytes per second."""
    report = parsed(MAIL)
    assert report.tool == "rados bench"
    assert report.numbers == {
        "total_time_run": 20.001899,
        "total_writes_made": 16136,
        "write_size": 4096,
        "bandwidth": 3.151,
        "stddev_bandwidth": 0.721435,
        "max_bandwidth": 3.39453,
        "min_bandwidth": 0,
        "average_latency": 0.00123722,
        "stddev_latency": 0.000103216,
        "max_latency": 0.002637,
        "min_latency": 0.000401,
        "iops": pytest.approx(806.7234, abs=1e-4),
        "bytes_per_second": pytest.approx(3.151 * 2**20, rel=1e-3),
    }
    assert len(report.numbers) == 13
    assert (report.count, report.seconds, round(report.mean_ns)) == (16136, 20.001899, 1237220)


def test_c1_12_newer_text_and_read_variants() -> None:
    write, read = parsed(NEW_WRITE), parsed(NEW_READ)
    assert (write.count, write.numbers["max_iops"], write.numbers["stddev_iops"]) == (20730, 4558, 431.563)
    assert len(write.numbers) == 16 + 2
    assert (read.count, read.numbers["read_size"], round(read.mean_ns)) == (9001, 4096, 221000)


@pytest.mark.parametrize("quoted", [False, True])
def test_c1_12_json(quoted: bool) -> None:
    """Some versions write dump_format's numbers as strings; the list of seconds is no number."""
    numbers = {"total_time_run": 5.0, "total_reads_made": 10, "average_latency": 0.5, "read_size": 4096}
    document = {k: str(v) if quoted else v for k, v in numbers.items()} | {"datas": [{"sec": "1"}]}
    report = parsed(json.dumps(document))
    assert (report.count, report.iops, report.mean_ns) == (10, 2.0, 5e8)


def test_c1_10_coverage_of_the_mails_numbers() -> None:
    client = parsed(MAIL)
    assert round(100 * ratio(750_000, client.mean_ns), 1) == 60.6
    assert round(100 * ratio(726_000, client.mean_ns), 1) == 58.7


@pytest.mark.parametrize(("completions", "passed"), [(16136, True), (15820, True), (15800, False), (16500, False)])
def test_c1_11_iops(completions: int, passed: bool) -> None:
    """16136 / 20.001899 = 806.7; more than 2 % off warns."""
    check = checks.iops(completions, parsed(MAIL))
    assert check.passed is passed
    assert "client 806.7" in check.text


def test_fio_json_and_text_agree_on_what_fio_is() -> None:
    stats = {"lat_ns": {"mean": 173310.5, "N": 16629}, "runtime": 3001, "total_ios": 16629}
    idle = {"lat_ns": {"mean": 0.0, "N": 0}, "runtime": 0}
    job = {"jobname": "j", "read": idle, "write": stats, "trim": idle, "job options": {"iodepth": "4"}}
    report = parsed('fio: a warning\n{\n "fio version": "fio-3.33", "jobs": [' + json.dumps(job) + "]\n}\n")
    assert (report.tool, report.count, report.mean_ns, report.seconds, report.queue_depth) == (
        "fio",
        16629,
        173310.5,
        3.001,
        4,
    )
    text = """
j: (groupid=0, jobs=1): err= 0: pid=1183: Fri Nov 20 20:47:32 2026
  read: IOPS=1695, BW=6783KiB/s (6946kB/s)(19.9MiB/3002msec)
    clat (usec): min=163, max=89186, avg=4551.26, stdev=7191.22
     lat (usec): min=490, max=89275, avg=4776.10, stdev=7338.34
  write: IOPS=1714, BW=6857KiB/s (7021kB/s)(20.1MiB/3002msec); 0 zone resets
     lat (msec): min=1, max=88, avg= 4.50, stdev=5919.64
  lat (usec)   : 250=0.01%, 500=0.12%, 750=0.72%, 1000=2.98%
     issued rwts: total=100,300,0,0 short=0,0,0,0 dropped=0,0,0,0
"""
    report = parsed(text)
    assert report.bytes is None  # the header with the sizes is not there
    assert report.by_class == {"read": (100, 4776100.0), "write": (300, 4.5e6)}
    assert report.mean_ns == pytest.approx((100 * 4776100.0 + 300 * 4.5e6) / 400)
    assert report.of_class("read").mean_ns == 4776100.0


DEMO = {
    "tool": "demo-bench", "version": 1, "queue_depth": 2, "begin_ns": 0, "end_ns": 2_000_000,
    "latency_ns": {"count": 2, "mean": 50_000.0}, "write_latency_ns": {"count": 2, "mean": 50_000.0},
    "read_latency_ns": {"count": 0},
}  # fmt: skip


def test_a_file_without_a_report_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("hello: 5\n{ not json\n")
    with pytest.raises(OplineError, match="no mean latency"):
        read_report(path)


def bench_run() -> RunBuilder:
    """Two ops of 40 us, 10 us of them unknown; the client says 50 us."""
    run = RunBuilder()
    for n in range(2):
        t = 1_000_000 * n + 5_000
        run.op(
            [
                P("begin", t),
                P("sent", t + 10_000, stage="queue", kind="wait"),
                P("end", t + 40_000, stage="unknown: C → end", kind="unknown"),
            ],
            [Rq(q=t + 12_000, g=t + 13_000, d=t + 14_000, c=t + 30_000)],
            obj=f"o{n}",
        )
    return run


def with_unknown(run: RunBuilder) -> RunBuilder:
    """The last interval of each op becomes unknown."""
    for stage in run.rows["stages"]:
        if stage["stage"] == "reap":
            stage["stage"], stage["kind"] = "unknown: C → end", "unknown"
    for op in run.rows["ops"]:
        op["unknown_ns"] = 10_000
    return run


def test_parts_sum_to_the_clients_mean(tmp_path: Path) -> None:
    opened = open_tables(with_unknown(bench_run()).write(tmp_path))
    found = measure(opened, Selection(), ClientReport("x", 50_000.0))
    assert (found.mean_ns, found.attributed_ns, found.unknown_ns) == (40_000, 30_000, 10_000)
    assert found.coverage == 0.6
    assert sum(p.mean_ns for p in found.parts() if p.level == 0) == pytest.approx(50_000)
    assert sum(found.by_kind.values()) == pytest.approx(found.attributed_ns)
    residual = [p.mean_ns for p in found.parts()][-3:]
    assert residual == [10_000, 10_000, 0]


def test_client_log_splits_submit_and_reap(tmp_path: Path) -> None:
    opened = open_tables(with_unknown(bench_run()).write(tmp_path / "run"))
    log = tmp_path / "ops.csv"
    log.write_text(
        "class,object,begin_ns,end_ns\nwrite,o0,2000,48000\nwrite,o1,1001000,1049000\nwrite,o1,900000,900001\n"
    )
    assert join_client_log(opened, log) == Joined(3, 2, 0)
    found = measure(opened, Selection(), ClientReport("x", 50_000.0), with_log=True)
    assert (found.submit_ns, found.reap_ns, found.logged_ops) == (3_500, 3_500, 2)
    assert found.log_client_ns == 47_000
    check = checks.client_log(opened)  # each op within 20 us of its line, and the mean 15 % below the log's
    assert check.passed is False
    assert (check.numbers["logged"], check.numbers["near"]) == (2, 2)
    assert check.numbers["mean_difference"] == pytest.approx(40 / 47 - 1)


def test_a_log_of_some_ops_is_no_figure_of_all(tmp_path: Path) -> None:
    """Without a report shares are of the trace's mean then, and none exceeds 100 %."""
    run = RunBuilder()
    for n in range(4):
        run.op([P("a", 1_000_000 * n), P("b", 1_000_000 * n + 10_000 * (n + 1))], obj="o")
    log = tmp_path / "ops.csv"
    log.write_text("class,object,begin_ns,end_ns\nwrite,o,0,10000\n")
    opened = open_tables(run.write(tmp_path / "run"))
    assert join_client_log(opened, log) == Joined(1, 1, 0)
    found = measure(opened, Selection(), None, with_log=True)
    assert (found.logged_ops, found.log_client_ns, found.mean_ns) == (1, 10_000, 25_000)
    assert (found.client_ns, found.coverage, found.whole_ns) == (None, None, 25_000)
    of_logged = measure(opened, Selection("o.op_id IN (SELECT op_id FROM client_ops)"), None, with_log=True)
    assert (of_logged.client_ns, of_logged.coverage) == (10_000, 1)


def test_an_op_whose_client_was_interrupted_beside_a_point_is_left_out(tmp_path: Path) -> None:
    """At the begin of one, at the end of another; its end then lies long before the op's, and the line is still its."""
    run = RunBuilder()
    for n in range(1000):
        run.op([P("a", 1_000_000 * n), P("b", 1_000_000 * n + 40_000)], obj="o")
    run.op([P("a", 1_000_000_000), P("b", 1_000_040_000)], obj="o")
    lines = ["class,object,begin_ns,begun_ns,end_ns,ended_ns"]
    for n in range(1001):
        ns = 1_000_000 * n
        early, late = (90_000 if n == 7 else 100), (90_000 if n == 9 else 100)
        lines.append(f"write,o,{ns - early},{ns + 200},{ns + 40_000 - late},{ns + 40_200}")
    log = tmp_path / "ops.csv"
    log.write_text("\n".join(lines) + "\n")
    opened = open_tables(run.write(tmp_path / "run"))
    assert join_client_log(opened, log).ops == 1001
    select_counted(opened, Selection(), tainted=False)
    check = checks.client_log(opened)
    assert check.passed is True
    assert (check.numbers["interrupted"], check.numbers["near"], check.numbers["mean_difference"]) == (2, 999, 0)
    assert "left out: 2 whose client was interrupted" in check.text
    opened.con.execute("UPDATE client_ops SET interrupted = true WHERE op_id < 60")
    assert checks.client_log(opened).passed is False  # more than 5 %


def fio_ops(run: RunBuilder, epoch_ns: int, tid: int = 100) -> list[tuple[int, int, int, int]]:
    """Two reads of 4 KiB of one place, one of another; gives (offset, start, issue, complete) from the job's begin."""
    lines = []
    for n, offset in enumerate((8192, 0, 8192)):
        begin = epoch_ns + 1_000_000 * (n + 1)
        run.op([P("pread64", begin, tid=tid), P("return", begin + 50_000, tid=tid)], op_class="pread64")
        run.rows["ops"][-1].update(offset_bytes=offset, length_bytes=4096)
        before, after = 300 + 10 * n, 200 + 20 * n  # fio's own clock reads, before and after the call
        start = 1_000_000 * (n + 1) - before
        lines.append((offset, start, start + 100, 1_000_000 * (n + 1) + 50_000 + after))
    return lines


def fio_logs(folder: Path, lines: list[tuple[int, int, int, int]], job: int = 1, issue_times: bool = True) -> Path:
    """As fio 3.38 writes them (log_offset=1, log_issue_time=1): the lat log has 0 where the clat log has the issue."""
    lat, clat = folder / f"x_lat.{job}.log", folder / f"x_clat.{job}.log"
    texts = {lat: "", clat: ""}
    for offset, start, issue, complete in lines:
        for path, value, issued in ((lat, complete - start, 0), (clat, complete - issue, issue)):
            tail = f", {issued}" if issue_times else ""
            texts[path] += f"{complete // 1_000_000}, {value}, 0, 4096, {offset}, 0{tail}\n"
    for path, text in texts.items():
        path.write_text(text)
    return lat


def test_fios_log_splits_each_op_to_the_nanosecond(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The job's begin is where causality leaves it: 500 ns between the narrowest start and the narrowest end."""
    run = RunBuilder()
    lines = fio_ops(run, epoch_ns=70_000_000)
    path = run.write(tmp_path / "run")
    opened = open_tables(path)
    assert join_client_log(opened, fio_logs(tmp_path, lines)) == Joined(3, 3, 250)
    rows = opened.rows("SELECT client_ns, submit_ns, reap_ns FROM client_ops ORDER BY op_id")
    assert rows == [(50_500, 250, 250), (50_530, 260, 270), (50_560, 270, 290)]
    assert (
        main(["coverage", str(path), "--client-log", str(tmp_path / "x_clat.1.log"), "--per-op", str(tmp_path / "p")])
        == 0
    )
    said = " ".join(capfd.readouterr().out.split())
    assert "pass sum per op: stages + residual = the client's figure for 3 of 3 ops; 0 have a negative" in said
    assert "a line for 3 of 3 ops (3 lines); before and after the op it is exact to 250 ns" in said
    with (tmp_path / "p").open() as file:
        for row in csv.DictReader(file):
            parts = [int(v) for name, v in row.items() if name not in ("op_id", "client_ns") and v]
            assert sum(parts) == int(row["client_ns"])


def test_fios_log_without_issue_times_says_how_long_not_when(tmp_path: Path) -> None:
    run = RunBuilder()
    lines = fio_ops(run, epoch_ns=70_000_000)
    opened = open_tables(run.write(tmp_path / "run"))
    assert join_client_log(opened, fio_logs(tmp_path, lines, issue_times=False)) == Joined(3, 3, None)
    assert opened.rows("SELECT client_ns, submit_ns FROM client_ops ORDER BY op_id")[0] == (50_500, None)
    select_counted(opened, Selection(), tainted=False)
    found = measure(opened, Selection(), None, with_log=True)
    assert found.parts()[-3].name == "unknown: outside of the op's points"
    assert found.parts()[-3].mean_ns == pytest.approx(530)
    assert checks.sums(opened).passed is True


def test_fio_jobs_on_one_file_are_told_apart_by_their_places(tmp_path: Path) -> None:
    run = RunBuilder()
    first = fio_ops(run, epoch_ns=70_000_000, tid=1)
    run.op([P("pread64", 99_000_000, tid=2), P("return", 99_000_100, tid=2)], op_class="pread64")
    run.rows["ops"][-1].update(offset_bytes=4096, length_bytes=4096)
    opened = open_tables(run.write(tmp_path / "run"))
    fio_logs(tmp_path, first)
    fio_logs(tmp_path, [(4096, 999_000, 999_100, 1_000_500)], job=2)
    assert join_client_log(opened, tmp_path / "x_lat.1.log").ops == 4
    assert opened.row("SELECT client_ns FROM client_ops WHERE op_id = 3") == (1_500,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1, 500, 0, 4096, 0\n", "log_offset=1"),
        ("a, b\n", "x_lat.1.log:1: not a line"),
        ("1, 2, 9, 4, 0, 0\n", ":1: not a line"),
    ],
)
def test_what_is_no_log_of_single_ios_is_one_clear_line(tmp_path: Path, text: str, said: str) -> None:
    opened = open_tables(bench_run().write(tmp_path / "run"))
    (tmp_path / "x_lat.1.log").write_text(text)
    with pytest.raises(OplineError, match=said):
        join_client_log(opened, tmp_path / "x_lat.1.log")


def test_fios_log_is_found_by_the_command_that_was_recorded(tmp_path: Path) -> None:
    path = bench_run().write(tmp_path / "run")
    work = tmp_path / "work"
    work.mkdir()
    fio_logs(work, [(0, 0, 1, 2)])
    (work / "job.fio").write_text("[j]\nwrite_lat_log = x\n")
    for argv in (["fio", "--write_lat_log=x"], ["fio", "--write_lat_log", "x"], ["fio", "job.fio"]):
        (path / "recording.json").write_text(json.dumps({"command": {"argv": argv, "cwd": str(work)}}))
        assert find_log(path) == work / "x_lat.1.log"


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
    assert clients_classes(opened, Selection(), {"write": 50}) == []
    assert clients_classes(opened, Selection(), {}) == []


def test_a_log_with_a_few_lines_without_an_op_still_says_whose_ops_they_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Another program's ops are as many as the client's; one op of the client's has no end."""
    run, lines = RunBuilder(), ["class,object,begin_ns,end_ns"]
    for n in range(100):
        begin = 1_000_000 * n
        run.op([P("a", begin, tid=1), P("b", begin + 50_000, tid=1)], op_class="mine write", complete=n != 50, obj="o")
        run.op([P("a", begin, tid=2), P("b", begin + 90_000, tid=2)], op_class="other write", obj="p")
        lines.append(f"mine write,o,{begin},{begin + 50_000}")
    figures = {"count": 100, "mean": 50_000.0}
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "b.json").write_text(json.dumps({**DEMO, "latency_ns": figures, "write_latency_ns": figures}))
    path = run.write(tmp_path / "run")
    files = ["--client", str(tmp_path / "b.json"), "--client-log", str(tmp_path / "log.csv")]
    assert main(["coverage", str(path), "--json", *files]) == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["ops"], document["incomplete"], document["client_log"]["ops"]) == (99, 1, 99)


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


def test_a_log_line_that_two_ops_claim_is_nobodys(tmp_path: Path) -> None:
    run = RunBuilder()
    run.op([P("a", 100), P("b", 200)], obj="o")
    run.op([P("a", 150), P("b", 210)], obj="o")
    opened = open_tables(run.write(tmp_path / "run"))
    log = tmp_path / "ops.csv"
    log.write_text("class,object,begin_ns,end_ns\nwrite,o,90,300\n")
    assert join_client_log(opened, log).ops == 0


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
    assert check.numbers["stage"] == "submit"
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
    steps = checks.block_steps(opened)
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
    assert span == Span(FIRST, LAST, 1)
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
    assert client_span(far, Selection(), ClientReport("x", 1e6, 100, 0.1, 1000.0)) == Span(FIRST, LAST, 100)
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


def test_a_stage_is_split_by_what_its_thread_did_for_others(tmp_path: Path) -> None:
    """The server's thread 7 takes one op after the other; the last one's way to it is mostly their work."""
    run = RunBuilder()
    for begin, taken in ((0, 10), (1, 40), (2, 70)):
        run.op(
            [
                P("sent", begin, tid=begin),
                P("received", taken, tid=7, stage="network", kind="network"),
                P("served", taken + 25, tid=7, stage="serve"),
            ]
        )
    opened = open_tables(run.write(tmp_path))
    found = measure(opened, Selection().also("o.op_id = 2"), None)
    (network, serve) = found.wide
    assert [(p.what, p.mean_ns) for p in serve.behind] == [("its thread at this op", 25)]
    assert (network.stage, network.mean_ns) == ("network", 68)
    # 2 to 10 nobody knows, 10 to 35 and 40 to 65 it serves the others, 35 to 40 and 65 to 70 lie between them
    assert [(p.what, p.mean_ns) for p in network.behind] == [
        ("behind serve", 50), ("its thread between others", 10), ("before its thread is seen", 8)
    ]  # fmt: skip
