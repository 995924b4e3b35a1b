# SPDX-License-Identifier: MIT
"""What `opline record` says of a recording at its end."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

from opline.correlation import stage_statistics
from opline.model import load_model
from opline_analyses.cli import load, parser_of
from opline_analyses.client.client import parse_report
from opline_analyses.client.glance import glance, next_lines
from opline_analyses.ops.stages import table_of


def test_ops_beside_the_clients_own_figures(trace: Callable[[str], Path], tmp_path: Path) -> None:
    """Of the recorded demo: what `opline stages --json` and the benchmark's report have."""
    recorded = trace("demo-qd4")
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / "trace").symlink_to(recorded)
    report = recorded / "client.json"
    (directory / "client.json").write_bytes(report.read_bytes())
    ops, widest, *rest = glance(directory, load_model("demo"), 50_000).lines
    client = parse_report(report.read_text())
    assert client
    assert ops.startswith("2003 ops: mean ") and "; demo-bench says 2003 ops, mean 490.9 us, p99 " in ops
    assert json.loads(report.read_text())["latency_ns"]["mean"] == client.mean_ns
    assert widest.startswith("widest stage: ") and widest.endswith(" %)")
    assert rest == []


def test_ops_of_the_classes_that_the_client_counts(trace: Callable[[str], Path], tmp_path: Path) -> None:
    """fio's own reads and writes; what else the machine did is no part of its mean. fio's text as it printed it."""
    name = "fio-psync-qd1-nvme"
    (tmp_path / "trace").symlink_to(trace(name))
    said = (Path(__file__).parents[1] / "traces" / f"{name}.out").read_text()
    (tmp_path / "stdout.txt").write_text(said)
    (tmp_path / "recording.json").write_text(json.dumps({"schema": "opline-recording"}))
    model = load_model("syscalls")
    first, *_ = glance(tmp_path, model, 50_000).lines
    client = parse_report(said)
    assert client and set(client.counts()) == {"write"}
    all_ops = stage_statistics(tmp_path / "trace", model, progress=False)[0]["classes"]
    mine = {f"p{direction}64": count for direction, count in client.counts().items()}
    assert {name: all_ops[name] for name in mine} == mine
    assert first.startswith(f"{client.count} pwrite64 ops: mean ")
    assert first.endswith(f"; {sum(all_ops.values()) - sum(mine.values())} other ops")


def test_what_recording_costs_each_call_is_said_where_it_matters(trace: Callable[[str], Path], tmp_path: Path) -> None:
    """Of ops that are one call each, from a twentieth of their mean on."""
    name = "fio-psync-qd1-nvme"
    (tmp_path / "trace").symlink_to(trace(name))
    (tmp_path / "stdout.txt").write_text((Path(__file__).parents[1] / "traces" / f"{name}.out").read_text())
    model, note = load_model("syscalls"), tmp_path / "recording.json"
    found, _ = stage_statistics(tmp_path / "trace", model, classes=["pwrite64"], progress=False)
    mean_ns = table_of(found, 0, 0, tmp_path).latency.mean_ns

    def said(call_ns: int | None) -> list[str]:
        note.write_text(json.dumps({"schema": "opline-recording", "collector": {"call_ns": call_ns}}))
        return [line for line in glance(tmp_path, model, 50_000).lines if line.startswith("recording itself")]

    assert said(None) == said(int(mean_ns * 0.049)) == []
    (line,) = said(int(mean_ns * 0.051))
    assert " per call" in line


def test_what_no_event_shows_is_said_of_io_uring(trace: Callable[[str], Path], tmp_path: Path) -> None:
    """fio's latency ends when it takes the completion from the ring, an op's when the completion is there."""
    (tmp_path / "trace").symlink_to(trace("app-uring-qd16-nvme-6.12"))
    (tmp_path / "recording.json").write_text(json.dumps({"schema": "opline-recording"}))
    model = load_model("syscalls")
    names = [f"io_uring {way}" for way in ("read", "write")]
    found = stage_statistics(tmp_path / "trace", model, classes=names, progress=False)[0]
    counts = {way: found["classes"].get(name, 0) for way, name in zip(("read", "write"), names, strict=True)}
    unseen = found["takes_unseen"]  # of the others a call that waited has taken the completion
    assert 0 < unseen < sum(counts.values())
    told = {way: {"runtime": 1000, "lat_ns": {"N": count, "mean": 5e5}} for way, count in counts.items()}
    (tmp_path / "fio.json").write_text(json.dumps({"jobs": [told]}))
    first, *_ = glance(tmp_path, model, 50_000).lines
    assert f"mean 500 us, until it takes the completion (of {unseen} ops no event shows when)" in first


def test_figures_of_other_ops_are_not_set_beside(trace: Callable[[str], Path], tmp_path: Path) -> None:
    """A client that counts what no recorded class is, or that began to count later."""
    (tmp_path / "trace").symlink_to(trace("fio-psync-qd1-nvme"))
    (tmp_path / "recording.json").write_text(json.dumps({"schema": "opline-recording"}))
    lat = {"runtime": 1000, "lat_ns": {"N": 77, "mean": 50_000.0}}
    for job, said in (
        ({"trim": lat}, "; fio's own figures (mean 50 us of 77 trims) are of other ops"),
        (
            {"write": lat, "job options": {"ramp_time": "2"}},
            "; fio's own figures (mean 50 us of 77 writes) begin after a ramp of 2 s",
        ),
    ):
        (tmp_path / "fio.json").write_text(json.dumps({"jobs": [job]}))
        first, *_ = glance(tmp_path, load_model("syscalls"), 50_000).lines
        assert first.endswith(said), first
        assert "fio says" not in first


def test_a_long_trace_is_not_read() -> None:
    (line,) = glance(Path("/no/such/place"), load_model("demo"), 10**9).lines
    assert "opline stages" in line


def test_a_trace_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (line,) = glance(tmp_path, load_model("demo"), 10).lines
    assert "trace" in line


def test_a_recording_without_ops_names_what_it_has(trace: Callable[[str], Path], tmp_path: Path) -> None:
    """Block requests, whose losses are told as beside ops, and no command about ops."""
    (tmp_path / "trace").symlink_to(trace("app-sync-qd4-nvme"))
    gap = {"loss": "not_recorded", "why": "none", "from_ns": 1, "to_ns": 2, "count": 1}
    (tmp_path / "recording.json").write_text(json.dumps({"schema": "opline-recording", "gaps": [gap]}))
    found = glance(tmp_path, load_model("demo"), 50_000)
    assert found.lines[0].startswith("No op to count") and not found.ops
    assert any(line.startswith("lost: not_recorded") for line in found.lines[1:]), found.lines
    assert glance(tmp_path, load_model("syscalls"), 50_000).ops


def test_what_to_type_next_can_be_pasted() -> None:
    for line in next_lines(Path("a run; rm x"), modelled=True, block=True):
        program, command, *arguments = shlex.split(line.removeprefix("next:"))
        assert (program, arguments[0]) == ("opline", "a run; rm x")
        parser_of(load(command).NAME).parse_args(arguments)
    assert list(next_lines(Path("run"), modelled=False, block=True)) == ["next:  opline hist run"]
    assert list(next_lines(Path("run"), modelled=False, block=False)) == ["next:  opline events run --limit 20"]
    assert all(" ./-x" in line for line in next_lines(Path("-x"), True, True)), "a name like an option"
