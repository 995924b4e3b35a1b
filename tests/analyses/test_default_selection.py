# SPDX-License-Identifier: MIT
"""Which ops the figures are about if no class is given: those that the client counts, else those of calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.lib.build_run import P, RunBuilder

from opline_analyses.cli import main
from opline_analyses.client.defaults import default_selection, outside_line
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import OpFilters

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


def fio(reads: int = 0, writes: int = 0, syncs: int = 0, runtime_ms: int = 1000) -> str:
    """What fio prints with --output-format=json; each op takes 50 us, a sync 1 ms."""

    def side(count: int, mean_ns: int = 50_000) -> dict[str, object]:
        mean_ns = mean_ns if count else 0
        lat = {"min": mean_ns, "max": mean_ns, "mean": float(mean_ns), "stddev": 0.0, "N": count}
        return {"io_bytes": 4096 * count, "total_ios": count, "runtime": runtime_ms, "iops": 1.0, "lat_ns": lat}

    sync = {"total_ios": syncs, "lat_ns": side(syncs, MS)["lat_ns"]}
    job = {"jobname": "a", "read": side(reads), "write": side(writes), "trim": side(0), "sync": sync}
    return json.dumps({"fio version": "fio-3.33", "jobs": [job]})


def ops_of(
    run: RunBuilder, op_class: str, count: int, first_ns: int = 0, ns: int = 50_000, obj: str | None = None
) -> None:
    for n in range(count):
        at = first_ns + n * MS
        run.op([P("a", at), P("b", at + ns)], op_class=op_class, obj=obj)


def counted(folder: Path, op_class: str | None = None) -> list[tuple[str, int]]:
    run = open_tables(folder)
    which = default_selection(run, OpFilters(op_class=None if op_class is None else [op_class]))
    by_class = f"SELECT class, count(*) FROM ({which.of('class')}) GROUP BY class ORDER BY class"
    return [(str(name), int(count)) for name, count in run.rows(by_class, which.parameters)]


def test_the_ops_that_the_client_counts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = RunBuilder()
    for name, count in (("pread64", 100), ("read", 40), ("bio read", 300), ("openat", 5)):
        ops_of(run, name, count)
    run.write(tmp_path)
    (tmp_path / "stdout.txt").write_text(fio(reads=100))
    assert counted(tmp_path) == [("pread64", 100)]
    assert counted(tmp_path, op_class="read") == [("read", 40)]
    assert sum(n for _, n in counted(tmp_path, op_class="all")) == 445
    assert capfd.readouterr().err == (
        "opline: counted: the 100 ops that fio counts (pread64), not 345 others; --class all counts all\n"
    )


def test_a_write_of_the_page_cache_is_the_call_not_what_is_written_back(tmp_path: Path) -> None:
    run = RunBuilder()
    for name, count in (("pwrite64", 100), ("bio write", 100), ("pread64", 3)):
        ops_of(run, name, count)
    run.write(tmp_path)
    (tmp_path / "stdout.txt").write_text(fio(writes=100))
    assert counted(tmp_path) == [("pwrite64", 100)]


@pytest.mark.parametrize(("direction", "other"), [("reads", "write"), ("writes", "read")])
def test_a_splice_is_what_the_client_calls_it(direction: str, other: str, tmp_path: Path) -> None:
    run = RunBuilder()
    for name, count in (("splice", 100), (other, 7)):
        ops_of(run, name, count)
    run.write(tmp_path)
    (tmp_path / "stdout.txt").write_text(fio(**{direction: 100}))
    assert counted(tmp_path) == [("splice", 100)]


@pytest.mark.parametrize(("ns", "said"), [(44_900, True), (45_100, False)])
def test_what_of_the_clients_mean_is_outside_of_the_ops(
    ns: int, said: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """fio's posixaio has a queue of its own before the calls. Its look at the clock is no such time: up to 10 %."""
    run = RunBuilder()
    ops_of(run, "pread64", 100, ns=ns)
    run.write(tmp_path)
    (tmp_path / "stdout.txt").write_text(fio(reads=100))
    counted(tmp_path)
    line = (
        "fio itself says a mean of 50 us: 5.1 us of it are outside of these ops, before they begin or after they end."
    )
    assert capfd.readouterr().err == (f"opline: {line}\n" if said else "")


