# SPDX-License-Identifier: MIT
"""Places BPF programs on instructions of programs and libraries: uprobes, by the kernel's own calls.

All places of a program at once where the kernel can (BPF_TRACE_UPROBE_MULTI, Linux 6.6: placing takes milliseconds),
else one perf event for each. Either way a descriptor is the probe: closed, it is gone, as it is when the process ends
in whatever way. bcc's own calls know neither, nor the semaphores of USDT probes.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from opline.capture.bpf import kernel

_RETURN = 1  # BPF_F_UPROBE_MULTI_RETURN
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_UPROBE_TYPE = Path("/sys/bus/event_source/devices/uprobe/type")
_SET_BPF, _ENABLE = 0x40042408, 0x2400  # PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_ENABLE
_CLOSE_ON_EXEC = 8  # PERF_FLAG_FD_CLOEXEC
_SEMAPHORE_SHIFT = 32  # of its offset, in perf_event_attr.config


class _Multi(ctypes.Structure):
    """The part of ``union bpf_attr`` for such a link, uapi/linux/bpf.h."""

    _fields_ = (
        ("prog_fd", ctypes.c_uint32), ("target_fd", ctypes.c_uint32), ("attach_type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32), ("path", ctypes.c_uint64), ("offsets", ctypes.c_uint64),
        ("semaphores", ctypes.c_uint64), ("cookies", ctypes.c_uint64), ("count", ctypes.c_uint32),
        ("multi_flags", ctypes.c_uint32), ("pid", ctypes.c_uint32), ("pad", ctypes.c_uint32),
    )  # fmt: skip


class _PerfAttr(ctypes.Structure):
    """The head of ``struct perf_event_attr`` (PERF_ATTR_SIZE_VER1), uapi/linux/perf_event.h."""

    _fields_ = (
        ("type", ctypes.c_uint32), ("size", ctypes.c_uint32), ("config", ctypes.c_uint64),
        ("period", ctypes.c_uint64), ("sample_type", ctypes.c_uint64), ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64), ("wakeup", ctypes.c_uint32), ("bp_type", ctypes.c_uint32),
        ("path", ctypes.c_uint64), ("offset", ctypes.c_uint64),
    )  # fmt: skip


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def place_all(program: int, path: Path, offsets: Sequence[int], semaphores: Sequence[int], returns: bool) -> int:
    """Put a program that was loaded for UPROBE_MULTI on all these places of a file, for every process that runs it or
    will; the descriptor that holds it there. ``semaphores``: offsets of the places' counters, 0: none. Raises OSError.
    """
    name = ctypes.create_string_buffer(os.fsencode(path))
    where = (ctypes.c_uint64 * len(offsets))(*offsets)
    counters = (ctypes.c_uint64 * len(offsets))(*semaphores)
    attributes = _Multi(
        prog_fd=program, attach_type=kernel.UPROBE_MULTI, path=ctypes.addressof(name), offsets=ctypes.addressof(where),
        semaphores=ctypes.addressof(counters) if any(semaphores) else 0, count=len(offsets),
        multi_flags=_RETURN if returns else 0,
    )  # fmt: skip
    return kernel.create_link(bytes(attributes))


def place_one(program: int, path: Path, offset: int, semaphore: int, returns: bool) -> int:
    """The same for one place, by a perf event. Raises OSError."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    config = semaphore << _SEMAPHORE_SHIFT | (1 if returns else 0)
    attributes = _PerfAttr(
        type=int(_UPROBE_TYPE.read_text()), size=ctypes.sizeof(_PerfAttr), config=config,
        path=ctypes.addressof(name), offset=offset,
    )  # fmt: skip
    descriptor = _call(_PERF_EVENT_OPEN[platform.machine()], ctypes.byref(attributes), -1, 0, -1, _CLOSE_ON_EXEC)
    libc = ctypes.CDLL(None, use_errno=True)
    for request, value in ((_SET_BPF, program), (_ENABLE, 0)):
        if libc.ioctl(descriptor, request, value) < 0:
            code = ctypes.get_errno()
            os.close(descriptor)
            raise OSError(code, os.strerror(code))
    return descriptor
