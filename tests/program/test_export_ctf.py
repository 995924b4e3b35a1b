# SPDX-License-Identifier: MIT
"""A run's ops as a CTF trace, for babeltrace2, alone and beside the trace of the run, and for opline."""

from __future__ import annotations

import csv
import io
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from tests.lib.build_run import P, RunBuilder
from tests.lib.recorded import RunOf

from opline_analyses.cli import main
from opline_analyses.export.ctf import EVENTS

_LINE = re.compile(r"\[(\d+)\] .*?opline:(\w+): \{ (.*) \}")


def _events(*folders: Path) -> list[tuple[int, str, str]]:
    """Time, name and fields of opline's events, as babeltrace2 prints them."""
    argv = ["babeltrace2", "--clock-cycles", "--no-delta", *map(str, folders)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [(int(t), name, fields) for t, name, fields in _LINE.findall(done.stdout)]


def _number(fields: str, name: str) -> int:
    (found,) = re.findall(rf"(?:^|, ){name} = (-?\d+)", fields)
    return int(found)


def test_babeltrace2_has_the_ops_of_the_csv(run_of: RunOf, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = run_of("demo-kernel").path
    assert main(["export", str(run), "--to", "ctf", "-o", str(tmp_path / "ops")]) == 0
    assert main(["csv", str(run)]) == 0
    rows = {int(row["op_id"]): row for row in csv.DictReader(io.StringIO(capfd.readouterr().out))}
    events = _events(tmp_path / "ops")
    begins = {_number(f, "op_id"): t for t, name, f in events if name == "op_begin"}
    ends = {_number(f, "op_id"): (t, _number(f, "latency_ns")) for t, name, f in events if name == "op_end"}
    parts: defaultdict[int, int] = defaultdict(int)
    for _, name, fields in events:
        if name == "op_stage":
            parts[_number(fields, "op_id")] += _number(fields, "duration_ns")
    assert rows
    assert begins == {n: int(row["begin_ns"]) for n, row in rows.items()}
    assert ends == {n: (int(row["end_ns"]), int(row["latency_ns"])) for n, row in rows.items()}
    assert parts == {n: int(row["latency_ns"]) - int(row["unattributed_ns"]) for n, row in rows.items()}
    assert [t for t, _, _ in events] == sorted(t for t, _, _ in events)
    assert main(["events", str(tmp_path / "ops")]) == 0
    assert len(capfd.readouterr().out.splitlines()) == len(events)


def test_it_lies_on_the_clock_of_its_trace(run_of: RunOf, tmp_path: Path) -> None:
    found = run_of("demo-kernel")
    assert main(["export", str(found.path), "--to", "ctf", "--limit", "3", "-o", str(tmp_path / "ops")]) == 0
    argv = ["babeltrace2", "--clock-cycles", "--no-delta", str(found.manifest["trace"]), str(tmp_path / "ops")]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    mine = {line.split("]")[0] for line in lines if "opline:op_begin" in line}
    assert len(mine) == 3
    assert mine <= {line.split("]")[0] for line in lines if "opline:op_" not in line}  # an op begins at an event
    # in one order of time: beside the events of its op
    first = next(n for n, line in enumerate(lines) if "opline:op_begin" in line)
    assert any(line.split("]")[0] in mine for line in lines[max(0, first - 20) : first + 20] if "opline:" not in line)


def test_unknown_is_no_element_and_any_name_is_a_text(tmp_path: Path) -> None:
    run = RunBuilder()
    name = 'a "b"\\ \n\x1b[31m é'
    run.op([P("a", 1000, comm=name), P("b", 3000, stage=name)], obj=name, op_class="")
    run.op([P("a", 2000), P("b", 2000, stage="s")])
    run.write(tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--to", "ctf", "-o", str(tmp_path / "ops")]) == 0
    events = _events(tmp_path / "ops")
    assert [(t, name) for t, name, _ in events] == [
        (1000, "op_begin"), (1000, "op_stage"), (2000, "op_begin"), (2000, "op_stage"), (2000, "op_end"),
        (3000, "op_end"),
    ]  # fmt: skip
    assert "request_id = [ ]" in events[1][2]
    assert {name for _, name, _ in events} == EVENTS.keys()


def test_nothing_is_overwritten_and_no_half_stays(
    run_of: RunOf, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = run_of("demo-qd4").path
    (tmp_path / "there").mkdir()
    for target in ("there", "-"):
        assert main(["export", str(run), "--to", "ctf", "-o", str(tmp_path / target) if target != "-" else "-"]) == 2
        said = capfd.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in run.iterdir():
        if file.is_file():
            (broken / file.name).write_bytes(file.read_bytes())
    (broken / "stages.parquet").write_bytes(b"PAR1")
    assert main(["export", str(broken), "--to", "ctf", "-o", str(tmp_path / "half")]) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["broken", "there"]


def test_events_come_in_order_however_few_are_sorted_at_a_time(
    run_of: RunOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = str(run_of("demo-kernel").path)
    assert main(["export", run, "--to", "ctf", "-o", str(tmp_path / "many")]) == 0
    monkeypatch.setattr("opline_analyses.export.ctf._PARTS", 3)
    monkeypatch.setattr("opline_analyses.export.ctf._MOST", 100)
    assert main(["export", run, "--to", "ctf", "-o", str(tmp_path / "few")]) == 0
    assert (tmp_path / "few" / "ops").read_bytes() == (tmp_path / "many" / "ops").read_bytes()
