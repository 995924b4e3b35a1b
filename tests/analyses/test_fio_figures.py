# SPDX-License-Identifier: MIT
"""fio's figures of the ops that they are about: of classes by direction, of syncs, rates of each direction;
and figures that cannot be.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.lib.build_run import P, RunBuilder

from opline.errors import OplineError
from opline_analyses.cli import main
from opline_analyses.client.client import parse_report, read_report
from opline_analyses.client.client_report import ClientReport
from opline_analyses.client.fio_rate import options_in, rates_of

MS = 1_000_000
CLASSES = {"read": "io_submit read", "write": "io_submit write", "sync": "fdatasync"}


def direction(count: int, mean_ns: float) -> dict[str, Any]:
    return {"total_ios": count, "runtime": 2000, "io_bytes": count * 4096, "lat_ns": {"mean": mean_ns, "N": count}}


def report(**options: str) -> dict[str, Any]:
    """200 reads of 2 ms, 400 writes of 5 ms, 50 syncs of 20 ms in 2 s; as fio 3.33 says it."""
    job = {
        "job options": options, "read": direction(200, 2 * MS), "write": direction(400, 5 * MS),
        "sync": {"total_ios": 50, "lat_ns": {"mean": 20 * MS, "N": 50}},
    }  # fmt: skip
    return {"fio version": "fio-3.33", "jobs": [job]}


def parsed(document: dict[str, Any]) -> ClientReport:
    found = parse_report(json.dumps(document))
    assert found is not None
    return found


def a_run(path: Path, document: dict[str, Any], write_every: int = 5 * MS) -> Path:
    """Its ops, on one thread: each direction begins its ops on time."""
    run = RunBuilder()
    begun = [(10 * MS * n, "read", 2 * MS) for n in range(200)]
    begun += [(write_every * n + 11, "write", 5 * MS) for n in range(400)]
    begun += [(40 * MS * n + 23, "sync", 20 * MS) for n in range(50)]
    for begin, name, latency in sorted(begun):
        run.op([P("begin", begin), P("end", begin + latency)], op_class=CLASSES[name])
    folder = run.write(path)
    (folder / "fio.json").write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize(
    ("classes", "mean_ns", "count"),
    [
        (["io_submit read"], 2 * MS, 200),
        (["pread64", "preadv"], 2 * MS, 200),
        (["pwrite64"], 5 * MS, 400),
        (["fdatasync"], 20 * MS, 50),
        (["io_uring fsync"], 20 * MS, 50),
        (["sync_file_range"], 20 * MS, 50),
        (["io_submit write", "fsync"], (400 * 5 + 50 * 20) * MS / 450, 450),
        (["pread64", "pwrite64"], (200 * 2 + 400 * 5) * MS / 600, 600),
        (["bio discard"], None, None),
        (["openat"], None, None),
    ],
)
def test_the_figures_of_classes_are_those_of_their_directions(
    classes: list[str], mean_ns: float | None, count: int | None
) -> None:
    found = parsed(report()).of_classes(classes)
    assert (found and found.mean_ns, found and found.count) == (mean_ns, count)


def test_a_tool_with_one_figure_has_it_for_all() -> None:
    one = ClientReport("rados bench", 3.0 * MS, 10)
    assert one.of_classes(["aio_operate"]) is one


@pytest.mark.parametrize(("name", "mean"), [("read", "2 ms"), ("write", "5 ms"), ("sync", "20 ms")])
def test_coverage_of_a_class_is_of_its_own_figure(
    name: str, mean: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path / "run", report())
    assert main(["coverage", str(run), "--class", CLASSES[name]]) == 0
    said = capsys.readouterr().out
    assert f"client  mean {mean}," in said and f"trace   mean {mean}," in said


def test_a_class_without_a_figure_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = report()
    del document["jobs"][0]["sync"]
    run = a_run(tmp_path / "run", document)
    assert main(["coverage", str(run), "--class", "fdatasync"]) == 0
    said = capsys.readouterr()
    assert "has no figure of fdatasync alone: shares are of the trace's mean" in said.err
    assert "client  mean" not in said.out


TEXT = """\
a: (groupid=0, jobs=1): err= 0: pid=16094: Fri Nov 27 08:04:25 2026
  read: IOPS=199, BW=799KiB/s (818kB/s)(800KiB/1001msec)
    clat (usec): min=106, max=813, avg=203.37, stdev=54.24
     lat (usec): min=107, max=813, avg=203.91, stdev=54.29
  write: IOPS=399, BW=1598KiB/s (1637kB/s)(1600KiB/1001msec); 0 zone resets
     lat (nsec): min=3115, max=46830, avg=17284.24, stdev=5730.31
  fsync/fdatasync/sync_file_range:
    sync (usec): min=135, max=5022, avg=1555.08, stdev=1342.51
     issued rwts: total=200,400,0,77 short=0,0,0,0 dropped=0,0,0,0
