# SPDX-License-Identifier: MIT
"""The core and the analyses on arm64: the native tests pass, and the answers are this machine's, byte for byte.

`./check --arm64` runs it on Debian 12, as root. Not collected by itself: it compiles for another machine, and emulates
that one (qemu-user), which takes minutes. Nothing of arm64 is installed: its libraries, headers and Python are unpacked
below CACHE. What records can't be tested so: the kernel is this machine's.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.install.roots import sources

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("OPLINE_ARM64_CACHE", "/var/tmp/opline-arm64"))
BUILD = ROOT / "correlator" / "native" / "build" / "arm64"
SUITE, PYTHON = "bookworm", "3.11"
UNPACKED = (
    "doctest-dev", "libc6-dev", f"libpython{PYTHON}-dev", f"libpython{PYTHON}-stdlib", "libstdc++-12-dev",
    "libzstd-dev", "nlohmann-json3-dev", f"python{PYTHON}-minimal", "zlib1g-dev",
)  # fmt: skip
PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_28_aarch64")


@pytest.fixture(scope="module")
def system() -> Path:
    """The root directory of an arm64 Debian, unpacked."""
    root, made = CACHE / "root", CACHE / "made"
    wanted = " ".join((SUITE, *UNPACKED))
    if not made.exists() or made.read_text() != wanted:
        subprocess.run(["rm", "-rf", root], check=True)
        CACHE.mkdir(exist_ok=True)
        make = ["mmdebstrap", "--quiet", "--variant=extract", "--mode=root", "--architectures=arm64"]
        subprocess.run([*make, f"--include={','.join(UNPACKED)}", SUITE, root, *sources(SUITE)], check=True)
        made.write_text(wanted)
    return root


@pytest.fixture(scope="module")
def make(system: Path) -> list[str]:
    """The command that compiles for that system, and what starts a program of it."""
    settings = {
        "BUILD": BUILD, "OUT": BUILD / "room", "CXX": f"aarch64-linux-gnu-g++ --sysroot={system}", "LTO": "",
        "CXXFLAGS": "-O1 -g0", "python_include": f"=/usr/include/python{PYTHON}", "ext_suffix": ".so",
        "RUN": f"qemu-aarch64-static -L {system}",
    }  # fmt: skip
    jobs = f"-j{os.cpu_count() or 1}"
    return ["make", "-s", jobs, "-C", str(ROOT / "correlator" / "native"), *(f"{k}={v}" for k, v in settings.items())]


def test_native(make: list[str]) -> None:
    subprocess.run([*make, "test"], check=True)


def test_answers(make: list[str], system: Path) -> None:
    """Of every recorded trace the tables, and what commands print of it."""
    subprocess.run([*make, "ext"], check=True)
    packages = CACHE / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    only = [f"--platform={platform}" for platform in PLATFORMS]
    pinned = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = [line for line in pinned if line.startswith(("duckdb=", "numpy="))]
    only += [f"--python-version={PYTHON}", "--only-binary=:all:", f"--target={packages}"]
    subprocess.run([*pip, *only, *wanted], check=True)
    path = [packages, ROOT, ROOT / "correlator", ROOT / "analyses"]
    there = {
        "PYTHONHOME": str(system / "usr"),
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    emulated = ["qemu-aarch64-static", "-L", str(system), str(system / f"usr/bin/python{PYTHON}")]
    assert b"aarch64" in said([*emulated, "-c", "import platform; print(platform.machine())"], there)
    theirs = said([*emulated, "-m", "tests.arm64.answers", str(BUILD / "room")], there)
    ours = said([sys.executable, "-m", "tests.arm64.answers"], {})
    pairs = list(zip(each(ours), each(theirs), strict=True))
    assert len(pairs) > 30
    for here, other in pairs:
        assert here == other


def said(argv: list[str], more: dict[str, str]) -> bytes:
    """What a program prints in the project's folder; fails with what it says on stderr, if it does."""
    done = subprocess.run(argv, cwd=ROOT, env={**os.environ, **more}, capture_output=True, check=False)
    assert done.returncode == 0, f"{shlex.join(argv)}\n{done.stderr.decode()[-4000:]}"
    return done.stdout


def each(lines: bytes) -> Iterator[dict[str, object]]:
    yield from map(json.loads, lines.splitlines())
