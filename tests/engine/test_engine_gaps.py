# SPDX-License-Identifier: MIT
"""A command by an engine says of each recording what the command about that recording alone says, with its name."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.test_engine import dask, said
from tests.lib.damages import packets_of
from tests.lib.recorded import HERE, LAB

__all__ = ["dask"]
Capture = pytest.CaptureFixture[str]
STREAMS = Path("trace") / "ust" / "uid" / "0" / "64-bit"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of 2500 ops."""
    folder = tmp_path_factory.mktemp("given")
    archive = Path(__file__).parents[1] / "hosts" / "two-hosts.tar.xz"
    subprocess.run(["tar", "-xJf", archive, "-C", folder], check=True)
    return folder / "two-hosts" / "client"


def cut(recording: Path) -> None:
    """A file of the trace ends inside a packet."""
    with (recording / STREAMS / "app_0").open("r+b") as file:
        file.truncate(file.seek(0, 2) // 2 + 100)


def without_a_packet(recording: Path) -> None:
    """The third of one file."""
    stream = recording / STREAMS / "app_0"
    shutil.rmtree(recording / STREAMS / "index")
    data = stream.read_bytes()
    begin, end = packets_of(data)[2]
    stream.write_bytes(data[:begin] + data[end:])


def edited(recording: Path, **facts: Any) -> None:
    file = recording / "recording.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | facts))


def killed(recording: Path) -> None:
    """Its recorder was."""
    edited(recording, state="recording")


def cut_short(recording: Path) -> None:
    """Tracing ended 1 s after the command began."""
    begin_ns = json.loads((recording / "recording.json").read_text())["command"]["begin_monotonic_ns"]
    gap = {"loss": "recording_cut_short", "why": "--size-limit was reached", "from_ns": begin_ns + 10**9}
    edited(recording, gaps=[gap | {"to_ns": None, "count": 1}], state="incomplete")


def nothing(recording: Path) -> None:
    """It is whole."""


DAMAGES = {"a-cut": cut, "b-packet": without_a_packet, "c-whole": nothing, "d-killed": killed, "e-short": cut_short}


def damaged(client: Path, folder: Path) -> Path:
    for name, damage in DAMAGES.items():
        damage(Path(shutil.copytree(client, folder / name)))
    return folder


def alone(capfd: Capture, words: tuple[str, ...], folder: Path) -> tuple[list[str], int]:
    """What the command about each recording alone says, with the name of the recording: the lines before the figures,
    then those after them; and the greatest exit status.
    """
    before: list[str] = []
    after: list[str] = []
    worst = 0
    for name in DAMAGES:
        status, _, err = said(capfd, words[0], folder / name, *words[1:])
        worst = max(worst, status)
        for line in err.splitlines():
            text = line.removeprefix("opline: ")
            (after if text.startswith("the recording is not whole") else before).append(f"opline: {name}: {text}")
    return before + after, worst


def of_one(lines: list[str]) -> list[str]:
    """The lines about one recording: what `stages` left out is a sum over all of them."""
    return [line for line in lines if "left out" not in line]


@pytest.mark.parametrize("words", [("stages",), ("hist", "--of", "ops")], ids=" ".join)
def test_each_loss_and_each_gap_is_said_by_name(
    words: tuple[str, ...], client: Path, tmp_path: Path, dask: str, capfd: Capture
) -> None:
    given = damaged(client, tmp_path / "alone")
    first, _ = alone(capfd, words, given)
    again, status = alone(capfd, words, given)
    assert status == 0
    assert sum("the recording is not whole" in line for line in again) == 2
    for name in ("a-cut", "b-packet", "d-killed", "e-short"):
        assert any(line.startswith(f"opline: {name}: ") for line in again), name
    assert not any("c-whole: lost" in line or "c-whole: the recording" in line for line in again)
    together = damaged(client, tmp_path / "together")
    ended, figures, err = said(capfd, words[0], together, *words[1:], "--engine", "processes:2")
    assert ended == 0 and figures
    assert of_one(err.replace("/together/", "/alone/").splitlines()) == of_one(first)
    for engine in ("processes:4", f"dask:{dask}") if words[0] == "stages" else ():
        ended, out, err = said(capfd, words[0], together, *words[1:], "--engine", engine)
        assert (ended, out) == (0, figures), engine
        assert of_one(err.splitlines()) == of_one(again), engine


def test_the_exit_status_is_that_of_the_worst_recording(client: Path, tmp_path: Path, capfd: Capture) -> None:
    folder = damaged(client, tmp_path)
    lines, worst = alone(capfd, ("stages", "--max-loss", "0"), folder)
    assert worst == 3
    status, out, err = said(capfd, "stages", folder, "--max-loss", "0", "--engine", "processes:2")
    assert status == 3 and out
    assert [line for line in err.splitlines() if "not whole" in line] == [x for x in lines if "not whole" in x]
    assert err.splitlines()[-1].endswith("lost, more than --max-loss 0.")


def test_what_was_lost_is_said_of_a_recording_that_has_no_answer(client: Path, tmp_path: Path, capfd: Capture) -> None:
    """All of its ops overlap a gap, so none counts."""
    whole, gone = (Path(shutil.copytree(client, tmp_path / name)) for name in ("whole", "gone"))
    gap = {"loss": "tracer_died", "why": "the session daemon died", "from_ns": None, "to_ns": None, "count": 1}
    edited(gone, gaps=[gap], state="incomplete")
    status, _, err = said(capfd, "stages", gone)
    *lost, why = err.splitlines()
    assert status == 1 and lost and "No op to count" in why
    status, out, err = said(capfd, "stages", whole, "--also", gone, "--engine", "processes:2")
    assert status == 3 and out
    assert "1 of 2 recordings are not in the figures below: gone." in err
    for line in (*lost, why):
        assert f"opline: gone: {line.removeprefix('opline: ')}\n" in err


def test_what_is_written_back_later_counts_in_any_way(
    trace: Callable[[str], Path], tmp_path: Path, capfd: Capture
) -> None:
    """Of a trace that no run is kept of: whole, with a filter, by an engine."""
    name = "fie-buf-writeback"
    folder = Path(shutil.copytree(trace(name), tmp_path / name))
    shutil.copy(HERE / "traces" / f"{name}.filefrag", tmp_path)
    words = ("stages", folder, "--model", LAB, "--json")
    found = [
        json.loads(said(capfd, *words, *more)[1])["deferred"]
        for more in ((), ("--since", "0"), ("--engine", "processes"))
    ]
    assert found[0]["rows"] > 0
    assert found[1] == found[2] == found[0]
