# SPDX-License-Identifier: MIT
"""Kernel stacks of waits: the program that takes them (tracepoints/stacks.bpf.c), and ``stacks.json``, into which they
go with the names of their functions and the kind of wait (:mod:`opline.readers.stacks`). The file is written while the
recording goes on, too, whenever there are new stacks: a recorder that is killed leaves most of them.

The program asks for the stack of another thread, which only programs may that know their arguments' types
(BPF_TRACE_RAW_TP, Linux 5.5).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opline.capture.bpf import kernel
from opline.capture.bpf.btf import Btf
from opline.capture.bpf.loaded import Loaded
from opline.capture.bpf.symbols import KALLSYMS, Symbols
from opline.folder import TRACERS, Folder
from opline.readers.causes import CAUSES, ENDS, cause_of, end_of
from opline.readers.stacks import SCHEMA, VERSION

TRACEPOINT = "sched_waking"
THRESHOLD_NS = 200_000  # shorter waits have no stacks
PROGRAM = "stacks_sched_waking"
_FRAMES = 32
_MOST = 8192  # different stacks

_LOOK_NS = 1_000_000_000  # the least time from one look for new stacks to the next
_QUIET = 50  # writing the file takes that part of the time at most, while the recording goes on

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
        self.why: str | None = None
        self.definitions: dict[str, int] = {}
        self._symbols: Symbols | None = None
        self._written = 0  # so many stacks
        self._next_ns = 0  # when to look for new ones
        if self._type is None or not kernel.known_here():
            self.why = "its BTF does not describe the tracepoint"
        else:
            self.definitions = {"WAIT_STACK_NS": wish.threshold_ns, "STACK_FRAMES": _FRAMES, "STACKS_MOST": _MOST}

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

    def know_functions(self) -> None:
        """Before the command starts: reading the kernel's symbols meanwhile takes a processor for 0.1 s, after which
        the scheduler may place a traced thread and the worker of its device worse for seconds.
        """
        try:
            self._symbols = Symbols()
        except OSError as error:
            self.why = f"{KALLSYMS}: {error.strerror}"

    def look(self, bpf: Loaded) -> None:
        """Write the file if there are new stacks, and the last time is long enough ago. Never raises."""
        begun = time.monotonic_ns()
        if begun < self._next_ns:
            return
        taken = sum(int(cpu.stacks) for cpu in bpf.maps["cpus"].values())
        if taken > self._written:
            self.write(bpf, ended=False)
            self._written = taken
        self._next_ns = begun + max(_LOOK_NS, _QUIET * (time.monotonic_ns() - begun))

    def write(self, bpf: Loaded, ended: bool = True) -> dict[str, Any]:
        """Write the file; for the report: ``stacks``, how many there are, or ``stacks_unwritten``, why the file is
        missing. ``ended``: no more come. Never raises: the rest of the report is worth having.
        """
        file = self._wish.file
        try:
            found = self._document(bpf, ended)
            with Folder(file.parent) as folder:
                folder.write(file.name, json.dumps(found) + "\n", TRACERS)
        except OSError as error:
            return {"stacks_unwritten": f"{file}: {error.strerror}"}
        return {"stacks": len(found["stacks"])}

    def _document(self, bpf: Loaded, ended: bool) -> dict[str, Any]:
        found: dict[int, dict[str, Any]] = {}
        stacks = list(bpf.maps["stacks"].values())
        cpus = list(bpf.maps["cpus"].values())
        symbols = self._symbols if self._symbols and not ended else Symbols()  # modules may have come
        for stack in stacks:
            frames = [symbols.name(address) for address in stack.frames if address]
            frames = [frame for frame in frames if not frame.startswith(_OWN_FRAMES)]
            end, interrupt = end_of(frames)
            found[int(stack.number)] = {"cause": cause_of(frames), "end": end, "interrupt": interrupt, "frames": frames}
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
