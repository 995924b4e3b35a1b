# SPDX-License-Identifier: MIT
"""A JSON document that is nested more deeply than Python follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from opline.capture.directory.recording import load
from opline.errors import OplineError
from opline.readers.trace import host_recorded
from opline.shapes import parsed

DEEP = '{"host": ' + "[" * 100_000 + "]" * 100_000 + "}"


def test_it_is_a_text_that_is_no_document() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed(DEEP)


def test_a_recording_json_of_this_kind_stops_no_trace(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "recording.json").write_text(DEEP)
    assert host_recorded(tmp_path / "trace") == {}
    with pytest.raises(OplineError, match="not JSON"):
        load(tmp_path)
