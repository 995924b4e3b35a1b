# SPDX-License-Identifier: MIT
"""Clients' logs of each op, joined with the ops of a run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.lib.build_run import P, RunBuilder
from tests.lib.client_logs import DEMO, bench_run, fio_logs, fio_ops, with_unknown

from opline.errors import OplineError
from opline_analyses.cli import main
from opline_analyses.client import checks
from opline_analyses.client.client_files import find_log
from opline_analyses.client.client_log import join_client_log
from opline_analyses.client.client_report import ClientReport
from opline_analyses.client.coverage import measure
from opline_analyses.client.fio_log import Joined
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection


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


BLOCKS = 100


def libaio(path: Path, first_sector: int, extents: list[dict[str, object]] | None, longer_ns: int = 0) -> Path:
    """A run of reads of 4 KiB, one after the other, that say no offset but a sector, each after the one before; beside
    it fio's log of them. The recording knows a disk and a partition.
    """
    run, lines = RunBuilder(), []
    for n in range(BLOCKS):
        begin = 1_000_000 * (n + 1)
        run.op([P("a", begin), P("b", begin + 50_000 + longer_ns)], op_class="io_submit read")
        run.rows["ops"][-1].update(offset_bytes=None, length_bytes=4096, dev=8 << 20, sector=first_sector + 8 * n)
        lines.append((4096 * n, begin - 1000, begin - 900, begin + 51_000))
    disk = {"name": "sda", "dev": 8 << 20, "parent": None}
    part = {"name": "sda1", "dev": 8 << 20 | 1, "parent": "sda", "start_sector": 2048, "size_bytes": 1 << 30}
    run.manifest |= {"recording": {"devices": [disk, part]}, "trace": str(path / "trace")}
    run.write(path)
    if extents is not None:
        (path / "extents.json").write_text(json.dumps({"version": 1, "files": extents}))
    fio_logs(path, lines, issue_times=False)
    return path


def mapped(changed: bool = False, first: int = 0, past: int = 8 * BLOCKS) -> list[dict[str, object]]:
    """A file of a file system on the disk, at sector 192."""
    extent = {"logical_sector": first, "physical_sector": 192 + first, "sectors": past - first}
    about = {"path": "/x", "size_bytes": 4096 * BLOCKS, "dev": "8:0", "disk": "8:0", "start_sector": 0}
    return [{**about, "inode": 5, "changed": changed, "extents": [extent]}]


@pytest.mark.parametrize(
    ("first_sector", "extents", "ops", "why"),
    [
        (0, [], 100, None),  # the disk itself
        (2048, [], 100, None),  # the partition
        (192, mapped(), 100, None),  # a file, at its place
        (192, mapped(past=8 * 90), 90, "10 ops have no offset"),
        (192, mapped(changed=True), 0, "100 ops have no offset, and a sector among files"),
        (192, None, 0, "most of whose places no op has"),  # nobody knows of a file: 76 offsets are sectors' of others
    ],
)
def test_a_sector_is_an_offset_where_it_is_known_of_what(
    first_sector: int, extents: list[dict[str, object]] | None, ops: int, why: str | None, tmp_path: Path
) -> None:
    path = libaio(tmp_path / "run", first_sector, extents)
    joined = join_client_log(open_tables(path), path / "x_lat.1.log")
    assert (joined.lines, joined.ops) == (100, ops)
    assert sum(joined.left_out.values()) == 100 - ops
    assert (why or "") in " ".join(joined.left_out)


def test_an_op_that_took_longer_than_the_clients_io_is_another(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = libaio(tmp_path / "run", 0, [], longer_ns=10_000)
    assert main(["coverage", str(path), "--client-log", str(path / "x_lat.1.log")]) == 0
    said = " ".join(capfd.readouterr().out.split())
    assert "has a line for 0 of 100 ops (100 lines)" in said
    assert "100 lines of jobs whose I/Os were shorter than the ops at their sectors: these are others" in said


@pytest.mark.parametrize(("beside_ns", "passed"), [(900, True), (1_900, True), (2_100, False)])
def test_a_client_has_work_of_its_own_beside_a_short_op(beside_ns: int, passed: bool, tmp_path: Path) -> None:
    """fio beside a pread of 26 us: 0.9 us, 3 %; of a long op it is the share that counts."""
    run, lines = RunBuilder(), ["class,object,begin_ns,end_ns"]
    for n in range(10):
        begin = 1_000_000 * n + 10_000
        run.op([P("a", begin), P("b", begin + 26_000)], obj="o")
        lines.append(f"write,o,{begin - beside_ns + 300},{begin + 26_000 + 300}")
    (tmp_path / "ops.csv").write_text("\n".join(lines) + "\n")
    opened = open_tables(run.write(tmp_path / "run"))
    join_client_log(opened, tmp_path / "ops.csv")
    select_counted(opened, Selection(), tainted=False)
    check = checks.client_log(opened)
    assert check.passed is passed, check.text
    assert "limit 0.5 % or 2 us" in check.text


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


def test_a_log_line_that_two_ops_claim_is_nobodys(tmp_path: Path) -> None:
    run = RunBuilder()
    run.op([P("a", 100), P("b", 200)], obj="o")
    run.op([P("a", 150), P("b", 210)], obj="o")
    opened = open_tables(run.write(tmp_path / "run"))
    log = tmp_path / "ops.csv"
    log.write_text("class,object,begin_ns,end_ns\nwrite,o,90,300\n")
    assert join_client_log(opened, log).ops == 0
