# SPDX-License-Identifier: MIT
"""bpf(2): maps, programs and links of the kernel, by their descriptors. Numbers and layouts: include/uapi/linux/bpf.h.

All functions raise OSError. A map, a program or a link lives as long as its descriptor: it is gone when the process
ends, however it ends.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

ARRAY = 2  # a type of maps
RAW_TRACEPOINT, KPROBE, TRACING = 17, 2, 26  # types of programs
TRACE_RAW_TP, TRACE_ITER, UPROBE_MULTI = 23, 28, 48  # what a program is loaded for, where its type does not say it
INSTRUCTION_BYTES = 8

_MAP_CREATE, _LOOKUP, _UPDATE, _DELETE, _NEXT_KEY, _LOAD = range(6)
_INFORMATION, _RAW_TRACEPOINT_OPEN, _TAKE, _LINK_CREATE, _ENABLE_STATS, _ITER_CREATE = 15, 17, 21, 28, 32, 33
_MAP = struct.Struct("=IIIIIII16s")  # up to map_name
_MAP_INFORMATION = struct.Struct("=IIIIII")  # type, id, bytes of a key and of a value, entries, flags
_PROGRAM = struct.Struct("=IIQQIIQII16sIIIIQIIQII")  # up to attach_btf_id
_NAME_BYTES = 15
_LICENSE = b"Dual MIT/GPL"
_LOG_BYTES = 1 << 22
_SYS_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}


def known_here() -> bool:
    """Is the number of bpf(2) known for this architecture?"""
    return platform.machine() in _SYS_BPF


def call(command: int, attributes: bytes) -> int:
    """What the kernel gives for a command with these bytes of ``union bpf_attr``."""
    if not known_here():
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    libc = ctypes.CDLL(None, use_errno=True)
    given = ctypes.create_string_buffer(attributes, len(attributes))
    found = int(libc.syscall(_SYS_BPF[platform.machine()], command, given, len(attributes)))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def make_map(kind: int, key_bytes: int, value_bytes: int, entries: int, flags: int, name: str) -> int:
    """The descriptor of a new map; ``kind`` is a number of ``enum bpf_map_type``."""
    return call(_MAP_CREATE, _MAP.pack(kind, key_bytes, value_bytes, entries, flags, 0, 0, _short(name)))


def map_information(descriptor: int) -> tuple[int, int, int, int, int]:
    """Of a map: kind, bytes of a key and of a value, entries, flags."""
    kind, _, *sizes = _MAP_INFORMATION.unpack(information(descriptor, _MAP_INFORMATION.size))
    key_bytes, value_bytes, entries, flags = sizes
    return kind, key_bytes, value_bytes, entries, flags


def information(descriptor: int, size: int) -> bytes:
    """The first bytes of ``struct bpf_prog_info`` or ``bpf_map_info``; those that this kernel lacks are zero."""
    found = ctypes.create_string_buffer(size)
    call(_INFORMATION, struct.pack("=IIQ", descriptor, size, ctypes.addressof(found)))
    return found.raw


def look_up(descriptor: int, key: bytes, value_bytes: int) -> bytes:
    """The value of a key in a map that is not per CPU."""
    held, value = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(value_bytes)
    call(_LOOKUP, struct.pack("=IIQQQ", descriptor, 0, ctypes.addressof(held), ctypes.addressof(value), 0))
    return value.raw


def update(descriptor: int, key: bytes, value: bytes) -> None:
    """Gives a key of a map this value."""
    held, given = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(value, len(value))
    call(_UPDATE, struct.pack("=IIQQQ", descriptor, 0, ctypes.addressof(held), ctypes.addressof(given), 0))


def delete(descriptor: int, key: bytes) -> None:
    """Takes a key out of a map."""
    held = ctypes.create_string_buffer(key, len(key))
    call(_DELETE, struct.pack("=IIQQQ", descriptor, 0, ctypes.addressof(held), 0, 0))


def take(descriptor: int, value_bytes: int) -> bytes | None:
    """The oldest value of a queue, which is taken out of it; None: it is empty."""
    value = ctypes.create_string_buffer(value_bytes)
    try:
        call(_TAKE, struct.pack("=IIQQQ", descriptor, 0, 0, ctypes.addressof(value), 0))
    except FileNotFoundError:
        return None
    return value.raw


def next_key(descriptor: int, key: bytes | None, key_bytes: int) -> bytes | None:
    """The key behind this one, or the first; None behind the last."""
    held = None if key is None else ctypes.create_string_buffer(key, key_bytes)
    found = ctypes.create_string_buffer(key_bytes)
    before = 0 if held is None else ctypes.addressof(held)
    try:
        call(_NEXT_KEY, struct.pack("=IIQQQ", descriptor, 0, before, ctypes.addressof(found), 0))
    except FileNotFoundError:
        return None
    return found.raw


def load(kind: int, code: bytes, name: str, wanted_for: int = 0, attached_to: int = 0) -> int:
    """The descriptor of a program. ``wanted_for``: the type of what it is attached to; ``attached_to``: the number of
    that in the kernel's BTF. The error of a program that the verifier refuses has the verifier's last line.
    """
    try:
        return _load(kind, code, name, wanted_for, attached_to)
    except OSError as error:
        if error.errno == errno.EPERM:
            raise
        log = ctypes.create_string_buffer(_LOG_BYTES)
        try:
            return _load(kind, code, name, wanted_for, attached_to, log)
        except OSError as again:
            lines = [line for line in log.value.decode(errors="replace").splitlines() if line.strip()]
            said = [line for line in lines if not line.startswith(("processed ", "verification time"))]
            raise OSError(error.errno, f"{again.strerror}: {said[-1]}" if said else again.strerror) from error


def _load(
    kind: int, code: bytes, name: str, wanted_for: int, attached_to: int, log: ctypes.Array[ctypes.c_char] | None = None
) -> int:
    held, license_text = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(_LICENSE)
    place, size = (0, 0) if log is None else (ctypes.addressof(log), len(log))
    attributes = _PROGRAM.pack(
        kind, len(code) // INSTRUCTION_BYTES, ctypes.addressof(held), ctypes.addressof(license_text),
        1 if log is not None else 0, size, place, 0, 0, _short(name), 0, wanted_for, 0, 0, 0, 0, 0, 0, 0, attached_to,
    )  # fmt: skip
    return call(_LOAD, attributes)


def open_raw_tracepoint(program: int, name: str | None = None) -> int:
    """Attaches a program to a tracepoint, or to what it was loaded for; the descriptor that holds it there."""
    text = None if name is None else ctypes.create_string_buffer(name.encode())
    place = 0 if text is None else ctypes.addressof(text)
    return call(_RAW_TRACEPOINT_OPEN, struct.pack("=QII", place, program, 0))


def create_link(attributes: bytes) -> int:
    """Attaches a program as these bytes of ``link_create`` say; the descriptor that holds it there."""
    return call(_LINK_CREATE, attributes)


def iterate(program: int) -> None:
    """Runs a program that was loaded for TRACE_ITER for each object that there is now."""
    link = create_link(struct.pack("=IIII", program, 0, TRACE_ITER, 0))
    try:
        descriptor = call(_ITER_CREATE, struct.pack("=II", link, 0))
        with os.fdopen(descriptor, "rb", buffering=0) as text:
            while text.read(1 << 16):
                pass
    finally:
        os.close(link)


def count_times() -> int:
    """Lets the kernel count how often programs run and what they take (`/proc/PID/fdinfo`), as long as the descriptor
    is open.
    """
    return call(_ENABLE_STATS, struct.pack("=IIII", 0, 0, 0, 0))  # BPF_STATS_RUN_TIME


def _short(name: str) -> bytes:
    return name.encode()[:_NAME_BYTES]
