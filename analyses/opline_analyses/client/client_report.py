# SPDX-License-Identifier: MIT
"""The figures reported by a benchmark itself, with times in integer nanoseconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from opline_analyses.runs.selection import directions_of

_LONGEST_NS = 86400 * 10**9  # a mean latency where the report says no run time
_SLACK_S = 1.0  # a run time is rounded
_OWN_SHARE = 0.1  # of a client's mean, which it may need for its own work around a call: two looks at a clock,
_OWN_NS = 5_000  # and in any case so much
DIRECTIONS = ("read", "write", "trim", "sync")


def possible(number: float) -> bool:
    """For a time, a rate, a number of bytes: the range of 64 bits. JSON has NaN, Infinity and 1e300 for Python."""
    return 0 <= number < 1 << 64


@dataclass(slots=True)
class ClientReport:
    """A benchmark's own figures. ``numbers`` has all figures of the text, by opline's names, in the text's units."""

    tool: str
    mean_ns: float
    count: int | None = None
    seconds: float | None = None
    iops: float | None = None
    queue_depth: int | None = None
    by_class: dict[str, tuple[int, float]] = field(default_factory=dict)  # class -> count, mean_ns
    numbers: dict[str, float] = field(default_factory=dict)
    source: str = ""
    bytes: int | None = None  # moved bytes, by the tool's count
    bytes_by_class: dict[str, int] = field(default_factory=dict)
    ramp_seconds: float | None = None  # time of the same work before the counted time
    rate: float | None = None  # ops due per second on each thread, for a client with a schedule
    rates: dict[str, float] = field(default_factory=dict)  # the same for each direction separately
    rates_source: str = ""  # source of the rates
    # count and mean_ns of fsync and the like, not contained in the figures above
    syncs: tuple[int, float] | None = None

    def counts(self) -> dict[str, int]:
        """Number of ops of each class, if the tool counts classes separately."""
        return {name: count for name, (count, _) in self.by_class.items()}

    def of_classes(self, names: Sequence[str]) -> ClientReport | None:
        """The report of some classes of ops alone, by the directions in their names. The whole report if these are all
        classes, or if the tool does not tell directions apart; None without a figure of such ops.
        """
        apart = self.by_class | ({"sync": self.syncs} if self.syncs else {})
        wanted: set[str] = set()
        for name in names:
            found = {name} if name in apart else set(directions_of(name, [*DIRECTIONS, *apart]))
            if not found and len(apart) == 1:
                found = set(apart)
            if not found or not found <= set(apart):
                return self if not apart else None
            wanted |= found
        if wanted == set(self.by_class):
            return self
        chosen = {name: apart[name] for name in sorted(wanted)}
        count = sum(n for n, _ in chosen.values())
        moved = [self.bytes_by_class.get(name) for name in chosen]
        return replace(
            self,
            mean_ns=sum(n * mean for n, mean in chosen.values()) / count,
            count=count,
            iops=count / self.seconds if self.seconds else None,
            queue_depth=None,
            by_class=chosen,
            bytes=None if None in moved else sum(n for n in moved if n is not None),
            rates={name: rate for name, rate in self.rates.items() if name in chosen},
        )

    def outside_ns(self, mean_ns: float) -> float | None:
        """The part of the tool's mean outside of its counted ops with the mean ``mean_ns``: mostly in a queue of the
        tool. None: not more than for reading a clock.
        """
        outside_ns = self.mean_ns - mean_ns
        return outside_ns if outside_ns > max(_OWN_SHARE * self.mean_ns, _OWN_NS) else None

    def fault(self) -> str | None:
        """An impossible figure, in a line."""
        for what, value in (
            ("run time", self.seconds),
            ("ramp time", self.ramp_seconds),
            *(("number of bytes", n) for n in (self.bytes, *self.bytes_by_class.values())),
            *(("rate", rate) for rate in (self.rate, *self.rates.values())),
        ):
            if value is not None and not possible(value):
                return f"a {what} of {value:g}"
        limit_ns = (self.seconds + (self.ramp_seconds or 0) + _SLACK_S) * 1e9 if self.seconds else _LONGEST_NS
        for mean in (
            self.mean_ns,
            *(mean for _, mean in self.by_class.values()),
            *([self.syncs[1]] if self.syncs else []),
        ):
            if not math.isfinite(mean) or mean < 0:
                return f"a mean latency of {mean:g} ns"
            if mean > limit_ns:
                run = f", in a run of {self.seconds:g} s" if self.seconds else ""
                return f"a mean latency of {mean / 1e9:g} s{run}"
        return None
