# SPDX-License-Identifier: MIT
"""A trace beside others whose metadata declares no stream: the others are read, and what is missing is a gap."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.lib.recorded import RunOf
from tests.readers.test_bad_input import LAB, NAME, READERS, damaged, says
from tests.readers.test_readers import plain

from opline.capture.lttng import counting
from opline.correlation import correlate
from opline.model import load_model
from opline.readers.metadata import metadata_text

__all__ = ["damaged"]


def without_declarations(folder: Path) -> int:
    """Cuts a trace's metadata before its first stream, as LTTng writes it for a program that ends before it is
    registered; gives the bytes of its streams."""
    text = metadata_text(folder)
    (folder / "metadata").write_text(text[: text.index("\nstream {")])
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file() and path.name != "metadata")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("emptied", [False, True])
def test_a_program_that_ended_before_it_was_registered_costs_its_own_events_alone(
    damaged: Path, run_of: RunOf, tmp_path: Path, reader: str, emptied: bool
) -> None:
    (ust,) = (damaged / "ust").rglob("metadata")
    shutil.copytree(ust.parent, other := damaged / "ust" / "uid" / "1" / "64-bit")
    size = without_declarations(other)
    if emptied:
        (other / "metadata").write_bytes(b"")
    manifest = correlate(damaged, load_model(LAB), tmp_path / "run", reader=reader, progress=False)
    expected = run_of(NAME, reader=reader)
    assert manifest["core"]["events"] == expected.core["events"]
    assert plain(tmp_path / "run" / "ops.parquet") == plain(expected.path / "ops.parquet")
    (gap,) = manifest["gaps"]
    assert gap["loss"] == "not_recorded"
    assert gap["why"].startswith(f"{size:,} bytes of ust/uid/1/64-bit cannot be read: its metadata declares no stream")


def test_a_trace_that_declares_nothing_is_refused(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for metadata in list(damaged.rglob("metadata")):
        without_declarations(metadata.parent)
    status, said = says(damaged, capsys)
    assert status == 1
    assert f"{damaged} has no events: its metadata declares no stream" in said


def test_what_declares_nothing_has_no_events_to_count(damaged: Path) -> None:
    (ust,) = (damaged / "ust").rglob("metadata")
    without_declarations(ust.parent)
    counts = counting.count(damaged, 60)
    assert counts is not None
    assert {domain for domain, _channel in counts} == {"kernel"}
    assert None not in counts.values()