def test_its_syncs_count_though_the_client_has_them_apart(tmp_path: Path) -> None:
    run = RunBuilder()
    for name, count in (("pwrite64", 60), ("fsync", 59), ("read", 40)):
        ops_of(run, name, count)
    run.write(tmp_path)
    (tmp_path / "stdout.txt").write_text(fio(writes=60, syncs=59))
    assert counted(tmp_path) == [("fsync", 59), ("pwrite64", 60)]
    (tmp_path / "stdout.txt").write_text(fio(writes=60))  # it made none: another program did
    assert counted(tmp_path) == [("pwrite64", 60)]


def test_of_a_class_that_has_more_those_of_the_clients_time(tmp_path: Path) -> None:
    """fio with read() reads its own configuration so, too, long before it begins."""
    run = RunBuilder()
    ops_of(run, "read", 40)
    ops_of(run, "read", 200, first_ns=9000 * MS)
    ops_of(run, "write", 30)
    ops_of(run, "bio read", 30, first_ns=9000 * MS)
    run.write(tmp_path)
    (tmp_path / "stdout.txt").write_text(fio(reads=200, runtime_ms=200))
    assert counted(tmp_path) == [("read", 200)]


def test_of_a_class_that_has_more_those_on_one_object(tmp_path: Path) -> None:
    run = RunBuilder()
    ops_of(run, "read", 40)
    ops_of(run, "read", 200, obj="/dev/loop0")
    ops_of(run, "read", 30, obj="/etc/fio.conf")
    ops_of(run, "write", 90, obj="/dev/loop0")
    run.write(tmp_path)
    (tmp_path / "stdout.txt").write_text(fio(reads=200, writes=90))
    assert counted(tmp_path) == [("read", 200), ("write", 90)]


def test_a_client_of_other_ops_chooses_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = RunBuilder()
    run.manifest["recording"] = {"block_source": "bpf"}
    run.manifest["trace"] = str(tmp_path / "trace")
    ops_of(run, "pread64", 100)
    ops_of(run, "bio read", 7)
    run.write(tmp_path)
    (tmp_path / "stdout.txt").write_text(fio(reads=5000))
    assert counted(tmp_path) == [("pread64", 100)]
    said = capfd.readouterr().err
    assert "no classes of ops are as many as the client's 5000 reads" in said
    assert "not counted: 7 I/Os outside of calls (page faults, read-ahead); --class all counts all" in said


def test_bios_count_where_calls_can_be_missing(tmp_path: Path) -> None:
    """LTTng's kernel domain does not show io_uring's calls: their bios are all that there is of them."""
    for source, classes in (("bpf", ["read"]), ("kernel", ["bio write", "read"])):
        run = RunBuilder()
        run.manifest |= {"recording": {"block_source": source}, "trace": str(tmp_path / source / "trace")}
        ops_of(run, "bio write", 100)
        ops_of(run, "read", 5)
        run.write(tmp_path / source)
        assert [name for name, _ in counted(tmp_path / source)] == classes


def test_io_that_no_call_stands_for_counts_where_there_is_nothing_else(tmp_path: Path) -> None:
    run = RunBuilder()
    ops_of(run, "bio read", 7)
    run.write(tmp_path)
    assert counted(tmp_path) == [("bio read", 7)]
    assert outside_line({"bio read": 7}, ("bio ",)) is None and outside_line({"read": 7}, ("bio ",)) is None


@pytest.mark.parametrize("command", [["stages", "--json"], ["why", "--json", "--slowest", "10"], ["report"]])
def test_the_commands_count_them(command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = RunBuilder()
    ops_of(run, "pread64", 100)
    ops_of(run, "bio read", 300, ns=7_777_777)
    run.write(tmp_path)
    (tmp_path / "stdout.txt").write_text(fio(reads=100))
    output = ["-o", str(tmp_path / "page.html")] if command == ["report"] else []
    assert main([command[0], str(tmp_path), *command[1:], *output]) == 0
    said = capfd.readouterr()
    assert "counted: the 100 ops that fio counts (pread64), not 300 others" in said.err
    if not output:
        assert "7777777" not in said.out  # what no call stands for


def test_of_two_runs_each_line_says_which_run_it_is_about(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, reads in (("a", 100), ("b", 50)):
        run = RunBuilder()
        ops_of(run, "pread64", reads)
        ops_of(run, "openat", 3)
        run.write(tmp_path / name)
        (tmp_path / name / "stdout.txt").write_text(fio(reads=reads))
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    counted_lines = [line for line in capfd.readouterr().err.splitlines() if "counted: " in line]
    assert [line.split(": ")[1] for line in counted_lines] == ["a", "b"]
