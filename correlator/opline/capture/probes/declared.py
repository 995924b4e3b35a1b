# SPDX-License-Identifier: MIT
"""Declared probes (a model's ``[probes]``) in a recording: their programs are made, placed and measured here.

Each hit becomes an event of a CTF trace of its own (:mod:`opline.capture.probes.hit_trace`); how a hit gets there is in
:mod:`opline.capture.bpf.bridge`. The probes are on files: they are hit by every process that runs these, also later
ones and forks. A probe stops the thread: what a hit costs on this machine is measured before the first one is placed.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import time
import uuid
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from opline.capture.bpf import kernel
from opline.capture.bpf.bridge import PERIOD_NS, RING_BYTES, Bridge, possible_cpus
from opline.capture.bpf.btf import Btf
from opline.capture.bpf.own_trace import OwnTrace
from opline.capture.machine.elf import Elf
from opline.capture.probes import hit_programs, hit_trace, uprobes
from opline.capture.probes.budget import Budget
from opline.capture.probes.hit_cost import FILLINGS, Measured, Thermometer, added, calls_ns, counting
from opline.capture.probes.hit_programs import Program, UnreadableError
from opline.errors import OplineError
from opline.model import Probe, ProbeField

BRIDGE = Path(__file__).parent.with_name("_hitbridge.so")
_KINDS = 256  # KIND_COUNT in tracepoints/hit_event.h
_STEPPED, _ENTRY, _RETURN = 253, 254, 255  # the programs that measure what a hit costs
_MEASURING = (_STEPPED, _ENTRY, _RETURN)
_TARGETS = {_STEPPED: "probe_target_stepped"}  # else probe_target


def to_json(probes: tuple[Probe, ...], programs: dict[str, list[Path]]) -> str:
    """What the collector is given: the probes, and the files that each program's name stands for."""
    listed = [{**vars(probe), "fields": [_field_to(field) for field in probe.fields]} for probe in probes]
    return json.dumps({"probes": listed, "programs": {name: list(map(str, found)) for name, found in programs.items()}})


def from_json(text: str) -> tuple[list[Probe], dict[str, list[Path]]]:
    """What ``to_json`` wrote."""
    document = json.loads(text)
    probes = []
    for probe in document["probes"]:
        fields = tuple(_field_from(field) for field in probe["fields"])
        probes.append(Probe(**{**probe, "fields": fields}))
    return probes, {name: [Path(path) for path in found] for name, found in document["programs"].items()}


def _field_to(field: ProbeField) -> dict[str, Any]:
    return {**vars(field), "length": None if field.length is None else _field_to(field.length)}


def _field_from(field: dict[str, Any]) -> ProbeField:
    builds = tuple((str(build), int(address)) for build, address in field["builds"])
    length = None if field["length"] is None else _field_from(field["length"])
    compared = None if field["compared"] is None else (str(field["compared"][0]), int(field["compared"][1]))
    values = {"offsets": tuple(field["offsets"]), "builds": builds, "length": length, "compared": compared}
    return ProbeField(**{**field, **values})


