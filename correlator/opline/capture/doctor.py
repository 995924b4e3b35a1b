# SPDX-License-Identifier: MIT
"""What this machine can capture, with what, and what to install: the checks behind ``opline doctor``.

Every check really tries: it connects to the socket, makes a BPF map, loads the module's version in another process.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path

from opline.applications import table
from opline.capture.bpf import kernel, syscalls
from opline.capture.bpf.btf import Btf
from opline.capture.collectors import openfiles
from opline.capture.directory import leftovers
from opline.capture.lttng import recipe, sessiond
from opline.capture.machine import machine, space
from opline.capture.machine.checks import Check, Status
from opline.capture.sources import blocksource
from opline.errors import OplineError
from opline.packages import how_to_install
from opline.values import Value

#: A recording of a minute at 100 k events/s is about 600 MB.
_COMFORTABLE_BYTES = 2 << 30
_BTF = Path("/sys/kernel/btf/vmlinux")
_TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
_LOCKDOWN = Path("/sys/kernel/security/lockdown")


class Report(Value):
    """All checks and what follows from them."""

    checks: tuple[Check, ...]
    app_events: bool
    block_source: str  # "kernel", "bpf", "none"
    can_read: bool

    @property
    def main_job(self) -> bool:
        """Can an operation be followed from the application to the disk here?"""
        return self.app_events and self.can_read and self.block_source != "none"

    def document(self) -> dict[str, object]:
        """As ``opline doctor --json`` prints it."""
        return {
            "schema": "opline-doctor",
            "schema_version": 1,
            "main_job": self.main_job,
            "app_events": self.app_events,
            "block_source": self.block_source,
            "can_read": self.can_read,
            "checks": [dict(vars(check)) for check in self.checks],
        }


def _user() -> Check:
    if os.geteuid() == 0:
        return Check("user", Status.OK, "root")
    detail = f"user {os.geteuid()}, not root: no block events, no kernel events"
    return Check("user", Status.MISSING, detail, "run opline record as root (sudo)")


def _lttng_tools() -> Check:
    version = machine.versions()["lttng-tools"]
    if version is None or shutil.which("lttng-sessiond") is None:
        return Check("lttng-tools", Status.MISSING, "not installed", how_to_install("lttng-tools"))
    return Check("lttng-tools", Status.OK, version)


def _lttng_ust() -> Check:
    version = machine.versions()["lttng-ust"]
    try:
        ctypes.CDLL("liblttng-ust.so.1")
    except OSError:
        return Check("lttng-ust", Status.MISSING, "liblttng-ust.so.1 not found", how_to_install("liblttng-ust1"))
    return Check("lttng-ust", Status.OK, version or "version unknown")


def _sessiond() -> Check:
    client = sessiond.running()
    if client is not None:
        return Check(
            "session daemon", Status.OK, f"one runs ({client.parent}): it is used; --sessiond private overrides"
        )
    if os.geteuid() != 0 or sessiond.may_unshare():
        return Check("session daemon", Status.OK, "none runs: each recording starts and stops a private one")
    return Check("session daemon", Status.OK, "none runs: each recording starts and stops one at /run/lttng")


def _modules() -> Check:
    state = machine.lttng_modules()
    if state is not None:
        return Check("lttng-modules", Status.OK, f"{state}: block events, system calls, scheduling from the kernel")
    detail = f"none for kernel {platform.release()}: block events come through BPF"
    return Check(
        "lttng-modules",
        Status.OPTIONAL,
        detail,
        f"{how_to_install('lttng-modules-dkms')} (where modules can be loaded)",
    )


def _btf() -> Check:
    if _BTF.exists():
        return Check("BTF", Status.OK, str(_BTF))
    return Check("BTF", Status.MISSING, f"{_BTF} is not there", "use a kernel built with CONFIG_DEBUG_INFO_BTF")


def _bcc() -> Check:
    version = machine.bcc_version()
    if version is None:
        return Check("bcc", Status.MISSING, "Python's bcc module not found", machine.how_to_get("bcc", "python3-bpfcc"))
    return Check("bcc", Status.OK, version)


def _make_bpf_map() -> str | None:
    """Create a one-element BPF array and close it; None if that worked, else why not."""
    if not kernel.known_here():
        return "not checked on this architecture"
    try:
        os.close(kernel.make_map(kernel.ARRAY, 4, 8, 1, 0, "opline_doctor"))
    except OSError as error:
        return error.strerror
    return None


def _bpf() -> Check:
    problem = _make_bpf_map()
    if problem is not None:
        return Check(
            "BPF", Status.MISSING, f"not permitted: {problem}", "run as root, outside of a restricted container"
        )
    try:
        locked = "[confidentiality]" in _LOCKDOWN.read_text()
    except OSError:
        locked = False
    if locked:
        return Check("BPF", Status.MISSING, "kernel lockdown forbids reading kernel memory", "boot without lockdown")
    return Check("BPF", Status.OK, "permitted")


def _system_calls() -> Check:
    if machine.lttng_modules() is not None:
        return Check("system calls", Status.OK, "from the kernel, of all processes")
    if not _BTF.exists():
        return Check("system calls", Status.OPTIONAL, f"{_BTF} is not there: not through BPF")
    if syscalls.definitions(Btf.of_kernel()) is None:
        return Check("system calls", Status.OPTIONAL, f"not through BPF on {platform.machine()}")
    if blocksource.lacking() is not None:
        return Check("system calls", Status.OPTIONAL, "not without the BPF collector: see there")
    return Check("system calls", Status.OK, "through BPF, of the recorded command (--model syscalls)")


def _opened_files() -> Check:
    """Watch, and take it back: what is missing is said by the kernel."""
    try:
        watch = openfiles.Watch()
    except (OSError, AttributeError) as error:
        why = getattr(error, "strerror", None) or error
        return Check("opened files", Status.OPTIONAL, f"cannot be watched ({why}): no maps of files")
    watch.mark(openfiles.mounts(Path("/proc/self/mountinfo").read_text()))
    marked = watch.close()
    if marked == 0:
        return Check("opened files", Status.OPTIONAL, "no file system of a block device here: no maps of files")
    systems = "1 file system" if marked == 1 else f"{marked} file systems"
    return Check("opened files", Status.OK, f"watched and mapped on {systems} of block devices")


def _tracefs() -> Check:
    closed = None
    for path in _TRACEFS:
        try:
            if (path / "events").is_dir():
                return Check("tracefs", Status.OK, str(path))
        except PermissionError:
            closed = closed or path
    if closed is not None:
        detail = f"{closed} is not open to user {os.geteuid()}"
        return Check("tracefs", Status.OPTIONAL, detail, "run opline record as root (sudo)")
    return Check("tracefs", Status.OPTIONAL, "not mounted", f"mount -t tracefs nodev {_TRACEFS[0]}")


def _collector() -> Check:
    why = blocksource.lacking() or blocksource.check()
    if why is None:
        return Check("BPF collector", Status.OK, "its programs load and attach")
    return Check("BPF collector", Status.MISSING, why)


def _bt2() -> Check:
    version = machine.bt2_version()
    if version is None:
        detail = "not found: traces are read by opline's own reader; --reader bt2 needs it"
        return Check("Python bt2", Status.OPTIONAL, detail, machine.how_to_get("bt2", "python3-bt2"))
    parts = tuple(int(p) for p in version.split(".")[:2] if p.isdigit())
    ctf2 = "reads CTF 1.8 and CTF 2" if parts >= (2, 1) else "reads CTF 1.8; CTF 2 needs 2.1"
    return Check("Python bt2", Status.OK, f"{version}, {ctf2}")


def _babeltrace2() -> Check:
    version = machine.versions()["babeltrace2"]
    if version is None:
        detail = "not installed: recordings are not counted"
        return Check("babeltrace2", Status.WARNING, detail, how_to_install("babeltrace2"))
    return Check("babeltrace2", Status.OK, version)


def _module(name: str, what: str) -> Check:
    if importlib.util.find_spec(name) is None:
        return Check(name, Status.MISSING, f"not found: {what}", f"pip install {name}")
    return Check(name, Status.OK, what)


def _gnuplot() -> Check:
    if shutil.which("gnuplot") is None:
        return Check(
            "gnuplot", Status.OPTIONAL, "not installed: only the gnuplot recipe needs it", how_to_install("gnuplot")
        )
    return Check("gnuplot", Status.OK, "for the gnuplot recipe")


def _disk(directory: Path) -> Check:
    try:
        free = space.free_bytes(directory)
    except OSError as error:
        return Check("disk space", Status.WARNING, f"{directory}: {error.strerror}")
    text = f"{space.format_bytes(free)} free here"
    if free < _COMFORTABLE_BYTES:
        return Check("disk space", Status.WARNING, text, "record elsewhere (-o) or with --size-limit")
    return Check("disk space", Status.OK, text)


def _buffers() -> Check:
    free = recipe.shared_memory_free_bytes()
    size = recipe.fit_subbuf_bytes(recipe.SUBBUF_BYTES, recipe.SUBBUF_COUNT, recipe.possible_cpus(), 2, free)
    total = size * recipe.SUBBUF_COUNT * recipe.possible_cpus() * 2
    text = f"{space.format_bytes(total)} of {'?' if free is None else space.format_bytes(free)} in /dev/shm"
    if size < recipe.SUBBUF_BYTES:
        text += f"; sub-buffers of {space.format_bytes(size)} instead of {space.format_bytes(recipe.SUBBUF_BYTES)}"
        return Check("tracer's buffers", Status.WARNING, text, "mount -o remount,size=4G /dev/shm")
    return Check("tracer's buffers", Status.OK, text)


def _leftovers() -> Check:
    try:
        lines = leftovers.found()
    except OplineError as error:
        return Check("leftovers", Status.WARNING, error.message)
    if not lines:
        return Check("leftovers", Status.OK, "none of killed recordings")
    return Check("leftovers", Status.WARNING, "; ".join(lines), "opline doctor --clean-up")


_CHECKS: tuple[Callable[[], Check], ...] = (
    _user, _lttng_tools, _lttng_ust, _sessiond, _modules, _bpf, _btf, _bcc, _collector, _system_calls, _opened_files,
    _tracefs, _bt2, _babeltrace2, lambda: _module("numpy", "analyses"),
    lambda: _module("duckdb", "tables of a run"), lambda: _module("matplotlib", "plots"), _gnuplot,
    lambda: _disk(Path.cwd()), _buffers, _leftovers,
)  # fmt: skip


def _tried(check: Callable[[], Check]) -> Check:
    """What it finds. One that this user may not make is a line of the report, and the others are made."""
    try:
        return check()
    except OSError as error:
        name = check.__name__.strip("_").replace("_", " ")
        return Check(name, Status.WARNING, f"not checked as user {os.geteuid()}: {error}")


def examine() -> Report:
    """Run every check. Only looks: nothing that killed recordings have left is changed."""
    checks = (*(_tried(check) for check in _CHECKS), *(c for hook in table.hooks("checks") for c in hook.checks()))
    fine = {check.name for check in checks if check.status is not Status.MISSING}
    app_events = {"lttng-tools", "lttng-ust"} <= fine
    by_name = {check.name: check for check in checks}
    block = "none"
    if "user" in fine and app_events:
        if by_name["lttng-modules"].status is Status.OK:
            block = "kernel"
        elif {"BPF", "BTF", "bcc", "BPF collector"} <= fine:
            block = "bpf"
    if block == "kernel":
        # What only the BPF way needs is no lack where the kernel domain works.
        unneeded = {"BPF", "BTF", "bcc", "BPF collector"}
        checks = tuple(
            c.replaced(status=Status.OPTIONAL) if c.name in unneeded and c.status is Status.MISSING else c
            for c in checks
        )
    return Report(checks, app_events, block, {"numpy", "duckdb"} <= fine)
