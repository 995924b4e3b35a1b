# SPDX-License-Identifier: MIT
"""Kernel stacks of waits: the program that takes them (tracepoints/stacks.bpf.c), and ``stacks.json``, into which they
go with the names of their functions and the kind of wait when the recording ends (:mod:`opline.readers.stacks`).

The program asks for the stack of another thread, which only programs may that know their arguments' types
(BPF_TRACE_RAW_TP, Linux 5.5). bcc compiles it, but cannot load such a one: it goes to the kernel by bpf(2).
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opline.capture.bpf.btf import Btf
from opline.folder import TRACERS, Folder
from opline.readers.causes import CAUSES, ENDS, cause_of, end_of
from opline.readers.stacks import SCHEMA, VERSION

TRACEPOINT = "sched_waking"
THRESHOLD_NS = 200_000  # shorter waits have no stacks
_PROGRAM = b"stacks_sched_waking"
_FRAMES = 32
_MOST = 8192  # different stacks

# include/uapi/linux/bpf.h
_PROG_LOAD, _RAW_TRACEPOINT_OPEN = 5, 17
_TRACING, _TRACE_RAW_TP = 26, 23
_INSTRUCTION_BYTES = 8
_LOAD = struct.Struct("=IIQQIIQII16sIIIIQIIQII")  # union bpf_attr of BPF_PROG_LOAD, up to attach_btf_id
_LICENSE = b"Dual MIT/GPL"
_SYS_BPF = {"x86_64": 321, "aarch64": 280}
_OWN_FRAMES = ("bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_")  # of the program itself, above a waker's


@dataclass(frozen=True, slots=True)
class StackWish:
    """Of which waits stacks are wanted, and where they are written at the end."""

    threshold_ns: int
    file: Path


class WaitStacks:
    """The program that takes stacks, and what comes of them. ``definitions`` are for the programs' text, empty where
    this kernel cannot; ``why`` says in a few words that it can't.
    """

    def __init__(self, wish: StackWish, btf: Btf) -> None:
        self._wish = wish
        self._type = btf.tracepoint_type(TRACEPOINT)
        self.fd = -1  # of the program
        self._link = -1
        self.why: str | None = None
        self.definitions: dict[str, int] = {}
        if self._type is None or platform.machine() not in _SYS_BPF:
            self.why = "its BTF does not describe the tracepoint"
        else:
            self.definitions = {"WAIT_STACK_NS": wish.threshold_ns, "STACK_FRAMES": _FRAMES, "STACKS_MOST": _MOST}

    def load(self, bpf: Any) -> bool:
        """Give the program to the kernel; whether the kernel takes it."""
        if self._type is None or not self.definitions:
            return False
        code = bpf.dump_func(_PROGRAM)
        held, license_text = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(_LICENSE)
        attributes = _LOAD.pack(
            _TRACING, len(code) // _INSTRUCTION_BYTES, ctypes.addressof(held), ctypes.addressof(license_text),
            0, 0, 0, 0, 0, b"stacks_waking", 0, _TRACE_RAW_TP, 0, 0, 0, 0, 0, 0, 0, self._type,
        )  # fmt: skip
        try:
            self.fd = _bpf(_PROG_LOAD, attributes)
        except OSError as error:
            self.why = f"it does not take the program: {error.strerror}"
            return False
        return True

    def attach(self) -> None:
        """From here on the program runs. Raises OSError."""
        self._link = _bpf(_RAW_TRACEPOINT_OPEN, struct.pack("=QII", 0, self.fd, 0))

    def detach(self) -> None:
        """The program ends."""
        for descriptor in (self._link, self.fd):
            if descriptor >= 0:
                os.close(descriptor)
        self.fd = self._link = -1

    def write(self, bpf: Any) -> dict[str, Any]:
        """Write the file; for the report: ``stacks``, how many there are, or ``stacks_unwritten``, why the file is
        missing. Never raises: the rest of the report is worth having.
        """
        found = _document(bpf, self._wish.threshold_ns)
        file = self._wish.file
        try:
            with Folder(file.parent) as folder:
                folder.write(file.name, json.dumps(found) + "\n", TRACERS)
        except OSError as error:
            return {"stacks_unwritten": f"{file}: {error.strerror}"}
        return {"stacks": len(found["stacks"])}


def _bpf(command: int, attributes: bytes) -> int:
    """A descriptor. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    given = ctypes.create_string_buffer(attributes, len(attributes))
    found = int(libc.syscall(_SYS_BPF[platform.machine()], command, given, len(attributes)))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def _document(bpf: Any, threshold_ns: int) -> dict[str, Any]:
    found: dict[int, dict[str, Any]] = {}
    for stack in bpf[b"stacks"].values():
        named = [_name(bpf, address) for address in stack.frames if address]
        frames = [frame for frame in named if not frame.startswith(_OWN_FRAMES)]
        end, interrupt = end_of(frames)
        found[int(stack.number)] = {"cause": cause_of(frames), "end": end, "interrupt": interrupt, "frames": frames}
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "threshold_ns": threshold_ns,
        "lost": sum(int(cpu.lost_stacks) for cpu in bpf[b"cpus"].values()),
        "left_out": sum(int(cpu.stacks_left_out) for cpu in bpf[b"cpus"].values()),
        "causes": [[kind.name, kind.group] for kind in CAUSES],
        "ends": [[kind.name, kind.group] for kind in ENDS],
        "stacks": {str(number): found[number] for number in sorted(found)},
    }


def _name(bpf: Any, address: int) -> str:
    """``symbol+0xoffset``, with the module if it is of one; the address if no symbol is known."""
    text = str(bpf.ksym(address, show_module=True, show_offset=True).decode(errors="replace"))
    return f"{address:#x}" if text.startswith("[unknown]") else text.removesuffix(" [kernel]")
