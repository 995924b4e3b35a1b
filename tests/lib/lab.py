# SPDX-License-Identifier: MIT
"""The lab application (tests/lab_app), built."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "lab_app"


def build_lab(folder: Path) -> Path:
    """The program, in this folder. Its functions can be probed by name."""
    binary = folder / "lab"
    argv = ["gcc", "-O2", f"-I{SOURCES}", "-rdynamic", "-o", str(binary), f"{SOURCES}/lab.c", "-llttng-ust", "-ldl"]
    subprocess.run(argv, check=True, timeout=120)
    return binary
