# SPDX-License-Identifier: MIT
"""Which reader reads a trace, and what --verbose says about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opline.readers.ctf import version
from opline.readers.metadata import metadata_text
from opline_analyses.cli import main

SAID = "opline: {}: read by {}: {}"


@pytest.fixture
def two_clocks(trace: Callable[[str], Path], tmp_path: Path) -> Path:
    """A sound trace that the native reader does not recognise: its metadata has a second clock, which nothing uses."""
    folder = tmp_path / "two-clocks"
    folder.mkdir()
    source = next(p.parent for p in trace("app-sync-2m-nvme-split").rglob("metadata"))
    for path in source.iterdir():
        if path.name not in ("metadata", "index"):
            (folder / path.name).symlink_to(path)
    text = metadata_text(source)
    (folder / "metadata").write_text(text + 'clock { name = "other"; freq = 1000; };\n')
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


def test_what_the_native_reader_does_not_recognise(two_clocks: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = ("events", two_clocks, "--limit", "1", "--verbose")
    why = f"{two_clocks}: 2 clocks in one trace"
    bt2 = f"babeltrace2 {version()}"
    assert stderr_of(capfd, *args) == [
        SAID.format(two_clocks, bt2, f"the native reader does not recognise the trace: {why}")
    ]
    assert stderr_of(capfd, *args, "--reader", "native", status=1) == [
        f"opline: The native reader does not read this: {why}. Use --reader bt2."
    ]
    assert stderr_of(capfd, *args, "--reader", "bt2") == [SAID.format(two_clocks, bt2, "it was asked for")]


def test_the_environment_chooses_and_the_option_wins(
    two_clocks: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("events", two_clocks, "--limit", "1", "--verbose")
    monkeypatch.setenv("OPLINE_READER", "native")
    assert "does not read this" in stderr_of(capfd, *args, status=1)[0]
    assert "it was asked for" in stderr_of(capfd, *args, "--reader", "bt2")[0]
    monkeypatch.setenv("OPLINE_READER", "babeltrace")
    assert stderr_of(capfd, *args, status=2) == ["opline: There is no reader 'babeltrace': one of auto, native, bt2."]


def test_a_run_says_who_read_its_trace(
    trace: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from opline.correlate import correlate
    from opline.model import load_model

    correlate(trace("demo-ctf2"), load_model("demo"), tmp_path, progress=False)
    assert stderr_of(capfd, "ops", tmp_path, "--verbose", "--slowest", "1") == [
        f"opline: {tmp_path}: a run; its trace was read by the reader native: it recognised the trace"
    ]
