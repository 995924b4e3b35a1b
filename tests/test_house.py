# SPDX-License-Identifier: MIT
"""The house's checks: formatting, lint, types, generated docs, and the native tests under the sanitizers.

Each is a target of the Makefile, so that `make lint` and the test command can't differ.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("target", ["format-check", "ruff", "mypy", "docs-check", "native-asan", "native-fuzz"])
def test_make(target: str) -> None:
    # MAKEFLAGS of a make above us would hand down its job server
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(
        ["make", "--no-print-directory", target], cwd=ROOT, env=env, text=True, capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.fail(f"make {target}:\n{done.stdout[-8000:]}{done.stderr[-8000:]}", pytrace=False)
