# SPDX-License-Identifier: MIT
"""A machine that only records: the files of tests/vm/recorder under a Python without any other package."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[2]


def test_recording_needs_nothing_else(tmp_path: Path) -> None:
    """Also with events: what a recording says at its end about its ops needs the core, which is not there."""
    (tmp_path / "disk").write_bytes(bytes(64 << 20))
    bench = ROOT / "examples" / "demo-store" / "build" / "demo-bench"
    command = [str(bench), "--device", str(tmp_path / "disk"), "--ops", "20"]
    subprocess.run([ROOT / "tests" / "vm" / "recorder", tmp_path / "py"], check=True, timeout=60)
    bare = ["/usr/bin/python3", "-S", "-m", "opline_analyses"]
    done = subprocess.run(
        [*bare, "record", "--model", "demo", "--no-block", "-o", "run", "--", *command],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "py"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "which only records" in done.stderr
    document = json.loads((tmp_path / "run" / "recording.json").read_text())
    assert document["state"] == "complete" and document["event_count"] > 20
