# SPDX-License-Identifier: MIT
"""Records of block requests, from BPF into a trace of their own below the session's.

The programs are tracepoints/request.bpf.c's, the thread that writes is tracepoints/request_writer.c's; both come with
the bridge of block events.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opline.capture.bpf import request_trace
from opline.capture.bpf.bridge import load_library, possible_cpus
from opline.capture.bpf.loaded import Loaded
from opline.capture.bpf.own_trace import OwnTrace

PERIOD_NS = 20_000_000
KIND = 32  # the bit of the programs' mask

_KINDS = 37
_COUNTS = (
    "lost_ring", "late", "records", "unseen", "left_open", "opened", "no_slot", "chain_cut", "own_bios",
    "own_requests", "unwritten", "most_bytes", "most_held", "cpu_ns", "rounds",
    "watermarks", "lost_events", "paths",
)  # fmt: skip


class _Counts(ctypes.Structure):
    """``struct request_counts`` of tracepoints/request_writer.c."""

    _fields_ = (("sent", ctypes.c_uint64 * _KINDS), *((name, ctypes.c_uint64) for name in _COUNTS))


def program_text(library: Path) -> str:
    """The programs, to be compiled behind those of the bridge. Raises OplineError."""
    loaded = load_library(library)
    loaded.request_program_text.restype = ctypes.c_char_p
    return str(loaded.request_program_text().decode())


class RequestStream:
    """The trace in that folder, which is made, and the thread that writes it. One of a process."""

    def __init__(self, library: Any, bpf: Loaded, folder: Path, ring_bytes: int, kinds: Sequence[str]) -> None:
        """``kinds``: of single steps. Raises OplineError if the trace cannot be made."""
        self._library, self._bpf, self._kinds = library, bpf, tuple(kinds)
        library.requests_start.restype = ctypes.c_bool
        library.requests_start.argtypes = (
            ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_int,
            ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64,
        )  # fmt: skip
        library.requests_open_next.restype = ctypes.c_bool
        library.requests_open_next.argtypes = (ctypes.c_int, ctypes.c_int)
        library.requests_finish.argtypes = (ctypes.c_void_p,)
        library.requests_finish.restype = None
        trace = uuid.uuid4()
        maps = (bpf.maps[name].descriptor for name in ("open_bios", "open_requests", "open_marks", "request_cpus"))
        of_ring = bpf.maps["records"].descriptor, ring_bytes
        of_kernel = (*maps, possible_cpus(), PERIOD_NS)

        def first(top: int, index: int) -> bool:
            return bool(library.requests_start(top, index, trace.bytes, *of_ring, *of_kernel))

        library.requests_goes_on.restype = ctypes.c_bool
        later = library.requests_open_next, library.requests_goes_on
        self.trace = OwnTrace(folder, request_trace.metadata(trace, kinds), first, *later)

    def finish(self) -> dict[str, Any]:
        """Write what is left, and say what happened. The programs must be detached."""
        counts = _Counts()
        self._library.requests_finish(ctypes.byref(counts))
        sent: dict[str, int] = {}
        for number, count in enumerate(counts.sent):
            name = request_trace.RECORDS.get(number) or (self._kinds[number] if number < len(self._kinds) else "")
            if count:
                sent[name] = sent.get(name, 0) + count
        return {"sent": sent, **{name: getattr(counts, name) for name in _COUNTS}}
