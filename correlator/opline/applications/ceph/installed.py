# SPDX-License-Identifier: MIT
"""What a recording of Ceph finds here: daemons with and without the shim, Ceph's own tracepoints, and whether its
configuration asks for tracepoints that are not installed, which ends clients and daemons.

Ceph loads the library of a provider when an option is set (``src/common/TracepointProvider.cc``), and gives up the
process if that fails. Builds without LTTng (Debian's) know the options and ignore them.
"""

from __future__ import annotations

import configparser
import os
import re
from pathlib import Path

from opline.capture.machine import processes
from opline.capture.sources import preload
from opline.values import Value

SHIM = Path(__file__).with_name("libopline-ceph.so")
_DAEMONS = ("ceph-osd", "ceph-mon")
#: option → the library that Ceph loads when it is set
PROVIDERS = {
    "osd_tracing": "libosd_tp.so",
    "osd_objectstore_tracing": "libos_tp.so",
    "bluestore_tracing": "libbluestore_tp.so",
    "rados_tracing": "librados_tp.so",
    "rbd_tracing": "librbd_tp.so",
}
_FOLDERS = ("/usr/lib/ceph", "/usr/lib64/ceph", "/usr/local/lib", "/usr/lib", "/usr/lib64")
_BINARIES = ("/usr/bin/ceph-osd", "/usr/local/bin/ceph-osd")


class Daemon(Value):
    """A running daemon. ``shim`` and ``lttng``: does it have the library; None: not known."""

    name: str
    pid: int
    shim: bool | None
    lttng: bool | None


def daemons() -> list[Daemon]:
    """Ceph's daemons that run here, by name and PID."""
    return [
        Daemon(name, pid, preload.has_loaded(pid, SHIM), preload.has_loaded(pid, Path("liblttng-ust.so.1.0.0")))
        for name in _DAEMONS
        for pid in sorted(processes.named(name))
    ]


def start_line(daemon: str = "ceph-osd") -> str:
    """How to start a daemon with the shim."""
    return f"LD_PRELOAD={SHIM} {daemon} ..."


def has_tracepoints(binary: Path) -> bool | None:
    """Was this ceph-osd built with LTTng? It names the providers' libraries then. None: it can't be read."""
    try:
        with binary.open("rb") as file:
            before = b""
            while block := file.read(1 << 20):
                if b"libosd_tp.so" in before + block:
                    return True
                before = block[-16:]
    except OSError:
        return None
    return False


def installed() -> Path | None:
    """The ceph-osd of this machine, if there is one."""
    return next((path for name in _BINARIES if (path := Path(name)).is_file()), None)


def missing_providers() -> list[str]:
    """Libraries of Ceph's own providers that the dynamic linker would not find."""
    folders = [Path(f) for f in (*_FOLDERS, *os.environ.get("LD_LIBRARY_PATH", "").split(":")) if f]
    folders += [g for folder in (Path("/usr/lib"), Path("/lib")) for g in folder.glob("*-linux-gnu*")]
    return [name for name in PROVIDERS.values() if not any((folder / name).exists() for folder in folders)]


def options_set() -> list[str]:
    """Options of ``PROVIDERS`` that ceph.conf or CEPH_ARGS turn on."""
    found = re.findall(r"(?<![\w-])--([\w-]+)[= ](?:true|1|yes|on)\b", os.environ.get("CEPH_ARGS", ""), re.IGNORECASE)
    for name in (os.environ.get("CEPH_CONF") or "/etc/ceph/ceph.conf").split(","):
        parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
        try:
            parser.read(name.strip())
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # Ceph's own business
        for section in parser.sections():
            found += [key for key, value in parser.items(section) if _true(value)]
    options = {re.sub(r"[\s-]+", "_", option.strip()) for option in found}
    return [option for option in PROVIDERS if option in options]


def _true(value: str | None) -> bool:
    return (value or "").split(";")[0].split("#")[0].strip().lower() in ("true", "1", "yes", "on")


def deadly_options() -> list[str]:
    """Options that are set while the build wants a library for them that is not there: whoever reads them aborts."""
    binary = installed()
    if binary is None or not has_tracepoints(binary):
        return []
    missing = missing_providers()
    return [option for option in options_set() if PROVIDERS[option] in missing]


def warnings(private_sessiond: bool) -> list[str]:
    """What to tell somebody who records Ceph with the shim. ``private_sessiond``: the recording has its own daemon."""
    lines = []
    for option in deadly_options():
        lines.append(
            f"Ceph's configuration sets {option}, and {PROVIDERS[option]} is not installed: clients and daemons that "
            "read this abort; unset it, or install Ceph's tracepoint libraries"
        )
    for daemon in daemons():
        if daemon.shim is False:
            what = f"{daemon.name} (PID {daemon.pid}) runs without the shim: its messages and I/O are not recorded"
            lines.append(f"{what}; start it with {start_line(daemon.name)}")
        elif daemon.shim and private_sessiond:
            lines.append(
                f"{daemon.name} (PID {daemon.pid}) has the shim, but no session daemon ran when this recording began, "
                "and a private one does not reach it: start lttng-sessiond --daemonize, then record again"
            )
    return lines
