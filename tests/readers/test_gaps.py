# SPDX-License-Identifier: MIT
"""What the recorder knew to be missing (``recording.json``) is in the ledger, taints ops, and is each analysis' last
line.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opline import locks
from opline.errors import OplineError
from opline.folder import Folder
from opline.gaps import FLUSHED_WITHIN_NS, gaps_of
from opline.losses import BY_NAME, Gap, Severity
from opline.paths import LOCK_NAME
from opline.readers.stream_ends import last_packet_end_ns
from opline.readers.trace import find_traces
from opline_analyses.cli import main

NAME = "app-sync-qd4-nvme"
MODEL = str(Path(__file__).parents[1] / "models" / "lab.toml")
Recorded = Callable[..., Path]


@pytest.fixture
def recorded(trace: Callable[[str], Path], tmp_path: Path) -> Recorded:
    """A recording of a sound trace whose manifest says what a test wants."""

    def make(**note: Any) -> Path:
        shutil.copytree(trace(NAME), tmp_path / "run" / "trace")
        document = {"schema": "opline-recording", "schema_version": 1, "state": "complete", "model": None, **note}
        (tmp_path / "run" / "recording.json").write_text(json.dumps(document))
        return tmp_path / "run"

    return make


def ops_of(run: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[int, int]]:
    """Begin and end of all complete ops."""
    assert main(["sql", str(run), "--model", MODEL, "--csv", "SELECT begin_ns, end_ns FROM ops WHERE complete"]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    return [(int(b), int(e)) for b, e in (row.split(",") for row in rows)]


def test_a_gap_is_a_loss_taints_its_interval_and_is_said_last(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded(gaps=[])
    ops = ops_of(run, capsys)
    cut_ns = sorted(end for _, end in ops)[len(ops) // 2]
    touched = sum(end >= cut_ns for _, end in ops)
    assert 0 < touched < len(ops)
    gap = {"loss": "collector_died", "why": "the BPF collector died", "from_ns": cut_ns, "to_ns": None, "count": 1}
    note = json.loads((run / "recording.json").read_text())
    note |= {"gaps": [gap], "command": {"begin_monotonic_ns": cut_ns - 1_500_000_000}}
    (run / "recording.json").write_text(json.dumps(note))
    last = "opline: the recording is not whole: from 1.500 s on the BPF collector died."
    shares: set[str] = set()
    for command in (
        ["stages"],
        ["stages", "--class", "write"],
        ["csv"],
        ["ops", "--limit", "1"],
        ["requests"],
        ["losses"],
    ):
        status = main([*command[:1], str(run), "--model", MODEL, *command[1:], "--max-loss", "0"])
        said = capsys.readouterr()
        assert status == 3, command
        *_, line, loss = said.err.splitlines()
        assert line.startswith(last) and loss == "opline: 1 lost, more than --max-loss 0.", command
        shares |= set(re.findall(r"lost: .* % of the ops \((\d+ of \d+)\) overlap: ", said.err))
    assert main(["losses", str(run), "--model", MODEL, "--json"]) == 0
    losses = json.loads(capsys.readouterr().out)
    counts = {entry["loss"]: entry["count"] for entry in losses["losses"]}
    overlap = counts["tainted_ops"] + counts.get("unsplit_ops", 0)
    assert shares == {f"{overlap} of {len(ops) + counts.get('incomplete_ops', 0)}"}
    assert counts["collector_died"] == 1 and touched <= counts["tainted_ops"] <= touched + 4
    (interval,) = losses["discarded"]
    assert interval["begin_ns"] == cut_ns and interval["end_ns"] is None and interval["ops"] == counts["tainted_ops"]


@pytest.mark.parametrize(
    ("note", "loss"),
    [
        ({"tracing_ended": "sessiond_died", "write_failed": True}, "tracer_died"),
        ({"write_failed": True}, "writes_failed"),
        ({"block_source": "bpf", "collector": None}, "collector_died"),
    ],
)
def test_what_older_recordings_say(recorded: Recorded, note: dict[str, Any], loss: str) -> None:
    """They say no time, so it is the whole recording that is doubtful."""
    run = recorded(**note)
    assert main(["losses", str(run), "--model", MODEL, "--max-loss", "0"]) == 3
    (gap,) = gaps_of(json.loads((run / "recording.json").read_text()), lambda: None)
    assert (gap.loss, gap.from_ns, gap.to_ns) == (loss, None, None)


@pytest.mark.parametrize("why", ["size_limit", "disk_space"])
def test_what_older_recordings_say_of_an_early_end(recorded: Recorded, why: str) -> None:
    """The session was stopped in order: what is in the trace is whole."""
    run = recorded(tracing_ended=why)
    assert main(["losses", str(run), "--model", MODEL, "--max-loss", "0"]) == 3
    end_ns = last_packet_end_ns(find_traces(run / "trace"))
    (gap,) = gaps_of(json.loads((run / "recording.json").read_text()), lambda: end_ns)
    assert (gap.loss, gap.from_ns, gap.to_ns) == ("recording_cut_short", end_ns, None)


def test_a_recording_that_nobody_finished_is_doubtful_at_its_end(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded(state="recording", gaps=[])
    end_ns = last_packet_end_ns(find_traces(run / "trace"))
    assert end_ns is not None
    assert main(["losses", str(run), "--model", MODEL, "--json", "--max-loss", "0"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert [entry["loss"] for entry in document["losses"] if entry["severity"] == "data_loss"] == [
        "recording_unfinished"
    ]
    assert document["discarded"][0]["begin_ns"] == end_ns - FLUSHED_WITHIN_NS


def test_a_whole_recording_says_nothing(recorded: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    run = recorded(gaps=[], tracing_ended="", write_failed=False, block_source="bpf", collector={"lost_ring": 0})
    assert main(["stages", str(run), "--model", MODEL, "--max-loss", "0"]) == 0
    assert "not whole" not in capsys.readouterr().err
    assert gaps_of(None, lambda: None) == []


@pytest.mark.parametrize("gaps", [7, [1], [{}], [{"loss": "x", "why": "", "from_ns": 0, "to_ns": 0, "count": 1}]])
def test_gaps_that_are_none(gaps: Any) -> None:
    with pytest.raises(OplineError, match="gaps"):
        gaps_of({"gaps": gaps}, lambda: None)


def test_every_gap_counts_for_max_loss() -> None:
    names = (
        "recording_cut_short",
        "recording_unfinished",
        "tracer_died",
        "writes_failed",
        "collector_died",
        "streams_stuck",
    )
    assert all(BY_NAME[name].severity is Severity.DATA_LOSS for name in (*names, "discarded_at_end"))
    assert Gap("tracer_died", "x", 5).plan() == {"why": "x", "begin_ns": 5, "end_ns": None}


def test_no_run_stays_of_a_recording_that_goes_on(recorded: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    """A command given meanwhile has what there is, and the one given afterwards all of it."""
    run = recorded(state="recording", gaps=[], model={"argument": MODEL})
    with Folder(run) as folder:
        lock = locks.make(LOCK_NAME, folder.descriptor)  # as a recorder that lives holds it
    assert lock is not None
    stream = max((run / "trace").rglob("ust/**/*_0"), key=lambda path: path.stat().st_size)
    whole = stream.read_bytes()

    def ops() -> tuple[int, str]:
        assert main(["sql", str(run), "--csv", "SELECT count(*) FROM ops"]) == 0
        said = capsys.readouterr()
        return int(said.out.split()[1]), said.err

    number, said = ops()
    assert number > 0
    assert "is still at it" in said
    assert not (run / "manifest.json").exists()
    assert main(["stages", str(run)]) == 0
    capsys.readouterr()
    assert not (run / "manifest.json").exists()
    # what opline made of recordings that went on
    note = json.loads((run / "recording.json").read_text())
    os.close(lock)  # it is killed
    stream.write_bytes(b"")
    few, _ = ops()
    assert few < number
    assert (run / "manifest.json").exists()
    stream.write_bytes(whole)
    assert ops()[0] == few  # killed: nothing has come since
    (run / "recording.json").write_text(json.dumps(note | {"state": "complete"}))
    number_then, said = ops()
    assert number_then == number
    assert "not whole" not in said
