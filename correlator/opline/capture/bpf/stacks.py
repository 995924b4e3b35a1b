# SPDX-License-Identifier: MIT
"""Stacks of waits: the program that takes them (tracepoints/stacks.bpf.c), and ``stacks.json``, into which they go
with the names of their functions and the kind of wait (:mod:`opline.readers.stacks`). The file is written while the
recording goes on, too, whenever there are new stacks: a recorder that is killed leaves most of them.

The program asks for the stack of another thread, which only programs may that know their arguments' types
(BPF_TRACE_RAW_TP, Linux 5.5).
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from opline.capture.bpf import kernel, user_stacks
from opline.capture.bpf.btf import Btf
from opline.capture.bpf.loaded import Loaded
from opline.capture.bpf.symbols import KALLSYMS, Symbols
from opline.folder import TRACERS, Folder
from opline.readers.causes import CAUSES, ENDS, cause_of, end_of
from opline.readers.stacks import SCHEMA, VERSION
from opline.values import Value

TRACEPOINT = "sched_waking"
THRESHOLD_NS = 200_000  # shorter waits have no stacks
PROGRAM = "stacks_sched_waking"
_FRAMES = 32
_MOST, _MOST_WITH_USER = 8192, 16384  # different stacks

_LOOK_NS = 1_000_000_000  # the least time from one look for new stacks to the next
_QUIET = 50  # writing the file takes that part of the time at most, while the recording goes on

_OWN_FRAMES = ("bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_")  # of the program itself, above a waker's


class StackWish(Value):
    """Of which waits stacks are wanted, and where they are written at the end. ``user``: with user stacks."""

    threshold_ns: int
    file: Path
    user: bool = False


class WaitStacks:
    """The program that takes stacks, and what comes of them. ``definitions`` are for the programs' text, empty where
    this kernel cannot; ``why`` says in a few words that it can't.
    """

    def __init__(self, wish: StackWish, btf: Btf) -> None:
        self._wish = wish
        self._type = btf.tracepoint_type(TRACEPOINT)
        self.why: str | None = None
        self.definitions: dict[str, int] = {}
        self._symbols: Symbols | None = None
        self._taken: dict[int, Any] = {}  # by number, as the program has them
        self._written = 0  # so many of them
        self._next_ns = 0  # when to write
        self.no_user_stacks: str | None = None  # why they are wanted, and can't be had
        self._users: user_stacks.UserStacks | None = None
        if self._type is None or not kernel.known_here():
            self.why = "its BTF does not describe the tracepoint"
        else:
            most = _MOST_WITH_USER if wish.user else _MOST
            self.definitions = {"WAIT_STACK_NS": wish.threshold_ns, "STACK_FRAMES": _FRAMES, "STACKS_MOST": most}
            self.definitions |= user_stacks.definitions(btf) if wish.user else {}

    @property
    def look_ns(self) -> int:
        """How often :meth:`look` wants to be called."""
        return user_stacks.LOOK_NS if self._wish.user else _LOOK_NS

    def load(self, bpf: Loaded) -> bool:
        """Give the program to the kernel; whether the kernel takes it."""
        if self._type is None or not self.definitions:
            return False
        try:
            bpf.load(PROGRAM, kernel.TRACING, kernel.TRACE_RAW_TP, self._type)
        except OSError as error:
            self.why = f"it does not take the program: {error.strerror}"
            return False
        return True

    def know_functions(self, bpf: Loaded) -> None:
        """Before the command starts: reading the kernel's symbols meanwhile takes a processor for 0.1 s, after which
        the scheduler may place a traced thread and the worker of its device worse for seconds.
        """
        try:
            self._symbols = Symbols()
        except OSError as error:
            self.why = f"{KALLSYMS}: {error.strerror}"
        if self._wish.user and self.why is None:
            if user_stacks.had(bpf):
                self._users = user_stacks.UserStacks(bpf)
            else:
                self.no_user_stacks = user_stacks.NEEDS

    def _take(self, bpf: Loaded) -> None:
        """Take the new stacks out of the kernel's map, and see where their programs have their functions."""
        fresh, stacks = bpf.maps["fresh_stacks"], bpf.maps["stacks"]
        if self._users is not None:
            self._users.confirm()
        while (key := fresh.take()) is not None:
            if (stack := stacks.get(key)) is None:
                continue
            self._taken[int(stack.number)] = stack
            if self._users is not None:
                self._users.see(stack)

    def look(self, bpf: Loaded) -> None:
        """Write the file if there are new stacks, and the last time is long enough ago. Never raises."""
        begun = time.monotonic_ns()
        if self._users is None and begun < self._next_ns:
            return
        with suppress(OSError):
            self._take(bpf)
        if begun < self._next_ns:
            return
        if len(self._taken) > self._written:
            self.write(bpf, ended=False)
            self._written = len(self._taken)
        self._next_ns = begun + max(_LOOK_NS, _QUIET * (time.monotonic_ns() - begun))

    def write(self, bpf: Loaded, ended: bool = True) -> dict[str, Any]:
        """Write the file; for the report: ``stacks``, how many there are, or ``stacks_unwritten``, why the file is
        missing. ``ended``: no more come. Never raises: the rest of the report is worth having.
        """
        file = self._wish.file
        try:
            self._take(bpf)
            found = self._document(bpf, ended)
            with Folder(file.parent) as folder:
                folder.write(file.name, json.dumps(found) + "\n", TRACERS)
        except OSError as error:
            return {"stacks_unwritten": f"{file}: {error.strerror}"}
        return {"stacks": len(found["stacks"])}

    def _document(self, bpf: Loaded, ended: bool) -> dict[str, Any]:
        found: dict[int, dict[str, Any]] = {}
        cpus = list(bpf.maps["cpus"].values())
        symbols = self._symbols if self._symbols and not ended else Symbols()  # modules may have come
        for number, stack in self._taken.items():
            frames = [symbols.name(address) for address in user_stacks.addresses(stack.frames)]
            frames = [frame for frame in frames if not frame.startswith(_OWN_FRAMES)]
            end, interrupt = end_of(frames)
            found[number] = {"cause": cause_of(frames), "end": end, "interrupt": interrupt, "frames": frames}
            if self._users is not None and (user := self._users.frames(stack)) is not None:
                found[number]["user"] = user
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "ended": ended,
            "threshold_ns": self._wish.threshold_ns,
            "lost": sum(int(cpu.lost_stacks) for cpu in cpus),
            "left_out": sum(int(cpu.stacks_left_out) for cpu in cpus),
            "causes": [[kind.name, kind.group] for kind in CAUSES],
            "ends": [[kind.name, kind.group] for kind in ENDS],
            "stacks": {str(number): found[number] for number in sorted(found)},
        }