class Declared:
    """Probes in their programs' files: ``Declared(…)``, ``start()``, … ``finish()``.

    ``folder``: where the trace is made. ``placed``: events and where their probes are; ``absent``: the line in the
    model, the event and why it has no probe. ``entry_ns``, ``return_ns``, ``stepped_ns``: what a hit costs the thread,
    measured here in a loop; ``measured``: the first one of these with other things in the caches, too. ``budget``: what
    hits may cost, a share of a processor's time; None: whatever they do. Raises OplineError.
    """

    def __init__(
        self,
        probes: list[Probe],
        programs: dict[str, list[Path]],
        folder: Path,
        ring_bytes: int = RING_BYTES,
        period_ns: int = PERIOD_NS,
        budget: float | None = None,
    ) -> None:
        if os.geteuid() != 0:
            raise OplineError("probes in programs need root")
        self.absent: list[tuple[int, str, str]] = []
        self._probes = probes
        self._held: list[tuple[int, int]] = []  # the program, and what holds it at its places
        self._signed: set[tuple[str, str]] = set()
        self._programs = self._find(programs)
        if not self._programs:
            line, event, why = self.absent[0]
            raise OplineError(f"none of the model's probes can be placed; line {line}, {event}: {why}")
        sizes = [hit_programs.payload_bytes(self._probes[p.event].fields) for p in self._programs]
        text = "".join(
            hit_programs.program_text(kind, p.fill, size, bool(p.tracepoint))
            for kind, (p, size) in enumerate(zip(self._programs, sizes, strict=True))
        )
        text += "".join(hit_programs.program_text(kind, "HIT_NUMBER(0, ctx->di)", 8) for kind in _MEASURING)
        names = [str(kind) for kind in range(_KINDS)]
        self._bridge = Bridge(BRIDGE, "the probes' BPF programs", names, {}, ring_bytes, period_ns, text)
        self._multi = True
        self._loaded = {kind: self._load(kind) for kind in (*range(len(self._programs)), *_MEASURING)}
        self.measured = self._cost(_ENTRY, FILLINGS)
        self._thermometer = Thermometer(self.measured)
        self.entry_ns = self.measured[0].hit_ns
        self.return_ns, self.stepped_ns = (self._cost(kind, FILLINGS[:1])[0].hit_ns for kind in (_RETURN, _STEPPED))
        self._share = budget
        self._budget: Budget | None = None
        self._seen = [0] * len(self._programs)
        self._open(folder, sizes)

    def _find(self, programs: dict[str, list[Path]]) -> list[Program]:
        files: dict[Path, Elf] = {}
        found: list[Program] = list(self._find_in_kernel())
        for number, probe in enumerate(self._probes):
            if probe.kind == "tracepoint":
                continue
            missing = f"{probe.program} does not run and is not found; --program FILE names it"
            reasons = [] if programs.get(probe.program) else [missing]
            mine: list[Program] = []
            for path in programs.get(probe.program, []):
                try:
                    file = files.setdefault(path, Elf(path)) if path not in files else files[path]
                    mine += hit_programs.find(probe, number, file)
                    notes = [p.arguments for p in file.places() if f"{p.provider}:{p.name}" == probe.target]
                    self._signed |= {
                        (probe.event, f.name) for f in probe.fields if hit_programs.is_signed(probe, f, notes)
                    }
                except (UnreadableError, OplineError) as error:
                    reasons.append(str(error))
            if not mine or reasons:
                self.absent.append((probe.line, probe.event, "; ".join(reasons)))
            found += mine
        if len(found) > hit_programs.MAX_PROGRAMS:
            raise OplineError(f"{len(found)} programs for the model's probes, at most {hit_programs.MAX_PROGRAMS}")
        return found

    def _find_in_kernel(self) -> Iterator[Program]:
        asked = [(number, probe) for number, probe in enumerate(self._probes) if probe.kind == "tracepoint"]
        btf = Btf.of_kernel() if asked else None
        for number, probe in asked:
            assert btf is not None
            try:
                yield hit_programs.find_in_kernel(probe, number, btf)
            except UnreadableError as error:
                self.absent.append((probe.line, probe.event, str(error)))
            self._signed |= {(probe.event, f.name) for f in probe.fields if hit_programs.is_signed(probe, f, [])}

    def _load(self, kind: int) -> int:
        """The descriptor of a program; for several places at once, if this kernel can."""
        bpf = self._bridge.bpf
        name = f"on_hit_{kind}"
        program = self._programs[kind] if kind < len(self._programs) else None
        if program is not None and program.path is None:
            what = f"the kernel does not take a BPF program at its tracepoint {program.tracepoint}"
            return self._bridge.attempt(what, partial(bpf.load, name))
        if self._multi:
            try:
                return bpf.load(name, kernel.KPROBE, kernel.UPROBE_MULTI)
            except OSError:
                self._multi = False
        what = "the kernel does not take a BPF program for probes"
        return self._bridge.attempt(what, partial(bpf.load, name, kernel.KPROBE))

    def _place(self, kind: int, path: Path, offsets: Sequence[int], semaphores: Sequence[int], returns: bool) -> None:
        try:
            if self._multi:
                held = uprobes.place_all(self._loaded[kind], path, offsets, semaphores, returns)
                self._held.append((kind, held))
                return
            for offset, semaphore in zip(offsets, semaphores, strict=True):
                held = uprobes.place_one(self._loaded[kind], path, offset, semaphore, returns)
                self._held.append((kind, held))
        except OSError as error:
            hint = "; does another tracer probe the same place?" if error.errno == errno.EINVAL else ""
            raise OplineError(f"cannot place a probe in {path}: {error.strerror}{hint}") from error

    def _cost(self, kind: int, fillings: Sequence[tuple[int, int]]) -> list[Measured]:
        """What a hit costs at a function's entry or return: on one of our own that does nothing, and begins as
        functions do, or with an instruction that is single-stepped.
        """
        what = self._bridge.library, kind == _STEPPED, self._loaded[kind], fillings
        bare = calls_ns(*what)
        target = Elf(BRIDGE).functions()[_TARGETS.get(kind, "probe_target")]
        self._place(kind, BRIDGE, (target,), (0,), kind == _RETURN)
        with counting():
            probed = calls_ns(*what)
        self._remove()
        return added(bare, probed)

    def _open(self, folder: Path, sizes: list[int]) -> None:
        library = self._bridge.library
        for kind, (program, size) in enumerate(zip(self._programs, sizes, strict=True)):
            library.hit_kind(kind, program.event, size if self._probes[program.event].fields else 0)
        for opens in (library.hit_open, library.hit_open_next, library.hit_goes_on):
            opens.restype = ctypes.c_bool
        trace = uuid.uuid4()

        def first(top: int, index: int) -> bool:
            return bool(library.hit_open(top, index, possible_cpus(), trace.bytes))

        text = hit_trace.metadata(self._probes, self._signed, trace)
        self.traces = [OwnTrace(folder, text, first, library.hit_open_next, library.hit_goes_on)]

    @property
    def placed(self) -> dict[str, int]:
        """Events, and at how many places their probes are."""
        found: dict[str, int] = {}
        for program in self._programs:
            event = self._probes[program.event].event
            found[event] = found.get(event, 0) + len(program.offsets)
        return found

    @property
    def stepped(self) -> list[str]:
        """Events whose place is an instruction that the kernel single-steps: their hits cost some ten times as much."""
        return sorted({self._probes[program.event].event for program in self._programs if program.stepped})

    def start(self) -> None:
        """Place the probes, start the bridge's thread. Raises OplineError."""
        self._bridge.start([self._loaded[kind] for kind in range(len(self._programs))], [])
        for kind, program in enumerate(self._programs):
            if program.path is not None:
                self._place(kind, program.path, program.offsets, program.semaphores, program.returns)
                continue
            try:
                self._held.append((kind, kernel.open_raw_tracepoint(self._loaded[kind], program.tracepoint)))
            except OSError as error:
                what = f"cannot place a probe at the kernel's tracepoint {program.tracepoint}"
                raise OplineError(f"{what}: {error.strerror}") from error

        if self._share is not None:
            events = [self._probes[program.event].event for program in self._programs]
            self._budget = Budget(self._share, events, self._costs_ns(), time.monotonic_ns())

    def look(self) -> None:
        """See what the hits of a moment cost, and remove what is too hot for the budget."""
        sent = self._bridge.sent(len(self._programs))
        hit = [kind for kind, p in enumerate(self._programs) if p.path is not None and sent[kind] > self._seen[kind]]
        self._seen = sent
        self._thermometer.look([self._loaded[kind] for kind in hit])
        if self._budget is None:
            return
        removed = self._budget.look(time.monotonic_ns(), sent)
        kinds = {k for k, program in enumerate(self._programs) if self._probes[program.event].event in removed}
        if kinds:
            self._remove(kinds)

    def _costs_ns(self) -> list[int]:
        """What a hit of each program costs in a loop; 0 in the kernel, where it is not measured. For its return a
        function is entered through a probe, too.
        """
        more_ns = max(0, self.stepped_ns - self.entry_ns)
        return [
            0 if p.path is None else (self.return_ns if p.returns else self.entry_ns) + (more_ns if p.stepped else 0)
            for p in self._programs
        ]

    def finish(self) -> dict[str, Any]:
        """Remove the probes, write what is left, and say what happened and what it has cost the probed threads."""
        counts = self._bridge.finish(self._remove)
        self._bridge.library.hit_close.restype = ctypes.c_uint64
        unwritten = self._bridge.library.hit_close()
        hits: dict[str, int] = {}
        cost_ns = in_kernel = 0
        costs_ns = self._costs_ns()
        hit_ns = self._thermometer.hit_ns()
        colder_ns = 0 if hit_ns is None else hit_ns - self.entry_ns
        for kind, n in counts["sent"].items():
            program = self._programs[int(kind)]
            event = self._probes[program.event].event
            hits[event] = hits.get(event, 0) + n
            cost_ns += n * (costs_ns[int(kind)] + colder_ns) if program.path is not None else 0
            in_kernel += n if program.path is None else 0
        return {
            **counts,
            "sent": hits,
            "hits": sum(hits.values()),
            "in_kernel": in_kernel,
            "cost_ns": cost_ns,
            "hit_ns": hit_ns,
            "own_ns": self._thermometer.own_ns(),
            "unwritten": unwritten,
            "refused": [refused.document() for refused in self._budget.refused] if self._budget else [],
        }

    def _remove(self, kinds: Container[int] = range(_KINDS)) -> None:
        gone = [held for kind, held in self._held if kind in kinds]
        self._held = [(kind, held) for kind, held in self._held if kind not in kinds]
        if gone:
            with ThreadPoolExecutor(min(len(gone), 64)) as pool:  # perf events take 0.1 s each
                list(pool.map(os.close, gone))
