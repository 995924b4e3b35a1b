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
FUZZ_RUNS = "10000"  # inputs of each target, the same ones each time: a commit passes always, or never
FUZZ_SECONDS = os.environ.get("OPLINE_FUZZ_SECONDS")  # of all targets together, with new inputs each time
MUTANTS = os.environ.get("OPLINE_MUTANTS", "6")  # of each kind of file


@pytest.mark.parametrize("target", ["native-asan", "native-fuzz"])
def test_make(target: str) -> None:
    limit = f"SECONDS={FUZZ_SECONDS}" if FUZZ_SECONDS else f"RUNS={FUZZ_RUNS}"
    argv = ["make", "--no-print-directory", target, limit]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout)
    if done.returncode != 0:
        pytest.fail(f"make {target}:\n{done.stdout[-8000:]}{done.stderr[-8000:]}", pytrace=False)


def test_damaged_files_of_every_kind_break_no_command() -> None:
    """Under the sanitizers: more are tried with more --mutants."""
    native = ROOT / "correlator" / "native"
    made: list[str | Path] = ["make", "--no-print-directory", "-s", "-C", native, f"-j{os.cpu_count()}", "asan-python"]
    subprocess.run(made, check=True, capture_output=True, text=True)
    asked = ["clang-14", "-print-file-name=libclang_rt.asan-x86_64.so"]
    library = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    environment = os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # Python's own stay
        "PYTHONPATH": str(native / "build" / "asan" / "room"),
    }
    python = str(ROOT / ".venv" / "bin" / "python")
    where = [python, "-c", "import opline._core as core; print(core.__file__)"]
    loaded = subprocess.run(where, check=True, env=environment, capture_output=True, text=True).stdout
    assert loaded.startswith(environment["PYTHONPATH"])
    options = ["--mutants", MUTANTS, "--no-sound", "--seconds", "60", "--mib", "2048"]
    argv = [python, "-m", "tests.faults.files", *options]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    print(done.stdout)
    if done.returncode != 0:
        pytest.fail(f"{done.stdout[-8000:]}{done.stderr[-8000:]}", pytrace=False)
