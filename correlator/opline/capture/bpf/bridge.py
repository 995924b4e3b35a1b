# SPDX-License-Identifier: MIT
"""BPF programs and the bridge that passes their records on to LTTng, whatever the programs are attached to.

Needs root, a kernel with BTF, bcc (``image.py``), and the bridge of the programs (built by ``make -C tracepoints
bridge``), which has their text inside. No kernel headers. What the programs are: ``bpf.py`` (the block layer's
tracepoints), ``declared.py`` (probes that a model declares).
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from opline.capture.bpf import kernel
from opline.capture.bpf.image import failed, image_of
from opline.capture.bpf.loaded import Loaded
from opline.capture.machine.clocks import clock_offset_ns
from opline.errors import OplineError

RING_BYTES = 64 << 20
PERIOD_NS = 3_000_000
OWN_TGIDS = 8  # as in tracepoints/bridge_record.h

_PID_NAMESPACE = Path("/proc/self/ns/pid")
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO, include/linux/proc_ns.h

Result = TypeVar("Result")

_COUNTS = (
    "watermarks", "lost_events", "not_enabled", "lost_ring", "lost_nested", "lost_states", "lost_followed",
    "late", "reordered",
    "own_bios", "own_events", "own_overflow", "chain_cut", "untold_threads", "calls_32bit", "followed", "most_bytes",
    "cpu_ns", "rounds", "first_ns", "last_ns",
)  # fmt: skip


def pid_namespace() -> dict[str, int]:
    """In a PID namespace (a container) threads shall be numbered as the application sees them: which one it is.

    Empty in the initial one, where the kernel's own numbers are those. Raises OSError.
    """
    seen = _PID_NAMESPACE.stat()
    if seen.st_ino == _INITIAL_PID_NAMESPACE:
        return {}
    return {"PIDNS_DEV": os.major(seen.st_dev) << 20 | os.minor(seen.st_dev), "PIDNS_INO": seen.st_ino}


def possible_cpus() -> int:
    """One more than the highest CPU number that there can be."""
    text = Path("/sys/devices/system/cpu/possible").read_text()
    return 1 + max(int(number) for number in re.findall(r"\d+", text))


class Bridge:
    """Programs and bridge: make one, ``start()``, … ``finish()``. All goes with the process, however it ends.

    ``library``: the bridge. ``kinds``: what its records are, in the order of its enum. ``definitions``: given to the
    programs' text as ``-D``; ``more``: text behind it. ``what`` is said in errors. ``keep``: what was compiled is kept
    for the next one. Raises OplineError, one line that says what is missing.
    """

    def __init__(
        self,
        library: Path,
        what: str,
        kinds: Sequence[str],
        definitions: Mapping[str, int],
        ring_bytes: int = RING_BYTES,
        period_ns: int = PERIOD_NS,
        more: str = "",
        keep: bool = True,
    ) -> None:
        if ring_bytes < 1 << 16 or ring_bytes & (ring_bytes - 1):
            raise OplineError(f"a ring buffer of {ring_bytes} bytes: it must be a power of two of at least 65536")
        self._what = what
        self._kinds = tuple(kinds)
        self._ring_bytes = ring_bytes
        self._period_ns = period_ns
        self._cpus = possible_cpus()
        self._handle: int | None = None
        self.library = load_library(library)
        self.bpf = self._load(definitions, more, keep)

    def _load(self, definitions: Mapping[str, int], more: str, keep: bool) -> Loaded:
        values = {
            **definitions,
            **pid_namespace(),
            "CLOCK_OFFSET_NS": f"({clock_offset_ns()}ll)",
            "RING_PAGES": self._ring_bytes // os.sysconf("SC_PAGESIZE"),
            "CPU_COUNT": self._cpus,
        }
        image = image_of(self.library.bridge_program_text() + more.encode(), values, self._what, keep)
        return self.attempt(f"the kernel does not take the maps of {self._what}", partial(Loaded, image))

    def attempt(self, what: str, step: Callable[[], Result]) -> Result:
        """Do one step with the kernel; what it gives. Raises OplineError: ``what``, and the line that says why."""
        try:
            return step()
        except OSError as error:
            raise failed(what, (), error) from error

    def start(self, programs: Sequence[int], own: Sequence[int]) -> None:
        """Start the bridge's thread. ``programs``: their descriptors; ``own``: who is left out. Raises OplineError."""
        descriptors = (ctypes.c_int * len(programs))(*programs)
        tgids = (ctypes.c_uint32 * OWN_TGIDS)(*own)
        self._handle = self.library.bridge_start(
            self.descriptor("events"), self._ring_bytes, self.descriptor("control"), self.descriptor("cpus"),
            self._cpus, descriptors, len(descriptors), self._period_ns, tgids,
        )  # fmt: skip
        if self._handle is None:
            raise OplineError("the BPF ring buffer cannot be mapped")

    def descriptor(self, name: str) -> int:
        """Of a map."""
        return self.bpf.maps[name].descriptor

    def run_iterator(self, name: str, function: int) -> None:
        """Let the kernel run a program of type iterator (``bpf_iter__task``) for each object that there is now.
        ``function``: the number of the kernel's function of that name (``bpf_iter_task``) in its BTF. Raises
        OplineError.
        """

        def run() -> None:
            kernel.iterate(self.bpf.load(name, kernel.TRACING, kernel.TRACE_ITER, function))

        self.attempt(f"the kernel does not take the BPF program {name}", run)

    def enabled(self) -> int:
        """What the programs record at the moment because a session has enabled it: a bit per kind, 0 for nothing."""
        return int(self.library.bridge_mask(self._handle))

    def follow(self, pid: int) -> None:
        """Record the system calls of this process, from its next one on, and those of its children."""
        self.library.bridge_follow(self._handle, pid)

    def retells(self) -> None:
        """The iterator over threads lets follow nobody new from now on: it tells again what holds."""
        self.library.bridge_retells(self._handle)

    def sent(self, kinds: int) -> list[int]:
        """How many events of each of the first kinds have been passed on so far."""
        found = (ctypes.c_uint64 * kinds)()
        self.library.bridge_sent(self._handle, found, kinds)
        return list(found)

    def finish(self, detach: Callable[[], None]) -> dict[str, Any]:
        """Detach, pass on what is left; what happened, as plain JSON types: ``sent`` by event name, without zeros."""
        assert self._handle is not None

        class Counts(ctypes.Structure):
            """``struct bridge_counts`` of tracepoints/bridge.c."""

            _fields_ = (("sent", ctypes.c_uint64 * len(self._kinds)), *((name, ctypes.c_uint64) for name in _COUNTS))

        counts = Counts()
        self.library.bridge_quiet(self._handle)
        detach()
        self.library.bridge_finish(self._handle, ctypes.byref(counts))
        self._handle = None
        self.bpf.close()
        values = {name: getattr(counts, name) for name in _COUNTS}
        return {"sent": {kind: n for kind, n in zip(self._kinds, counts.sent, strict=True) if n}, **values}


def load_library(path: Path) -> Any:
    """The bridge, its functions declared. Raises OplineError."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise OplineError(f"{path}: {error}; build it with 'make build'") from error
    library.bridge_program_text.restype = ctypes.c_char_p
    library.bridge_start.restype = ctypes.c_void_p
    library.bridge_start.argtypes = (
        ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_int),
        ctypes.c_uint32, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint32),
    )  # fmt: skip
    library.bridge_mask.argtypes = (ctypes.c_void_p,)
    library.bridge_mask.restype = ctypes.c_uint64
    library.bridge_follow.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
    library.bridge_retells.argtypes = (ctypes.c_void_p,)
    library.bridge_retells.restype = None
    library.bridge_sent.argtypes = (ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint32)
    library.bridge_sent.restype = None
    library.bridge_quiet.argtypes = (ctypes.c_void_p,)
    library.bridge_finish.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    return library
