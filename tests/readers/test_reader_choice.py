# SPDX-License-Identifier: MIT
"""Which reader reads a trace, and what --verbose says about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lib.recorded import NAMES, model_of

from opline import _core
from opline.correlation import correlate
from opline.model import load_model
from opline.readers.babeltrace import version
from opline.readers.metadata import metadata_text
from opline.readers.trace import find_traces
from opline.store.checksums import KEY as CHECKSUMS
from opline.store.schema import TABLES
from opline_analyses.cli import main

SAID = "opline: {}: read by {}: {}"


@pytest.fixture
def odd_number(trace: Callable[[str], Path], tmp_path: Path) -> Path:
    """A sound trace that the native reader does not recognise: an event has a large number."""
    folder = tmp_path / "odd-number"
    folder.mkdir()
    source = min(p.parent for p in trace("app-sync-2m-nvme-split").rglob("metadata"))
    for path in source.iterdir():
        if path.name not in ("metadata", "index"):
            (folder / path.name).symlink_to(path)
    text = metadata_text(source)
    odd = 'event { id = 999999; name = "odd"; stream_id = 0; fields := struct { integer { size = 8; } n; }; };\n'
    (folder / "metadata").write_text("/* CTF 1.8 */\n" + text + odd)
    return folder


def stderr_of(capfd: pytest.CaptureFixture[str], *args: str | Path, status: int = 0) -> list[str]:
    capfd.readouterr()
    assert main(list(map(str, args))) == status
    return capfd.readouterr().err.splitlines()


@pytest.mark.parametrize("place", ["before", "after"])
def test_verbose_says_which_reader_and_why(
    place: str, trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    folder = trace("demo-ctf2")
    args = ["events", str(folder), "--limit", "1"]
    said = stderr_of(capfd, *(["--verbose", *args] if place == "before" else [*args, "--verbose"]))
    inner = folder / "ust" / "uid" / "0" / "64-bit"
    assert said == [SAID.format(inner, "the native reader", "it recognised the trace")]
    assert stderr_of(capfd, *args) == []


def test_what_the_native_reader_does_not_recognise(odd_number: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = ("events", odd_number, "--limit", "1", "--verbose")
    why = f"{odd_number}: an event id of 999999"
    bt2 = f"babeltrace2 {version()}"
    assert stderr_of(capfd, *args) == [
        SAID.format(odd_number, bt2, f"the native reader does not recognise the trace: {why}")
    ]
    assert stderr_of(capfd, *args, "--reader", "native", status=1) == [
        f"opline: The native reader does not read this: {why}. Use --reader bt2."
    ]
    assert stderr_of(capfd, *args, "--reader", "bt2") == [SAID.format(odd_number, bt2, "it was asked for")]


def test_the_environment_chooses_and_the_option_wins(
    odd_number: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("events", odd_number, "--limit", "1", "--verbose")
    monkeypatch.setenv("OPLINE_READER", "native")
    assert "does not read this" in stderr_of(capfd, *args, status=1)[0]
    assert "it was asked for" in stderr_of(capfd, *args, "--reader", "bt2")[0]
    monkeypatch.setenv("OPLINE_READER", "babeltrace")
    assert stderr_of(capfd, *args, status=2) == ["opline: There is no reader 'babeltrace': one of auto, native, bt2."]


def test_a_run_says_who_read_its_trace(
    trace: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    correlate(trace("demo-ctf2"), load_model("demo"), tmp_path, progress=False)
    assert stderr_of(capfd, "ops", tmp_path, "--verbose", "--slowest", "1") == [
        f"opline: {tmp_path}: a run; its trace was read by the reader native: it recognised the trace"
    ]


def checksums(name: str, trace: Callable[[str], Path], out: Path, threads: int) -> dict[str, Any]:
    """Of all tables of a run that was made with so many threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPLINE_THREADS", str(threads))
        manifest = correlate(trace(name), model_of(name), out, reader="native", progress=False)
    files = json.loads((out / "manifest.json").read_text())[CHECKSUMS]
    assert len(files) == len(TABLES)
    return {**files, "core": manifest["core"], "losses": manifest["losses"]}


@pytest.mark.parametrize("name", NAMES)
def test_one_thread_or_many_write_the_same_bytes(name: str, trace: Callable[[str], Path], tmp_path: Path) -> None:
    numbers = (1, 2, 3, 4, 8) if name in ("app-libaio-qd16-nvme", "demo-qd4", "ctf-merged") else (1, 8)
    one, *others = (checksums(name, trace, tmp_path / str(threads), threads) for threads in numbers)
    for other in others:
        assert other == one


@pytest.mark.parametrize("name", ["app-sync-qd4-nvme", "app-libaio-qd16-nvme", "demo-qd4"])
def test_one_thread_or_two_count_the_same(name: str, trace: Callable[[str], Path]) -> None:
    """Statistics alone, which the thread that decodes counts, too."""
    found = []
    for threads in (1, 2):
        reader = _core.NativeReader([str(path) for path in find_traces(trace(name))])
        core = _core.Core(model_of(name).plan_json())
        core.keep_tables(())
        core.keep_statistics(True, (), ())
        reader.open(core, threads)
        while reader.run(10_000):
            pass
        found.append((core.statistics(), core.summary()))
    assert found[0] == found[1]
    assert json.loads(found[0][0])["latency"]["count"] > 512  # more than wait in two blocks


def test_reading_that_is_given_up_ends_its_thread(trace: Callable[[str], Path]) -> None:
    reader = _core.NativeReader([str(path) for path in find_traces(trace("app-sync-qd4-nvme"))])
    core = _core.Core(model_of("app-sync-qd4-nvme").plan_json())
    reader.open(core, 2)
    assert reader.run(10_000)
    assert 10_000 <= core.events_seen() < 98_936
    assert reader.losses()["messages"] == []


def test_a_number_of_threads_that_is_none(trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    said = stderr_of(capfd, "events", trace("demo-ctf2"), "--limit", "1", "--threads", "many", status=2)
    assert said == ["opline: A number of threads is to be from 1 to 64, not 'many' (--threads)."]
