# SPDX-License-Identifier: MIT
"""User stacks of waits, between the BPF programs that take them (tracepoints/user_frames.bpf.c, stacks.bpf.c) and
:mod:`opline.capture.bpf.user_names`, which knows the recorded programs.
"""

from __future__ import annotations

import ctypes
import itertools
import platform
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from opline.capture.bpf.btf import Btf, all_known
from opline.capture.bpf.loaded import Loaded

if TYPE_CHECKING:
    from opline.capture.bpf.user_names import Program
    from opline.capture.machine.unwinding import Row

LOOK_NS = 20_000_000  # how often to look for new ones: their processes may end
_FRAMES = 32
_CODE_PLACES = 1 << 17  # of which the program knows how a stack goes on
_BY_RBP = 1
NEEDS = "user stacks need x86-64 and Linux 5.15"


class _CodePlace(ctypes.Structure):
    """``struct code_place`` of tracepoints/user_frames.bpf.c."""

    _fields_ = (("address", ctypes.c_uint64), ("process", ctypes.c_uint32), ("since", ctypes.c_uint32))


class _CodeFrame(ctypes.Structure):
    """``struct code_frame`` there."""

    _fields_ = (("frame_at", ctypes.c_uint32), ("rbp_at", ctypes.c_uint16), ("flags", ctypes.c_uint16))


def definitions(btf: Btf) -> dict[str, int]:
    """What the program must know of this kernel; empty where it can't take user stacks."""
    registers = all_known({f"O_REGS_{name.upper()}": btf.offset("pt_regs", name) for name in ("ip", "sp", "bp")})
    if registers is None or platform.machine() != "x86_64" or btf.function("bpf_task_pt_regs") is None:
        return {}
    return {"USER_FRAMES": _FRAMES, "CODE_PLACES_MOST": _CODE_PLACES, **registers}


def had(bpf: Loaded) -> bool:
    """Do the stacks of these programs have user frames?"""
    return hasattr(bpf.maps["stacks"].value, "process")


class UserStacks:
    """Of one recording. Stacks are ``struct known_stack`` of tracepoints/stacks.bpf.c."""

    def __init__(self, bpf: Loaded) -> None:
        from opline.capture.bpf.user_names import UserNames  # numpy begins threads: signals are held back by now

        self._tree, self._frames = bpf.maps["tree"], bpf.maps["code_frames"]
        self._programs = UserNames(self._since, self._tell)
        self._named: dict[int, list[str]] = {}  # by the stack's number

    def _since(self, process: int) -> int | None:
        found = self._tree.get(ctypes.c_uint32(process))
        return None if found is None else int(found.value)

    def _tell(self, program: Program, address: int, row: Row) -> None:
        with suppress(OSError):  # no room for more
            place = _CodePlace(address, program[0], program[1] & 0xFFFFFFFF)
            self._frames.set(place, _CodeFrame(row.cfa, row.rbp_at, _BY_RBP if row.by_rbp else 0))

    def confirm(self) -> None:
        """To be called before the stacks of a new look are seen."""
        self._programs.confirm()

    def see(self, stack: Any) -> None:
        """A new stack, soon after it was taken."""
        if stack.process:
            self._programs.see(_program(stack), addresses(stack.user), int(stack.tid), int(stack.stack_pointer))

    def frames(self, stack: Any) -> list[str] | None:
        """Of a stack that was seen; None: it has no user frames."""
        if not stack.process:
            return None
        number = int(stack.number)
        if number not in self._named:
            self._named[number] = self._programs.frames(_program(stack), addresses(stack.user))
        return self._named[number]


def _program(stack: Any) -> Program:
    return int(stack.process), int(stack.since)


def addresses(frames: Iterable[int]) -> list[int]:
    """Those before the first that is 0."""
    return list(itertools.takewhile(bool, map(int, frames)))
