# SPDX-License-Identifier: MIT
"""What a hit of a probe costs the thread: measured on a function of opline's own, and told of a recording's own hits.

A hit in a loop finds everything in the caches, one of a program that does something else in between finds less: it
costs twice to ten times as much. How much a recording's hits found is told by what their BPF programs took, which the
kernel counts if it is asked to (Linux 5.8): the less was in the caches, the longer. So what a hit costs is measured
with caches filled with nothing, with somewhat and with much else, together with what the BPF program took then.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from opline.capture.bpf import kernel

#: Bytes that are written before a call, and of how many rounds the one in the middle counts.
FILLINGS = ((0, 41), (4 << 20, 15), (64 << 20, 7))
_TIMED_CALLS = 50  # in a round without filling
_LOOK_S = 0.02  # while the kernel counts: that takes some 40 ns of each hit


class Measured(NamedTuple):
    """What a hit took after so many bytes had been written, and what its BPF program took of that; None: unknown."""

    filled_bytes: int
    hit_ns: int
    own_ns: int | None


def calls_ns(library: Any, stepped: bool, program: int, fillings: Iterable[tuple[int, int]]) -> list[Measured]:
    """What a call of the bridge's function takes, after each filling; with a probe on it, what ``program`` takes."""
    hot, cold = library.probe_time_calls, library.probe_time_cold_call
    hot.restype = cold.restype = ctypes.c_uint64
    hot.argtypes = (ctypes.c_uint32, ctypes.c_bool)
    cold.argtypes = (ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint64)
    found = []
    for size, rounds in fillings:
        other = ctypes.create_string_buffer(size)
        took, owns = [], []
        for _ in range(rounds):
            before = _spent([program])
            took.append(hot(_TIMED_CALLS, stepped) // _TIMED_CALLS if size == 0 else cold(stepped, other, size))
            owns += _own_ns(before, _spent([program]))
        found.append(Measured(size, statistics.median_low(took), statistics.median_low(owns) if owns else None))
    return found


def added(bare: Sequence[Measured], probed: Sequence[Measured]) -> list[Measured]:
    """What the probe added to each call; the fuller the caches of other things, the more."""
    found: list[Measured] = []
    for without, with_probe in zip(bare, probed, strict=True):
        least = found[-1].hit_ns if found else 0
        found.append(Measured(without.filled_bytes, max(least, with_probe.hit_ns - without.hit_ns), with_probe.own_ns))
    return found


class Thermometer:
    """How much of what hits need was in the caches: ``look()`` now and then, ``hit_ns()`` at the end.

    ``measured``: as ``added`` gives them.
    """

    def __init__(self, measured: Sequence[Measured]) -> None:
        self._measured = measured
        self._looks: list[tuple[int, int]] = []  # what a hit's BPF program took, and in how many hits

    def look(self, programs: Sequence[int]) -> None:
        """Let the kernel count for a moment what these programs take."""
        if not programs:
            return
        with counting():
            before = _spent(programs)
            time.sleep(_LOOK_S)
            after = _spent(programs)
        self._looks += [(own, after[1] - before[1]) for own in _own_ns(before, after)]

    def own_ns(self) -> int | None:
        """What a hit's BPF program took: of all hits that were counted the one in the middle, by the looks' means."""
        half = sum(n for _, n in self._looks) / 2
        for own, n in sorted(self._looks):
            half -= n
            if half <= 0:
                return own
        return None

    def hit_ns(self) -> int | None:
        """What a hit cost, by that; what is beyond all that was measured is taken for the last. None: unknown."""
        own = self.own_ns()
        known = [(one.own_ns, one.hit_ns) for one in self._measured if one.own_ns is not None]
        if own is None or not known:
            return None
        if own <= known[0][0]:
            return known[0][1]
        for (a, cost_a), (b, cost_b) in pairwise(known):
            if a < own <= b:
                return cost_a + (cost_b - cost_a) * (own - a) // (b - a)
        return max(cost for _, cost in known)


@contextmanager
def counting() -> Iterator[None]:
    """The kernel counts what BPF programs take, if it can."""
    try:
        held = kernel.count_times()
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.close(held)


def _spent(programs: Iterable[int]) -> tuple[int, int]:
    """What BPF programs have taken so far, and how often they ran, while the kernel counted."""
    ns = times = 0
    for program in programs:
        lines = Path(f"/proc/self/fdinfo/{program}").read_text().splitlines()
        about = dict(line.split(":", 1) for line in lines)
        ns += int(about.get("run_time_ns", 0))
        times += int(about.get("run_cnt", 0))
    return ns, times


def _own_ns(before: tuple[int, int], after: tuple[int, int]) -> list[int]:
    """The mean between two of these; none if nothing ran."""
    times = after[1] - before[1]
    return [(after[0] - before[0]) // times] if times > 0 else []
