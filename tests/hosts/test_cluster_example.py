# SPDX-License-Identifier: MIT
"""examples/cluster/run: two hosts on this machine, from the recordings to the answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[2]


def test_the_example_of_two_hosts(tmp_path: Path, runtime: Path) -> None:
    out = tmp_path / "two"
    try:
        done = subprocess.run(
            [ROOT / "examples" / "cluster" / "run", "-o", out, "--ops", "600"],
            env={**os.environ, "OPLINE": str(Path(sys.executable).with_name("opline")), "TMPDIR": str(tmp_path)},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"not done after {late.timeout} s: {late.stdout!r} {late.stderr!r}")
    assert done.returncode == 0, done.stderr
    steps = [line.split()[1:3] for line in done.stderr.splitlines() if line.startswith("cluster: ")]
    assert steps == [["the", "server"], ["the", "client"], ["the", "server"]]
    for line in (
        "== opline join",
        "server aligned",
        "== opline stages",
        "client to server and back: ",
        "== opline why",
    ):
        assert line in done.stdout
    _, server = json.loads((out / "all" / "cluster.json").read_text())["hosts"]
    assert 37e9 < server["offset_ns"] < 37.01e9  # 23 ppm of the seconds since the clock began
    assert sorted(path.name for path in out.iterdir()) == ["all", "client", "server"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("opline-")] == []
    program = ROOT / "examples" / "cluster" / "run"
    again = subprocess.run([program, "-o", out], capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert again.stderr == f"cluster: {out} exists: remove it, or choose another folder with -o\n"
