# SPDX-License-Identifier: MIT
"""Facts about this machine and its tools: host, kernel, versions, clocks, whether lttng-modules can be loaded."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from opline import __version__
from opline.capture.machine.clocks import clock_offset_ns
from opline.capture.machine.processes import boot_id
from opline.interpreter import python
from opline.packages import how_to_install

_DEBIANS = Path("/usr/lib/python3/dist-packages")  # of Debian's Python alone


@dataclass(frozen=True, slots=True)
class Host:
    """Where a recording was made."""

    hostname: str
    kernel: str
    uname: str
    machine: str
    cpu_count: int
    boot_id: str
    clock_offset_ns: int  # of the recorder's time namespace: CLOCK_MONOTONIC there minus that of the root one
    root: bool


@dataclass(frozen=True, slots=True)
class ClockSample:
    """CLOCK_REALTIME and CLOCK_MONOTONIC read together; ``error_ns`` bounds how far apart the readings were."""

    monotonic_ns: int
    realtime_ns: int
    realtime_minus_monotonic_ns: int
    error_ns: int


def host() -> Host:
    """This machine."""
    u = platform.uname()
    return Host(
        hostname=u.node,
        kernel=u.release,
        uname=f"{u.system} {u.node} {u.release} {u.version} {u.machine}",
        machine=u.machine,
        cpu_count=os.cpu_count() or 1,
        boot_id=boot_id(),
        clock_offset_ns=clock_offset_ns(),
        root=os.geteuid() == 0,
    )


def sample_clocks(rounds: int = 9) -> ClockSample:
    """Offset between wall time and the clock of the trace: of several bracketed readings the tightest."""
    best: ClockSample | None = None
    for _ in range(rounds):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if best is None or after - before < 2 * best.error_ns:
            middle = (before + after) // 2
            best = ClockSample(middle, wall, wall - middle, (after - before + 1) // 2)
    assert best is not None
    return best


def _output(*argv: str, timeout_s: float = 20.0) -> str | None:
    """What a program prints, or None if it is not there or fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 and done.stdout.strip() else None


def _first_number(text: str | None) -> str | None:
    found = re.search(r"(?<!\d)\d++\.\d+(?:\.\d+)?", text or "")
    return found.group(0) if found else None


def _installed(name: str) -> str | None:
    """Version of a Python distribution, by its metadata: whether its library can be loaded does not matter."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def _python_module(name: str) -> str | None:
    """Version of a module of this interpreter, asked in another process: importing it here would load its library."""
    code = f"import {name}; print(getattr({name}, '__version__', 'unknown'))"
    return _output(*python("-c", code))


def lttng_ust_version() -> str | None:
    """LTTng-UST has no program that says its version: ask pkg-config, else the package manager."""
    version = _output("pkg-config", "--modversion", "lttng-ust")
    if version is None and shutil.which("dpkg-query"):
        version = _output("dpkg-query", "-W", "-f", "${Version}\n", "liblttng-ust1*")
    if version is None and shutil.which("rpm"):
        version = _output("rpm", "-q", "--qf", "%{VERSION}", "lttng-ust")
    return _first_number(version)


@functools.cache
def versions() -> dict[str, str | None]:
    """Versions of everything that takes part in a recording; None where it is not installed."""
    return {
        "opline": __version__,
        "python": platform.python_version(),
        "lttng-tools": _first_number(_output("lttng", "--version")),
        "lttng-ust": lttng_ust_version(),
        "babeltrace2": _first_number(_output("babeltrace2", "--version")),
        "bcc": _installed("bcc"),
    }


def how_to_get(module: str, package: str) -> str:
    """What gives this Python a module that comes as a Debian package: it may be there for Debian's Python alone."""
    if (_DEBIANS / module).exists():
        return (
            f"{package} is installed, but not for this Python: make its environment with /usr/bin/python3 -m venv "
            "--system-site-packages"
        )
    return how_to_install(package)


def bcc_version() -> str | None:
    """Version of bcc's Python module."""
    return _python_module("bcc")


def bt2_version() -> str | None:
    """Version of babeltrace2's Python bindings."""
    return _python_module("bt2")


def lttng_modules() -> str | None:
    """``loaded``, ``loadable``, or None if the running kernel has no lttng-modules."""
    try:
        if re.search(r"^lttng_tracer ", Path("/proc/modules").read_text(), re.MULTILINE):
            return "loaded"
    except OSError:
        pass
    modules = Path("/lib/modules") / platform.release()
    if any(modules.rglob("lttng-tracer.ko*")):
        return "loadable"
    return None
