# SPDX-License-Identifier: MIT
"""The native core more closely: its tests under the sanitizers, and nonsense for its readers.

`./check --native` runs it, as CI does: it takes minutes, and packages that nothing else needs.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FUZZ_SECONDS = os.environ.get("OPLINE_FUZZ_SECONDS", "24")  # of all targets together


@pytest.mark.parametrize("target", ["native-asan", "native-fuzz"])
def test_make(target: str) -> None:
    argv = ["make", "--no-print-directory", target, f"SECONDS={FUZZ_SECONDS}"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout)
    if done.returncode != 0:
        pytest.fail(f"make {target}:\n{done.stdout[-8000:]}{done.stderr[-8000:]}", pytrace=False)
