# SPDX-License-Identifier: MIT
"""What `run -h` of an example says is cut out of its own text: each option that it takes is in it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["ceph", "ci", "demo-store", "postgresql", "rocksdb"])
def test_each_option_is_in_its_help(name: str) -> None:
    program = EXAMPLES / name / "run"
    done = subprocess.run([program, "-h"], capture_output=True, text=True, timeout=60, check=True)
    options = re.findall(r"^ +(--[a-z-]+)\)", program.read_text(), re.MULTILINE)
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert options == [option for option in options if any(line.startswith(f"{option} ") for line in lines)]
    assert lines[0], "it begins with what it does"
