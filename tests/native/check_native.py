# SPDX-License-Identifier: MIT
"""The native core more closely: its tests under the sanitizers, and nonsense for its readers.

`./check --native` runs it, as CI does: it takes minutes, and packages that nothing else needs.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.lib.recorded import NAMES

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


def made(target: str) -> Path:
    """The folder for PYTHONPATH that a target of the native Makefile makes."""
    native = ROOT / "correlator" / "native"
    argv: list[str | Path] = ["make", "--no-print-directory", "-s", "-C", native, f"-j{os.cpu_count()}", target]
    subprocess.run(argv, check=True, capture_output=True, text=True)
    return native / "build" / target.removesuffix("-python") / "room"


def test_threads_that_read_and_write_meet_nowhere() -> None:
    """The thread sanitizer says nothing over all recorded traces."""
    room = made("tsan-python")
    environment = os.environ | {
        "OPLINE_THREADS": "4",
        "TSAN_OPTIONS": f"suppressions={ROOT / 'correlator' / 'native' / 'tests' / 'tsan.supp'}",
        "PYTHONPATH": os.pathsep.join(
            [str(room), *map(str, (ROOT, *(ROOT / ".venv").glob("lib/python3*/site-packages")))]
        ),
    }
    # it wants the addresses of a program where they are without randomisation
    argv = ["setarch", "-R", str(room.parent / "python3"), "-m", "tests.native.all_traces"]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout.splitlines()
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-8000:]}"
    assert "ThreadSanitizer" not in done.stderr
    assert said[0].startswith(str(room))
    assert said[1:] == NAMES


def test_damaged_files_of_every_kind_break_no_command() -> None:
    """Under the sanitizers: more are tried with more --mutants."""
    room = made("asan-python")
    asked = ["clang-14", "-print-file-name=libclang_rt.asan-x86_64.so"]
    library = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    environment = os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # Python's own stay
        "PYTHONPATH": str(room),
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
