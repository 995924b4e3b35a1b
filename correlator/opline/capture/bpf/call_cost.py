# SPDX-License-Identifier: MIT
"""What recording a system call costs its thread: measured on reads of opline's own, before the recording begins.

In a loop everything lies in the caches, so this is the least that a call of the recorded programs pays.
"""

from __future__ import annotations

import ctypes
import os
import time
from contextlib import suppress
from typing import Any

from opline.capture.bpf.loaded import Loaded

_CALLS, _ROUNDS = 200, 25
_ANY_FILE = "/dev/zero"


def least_ns() -> float | None:
    """What a read takes, of the fastest of several rounds; None: there is nothing to read."""
    rounds = []
    try:
        file = os.open(_ANY_FILE, os.O_RDONLY)
    except OSError:
        return None
    try:
        for _ in range(_ROUNDS):
            begin_ns = time.perf_counter_ns()
            for _ in range(_CALLS):
                os.pread(file, 1, 0)
            rounds.append(time.perf_counter_ns() - begin_ns)
    finally:
        os.close(file)
    return min(rounds) / _CALLS


def added_ns(bpf: Loaded, library: Any, bare_ns: float) -> int | None:
    """What the attached programs add to a read that took ``bare_ns`` without them; None: not measured. What they write
    lies in the ring buffer, from which the bridge takes nothing that was there before it began.
    """
    control, tree = bpf.maps["control"], bpf.maps["tree"]
    wanted, own = control.value(), ctypes.c_uint32(os.getpid())
    library.bridge_want_calls(ctypes.byref(wanted))
    with suppress(OSError):
        tree.set(own, tree.value(1))
        try:
            control.set(ctypes.c_uint32(0), wanted)
            recorded_ns = least_ns()
        finally:
            control.set(ctypes.c_uint32(0), control.value())
            tree.remove(own)
        return round(recorded_ns - bare_ns) if recorded_ns and recorded_ns > bare_ns else None
    return None