"""


def test_fios_text_has_them_too() -> None:
    found = parse_report(TEXT)
    assert found is not None and found.syncs == (77, 1_555_080.0)
    of_syncs = found.of_classes(["fsync"])
    assert of_syncs is not None and of_syncs.mean_ns == 1_555_080.0
    assert found.count == 600


@pytest.mark.parametrize(
    ("options", "rates"),
    [
        ({"rate_iops": "200"}, {"read": 200, "write": 200, "trim": 200}),
        ({"rate_iops": "200,400"}, {"read": 200, "write": 400, "trim": 400}),
        ({"rate_iops": "1,2,3"}, {"read": 1, "write": 2, "trim": 3}),
        ({"rate_iops": ",100"}, {"write": 100, "trim": 100}),
        ({"rate_iops": "1k"}, {"read": 1024, "write": 1024, "trim": 1024}),
        ({"rate": "1m,256k", "bs": "4k,8k"}, {"read": 256, "write": 32, "trim": 32}),
        ({"rate": "1mib"}, {"read": 1e6 / 4096, "write": 1e6 / 4096, "trim": 1e6 / 4096}),
        ({"rate": "1m", "kb_base": "1000", "bs": "4k"}, {"read": 250, "write": 250, "trim": 250}),
        ({"rate": "1m", "bsrange": "4k-64k"}, {}),
        ({"rate_iops": "200", "rate_process": "poisson"}, {}),
        ({"rate_iops": "fast"}, {}),
        ({"rate_min": "200"}, {}),
    ],
)
def test_what_fios_options_say_is_due(options: dict[str, str], rates: dict[str, float]) -> None:
    """1k, 1m and 1mib as fio 3.33 ran them."""
    assert rates_of(options)[0] == rates


def test_options_of_several_jobs_are_nobodys() -> None:
    assert options_in(["fio", "--rate_iops=5", "--bs", "4k"]) == {"rate_iops": "5", "bs": "4k"}
    assert options_in(["fio", "--rate_iops=5", "--name=b", "--rate_iops=6"]) == {}
    assert options_in([]) == {}  # a recording of what ran already has no command


def test_each_direction_has_its_own_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path / "run", report(rate_iops="100,200"))
    assert main(["coverage", str(run)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "schedule: one read each 10 ms and one write each 5 ms (rate_iops=100,200); the latest begins 0 ns late" in said
    )


def test_a_direction_that_falls_behind_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path / "run", report(rate_iops="100,200"), write_every=6 * MS)
    assert main(["coverage", str(run)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the latest begins 399 ms late" in said and "it never caught up" in said


def test_one_direction_alone_is_said_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path / "run", report(rate_iops="100"))
    assert main(["coverage", str(run), "--class", CLASSES["read"]]) == 0
    assert "schedule: one op each 10 ms (rate_iops=100)" in capsys.readouterr().out


@pytest.mark.parametrize(("key", "what"), [("runtime", "run time"), ("io_bytes", "number of bytes")])
@pytest.mark.parametrize("value", [-5.0, float("nan"), float("inf"), 1e308])
def test_a_number_that_is_none_is_refused(key: str, what: str, value: float, tmp_path: Path) -> None:
    document = report()
    document["jobs"][0]["write"][key] = value
    file = tmp_path / "fio.json"
    file.write_text(json.dumps(document))
    with pytest.raises(OplineError, match=f"says what cannot be: a {what} of"):
        read_report(file)


@pytest.mark.parametrize("mean_ns", [8647e18, 8.6e12, -5.0, float("nan"), float("inf")])
def test_a_figure_that_cannot_be_is_refused(mean_ns: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = report()
    document["jobs"][0]["write"]["lat_ns"]["mean"] = mean_ns
    file = tmp_path / "fio.json"
    file.write_text(json.dumps(document))
    with pytest.raises(OplineError, match="says what cannot be: a mean latency of"):
        read_report(file)
    run = a_run(tmp_path / "run", document)
    assert main(["coverage", str(run), "--client", str(file)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(["coverage", str(run)]) == 0
    said = capsys.readouterr()
    assert "fio.json says what cannot be" in said.err and "left out" in said.err
    assert "client  no report found" in said.out


def test_a_latency_as_long_as_the_run_can_be(tmp_path: Path) -> None:
    document = report()
    document["jobs"][0]["write"]["lat_ns"]["mean"] = 2000.0 * MS
    (tmp_path / "fio.json").write_text(json.dumps(document))
    assert read_report(tmp_path / "fio.json").count == 600
