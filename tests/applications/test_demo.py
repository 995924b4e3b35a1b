# SPDX-License-Identifier: MIT
"""./demo: what a reader of README.md runs first."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[2]


def test_demo_records_and_shows(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "demo", "--verify", "211", tmp_path],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    shown = re.findall(r"^\$ \S+ (?:(\w+) |.*(truth_demo)\.py )", done.stdout, re.MULTILINE)
    commands = ["record", "ops", "stages", "coverage", "losses", "truth_demo"]
    assert ["".join(found) for found in shown] == [*commands * 2, "compare", "plot", "plot"], done.stderr
    assert "\x1b" not in done.stdout + done.stderr  # neither is a terminal
    # How near the times are depends on what else the machine does: the last command may say so.
    failed = re.findall(r"^demo: exit status \d+: (.*)", done.stderr, re.MULTILINE)
    assert all("truth_demo.py" in command for command in failed) and done.returncode == bool(failed)
    for depth in (1, 16):
        recording = json.loads((tmp_path / f"demo-qd{depth}" / "recording.json").read_text())
        assert (recording["state"], recording["discarded_count"]) == ("complete", 0)
        assert "mean of 211 ops: stages" in done.stdout
        assert (tmp_path / f"demo-qd{depth}.png").read_bytes().startswith(b"\x89PNG")
        assert "One run of each side: these are differences" in done.stdout
        assert "FAIL stitching" not in done.stdout and "FAIL transitions" not in done.stdout
