# SPDX-License-Identifier: MIT
"""Uprobes on ceph-osd's exported functions, for builds without tracepoints of their own (Debian's).

Each hit becomes an event of the provider ``cephprobe``; tracepoints/probe_event.h lists the functions and says how
their arguments are read. How a hit reaches LTTng is in :mod:`opline.capture.bpf.bridge`. A probe stops the thread for a
microsecond or several: what a hit costs on this machine is measured before the first one is placed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import statistics
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from opline.capture.bpf.bridge import PERIOD_NS, RING_BYTES, Bridge, load_library
from opline.errors import OplineError

BRIDGE = Path(__file__).parent.with_name("_probebridge.so")
_TIMED_CALLS = 50
_ROUNDS = 41


@dataclass(frozen=True, slots=True)
class Probe:
    """One function: the event of a hit, where it is (``ENTRY``, ``RETURN``), and its mangled name."""

    event: str
    at: str
    symbol: str


def probe_list(library: Any) -> list[Probe]:
    """All that the bridge knows, in the order of its kinds."""
    library.probe_list.restype = ctypes.c_char_p
    return [Probe(*line.split()) for line in library.probe_list().decode().splitlines()]


class Probes:
    """Uprobes on all processes that run ``binary``: ``Probes(binary)``, ``start()``, … ``finish()``.

    ``attached`` and ``absent`` name the events whose function the binary has and has not. ``entry_ns``, ``return_ns``:
    what a hit costs the thread, measured here. Raises OplineError.
    """

    def __init__(self, binary: Path, ring_bytes: int = RING_BYTES, period_ns: int = PERIOD_NS) -> None:
        if os.geteuid() != 0:
            raise OplineError("uprobes need root")
        if platform.machine() != "x86_64":
            raise OplineError(f"uprobes on ceph-osd read registers of x86-64 only, this is {platform.machine()}")
        if not binary.is_file():
            raise OplineError(f"{binary}: no such file: install ceph-osd, or give its path")
        self.binary = binary
        self.attached: list[str] = []
        self.absent: list[str] = []
        self._placed: list[int] = []
        self._probes = probe_list(load_library(BRIDGE))
        kinds = [probe.event for probe in self._probes]
        self._bridge = Bridge(BRIDGE, "the uprobes' BPF programs", kinds, {}, ring_bytes, period_ns)
        self._programs = [
            self._bridge.attempt(
                f"the kernel does not take the BPF program for {kind}",
                partial(self._bridge.bpf.load_func, f"on_{kind}".encode(), self._bridge.bpf.KPROBE),
            )
            for kind in kinds
        ]
        self.entry_ns, self.return_ns = self._measure()

    def _attach(self, probe: Probe, binary: Path) -> int:
        """Place one; the descriptor of its perf event, which is the probe: closed, it is gone.

        bcc's own detach_uprobe() wants tracefs, where there is nothing to remove: it attached without.
        """
        bpf = self._bridge.bpf
        attach = bpf.attach_uprobe if probe.at == "ENTRY" else bpf.attach_uretprobe
        before = set(bpf.uprobe_fds)
        attach(name=str(binary).encode(), sym=probe.symbol.encode(), fn_name=f"on_{probe.event}".encode())
        (name,) = set(bpf.uprobe_fds) - before
        return int(bpf.uprobe_fds.pop(name))

    def _measure(self) -> tuple[int, int]:
        """What a hit costs at a function's entry and at its return: on one of our own that does nothing."""
        control = self._bridge.bpf[b"control"]
        leaf = control.Leaf()
        leaf.mask = (1 << len(self._probes)) - 1
        control[control.Key(0)] = leaf
        bare_ns = self._call_ns()
        costs = []
        for at in ("ENTRY", "RETURN"):
            event = next(probe.event for probe in self._probes if probe.at == at)
            target = Probe(event, at, "probe_target")
            descriptor = self._bridge.attempt(
                f"cannot place a uprobe on {BRIDGE}", partial(self._attach, target, BRIDGE)
            )
            costs.append(max(0, self._call_ns() - bare_ns))
            os.close(descriptor)
        leaf.mask = 0
        control[control.Key(0)] = leaf
        return costs[0], costs[1]

    def _call_ns(self) -> int:
        """What a call of that function takes: of many rounds the one in the middle, whatever else the machine does."""
        timed = self._bridge.library.probe_time_calls
        timed.restype = ctypes.c_uint64
        timed.argtypes = (ctypes.c_uint32,)
        return int(statistics.median_low(timed(_TIMED_CALLS) for _ in range(_ROUNDS))) // _TIMED_CALLS

    def enabled(self) -> int:
        """What the programs record at the moment because a session has enabled it: a bit per kind, 0 for nothing."""
        return self._bridge.enabled()

    def start(self) -> None:
        """Place the probes, start the bridge's thread. Raises OplineError if the binary has none of the functions."""
        failure: Exception | None = None
        for probe in self._probes:
            try:
                descriptor = self._bridge.attempt(
                    f"cannot place a uprobe on {self.binary}", partial(self._attach, probe, self.binary)
                )
                self._placed.append(descriptor)
                self.attached.append(probe.event)
            except OplineError as error:
                failure = error
                self.absent.append(probe.event)
        if not self.attached:
            assert failure is not None
            raise failure
        self._bridge.start([program.fd for program in self._programs], [])

    def finish(self) -> dict[str, Any]:
        """Remove the probes, pass on what is left, and say what happened and what it has cost the traced threads."""
        counts = self._bridge.finish(self._remove)
        returns = {probe.event for probe in self._probes if probe.at == "RETURN"}
        hits = counts["sent"]
        cost_ns = sum(n * (self.return_ns if event in returns else self.entry_ns) for event, n in hits.items())
        return {**counts, "hits": sum(hits.values()), "cost_ns": cost_ns}

    def _remove(self) -> None:
        with ThreadPoolExecutor(len(self._placed)) as pool:  # the kernel takes some 0.1 s for each
            list(pool.map(os.close, self._placed))
        self._placed.clear()
