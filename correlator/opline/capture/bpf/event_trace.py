# SPDX-License-Identifier: MIT
"""The trace that the BPF collector writes of block events, system calls, states and processes.

The bridge (tracepoints/bridge_stream.c) describes its events by itself: the fields are those of the UST providers,
which say what the session records.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opline.capture.bpf import ctf_metadata as ctf
from opline.capture.bpf.own_trace import OwnTrace
from opline.errors import OplineError

CHANNEL = "block"


def _events(library: Any) -> str:
    """The event classes of the metadata. Raises OplineError."""
    library.bridge_describe.restype = ctypes.c_bool
    text, size = ctypes.c_char_p(), ctypes.c_size_t()
    if not library.bridge_describe(ctypes.byref(text), ctypes.byref(size)) or text.value is None:
        raise OplineError("no memory for the metadata of the collector's trace")
    return text.value.decode()


def open_stream(library: Any, folder: Path, retell: Callable[[], None]) -> OwnTrace:
    """Let the bridge write into a trace in that folder, which is made. ``retell``: OwnTrace's. Raises OplineError."""
    for opens in (library.bridge_open, library.bridge_open_next, library.bridge_goes_on):
        opens.restype = ctypes.c_bool
    library.bridge_open.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_char_p)
    library.bridge_open_next.argtypes = (ctypes.c_int, ctypes.c_int)
    library.bridge_close.restype = ctypes.c_uint64
    trace = uuid.uuid4()

    def first(top: int, index: int) -> bool:
        return bool(library.bridge_open(top, index, trace.bytes))

    text = ctf.head(trace, "opline-bpf") + ctf.stream() + _events(library)
    return OwnTrace(folder, text, first, library.bridge_open_next, library.bridge_goes_on, retell)
