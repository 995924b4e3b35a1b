# SPDX-License-Identifier: MIT
"""Slow ops against typical ones: how much longer they are, stage by stage, and what their threads did meanwhile.

Takes a run and the two sets of why_sets.choose (the temporary table `sides`); gives sums per stage. In integers, for
each of the two sets:

    sum of the stages + unattributed == sum of the latencies

so the differences of the means sum to the difference of the mean latencies. A stage's time is split by the states of
its thread (states.py) as far as the sched events cover it; the rest of it is ``state_unknown_ns``. The latency's states
are the sums of the stages'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.values import Value
from opline_analyses.ops.places import placed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from opline_analyses.runs.run import Run
    from opline_analyses.why.sets import Sets

STATES = ("on_cpu_ns", "runnable_ns", "blocked_io_ns", "blocked_ns")
HARDLY = 1.2  # times the typical latency: slow ones that are not slower than this are like the others
MOST = 0.5  # of the difference: who makes so much of it is named alone
MONSTER = 0.5  # of the slow ops' time: an op with so much of it is said to be one
UNATTRIBUTED, LATENCY = "unattributed", "latency"


class Side(Value):
    """A stage in one set of ops: sums over the set, ns. The four states and the unknown rest sum to ``total_ns``."""

    ops: int
    total_ns: int
    on_cpu_ns: int
    runnable_ns: int
    blocked_io_ns: int
    blocked_ns: int

    @property
    def mean_ns(self) -> float:
        """Per op of the set, those without the stage included."""
        return self.total_ns / self.ops

    @property
    def state_unknown_ns(self) -> int:
        """What no sched events cover."""
        return self.total_ns - self.on_cpu_ns - self.runnable_ns - self.blocked_io_ns - self.blocked_ns


class Compared(Value):
    """A stage (or `unattributed`, or `latency`) in both sets."""

    stage: str
    kind: str
    after_device: bool  # it begins at a request's completion, wherever it occurs
    slow: Side
    typical: Side

    @property
    def more_ns(self) -> float:
        """How much longer it is in a slow op than in a typical one."""
        return self.slow.mean_ns - self.typical.mean_ns

    def more_of(self, state: str) -> float:
        """The same of one of its states."""
        return float(getattr(self.slow, state) / self.slow.ops - getattr(self.typical, state) / self.typical.ops)


class Place(Value):
    """Of a joined run: a host, or the way between two hosts. Means per op, ns; ``stages``: the same of its stages, the
    largest difference first.
    """

    place: str
    slow_ns: float
    typical_ns: float
    stages: list[tuple[str, float]]

    @property
    def more_ns(self) -> float:
        """How much longer a slow op is there than a typical one."""
        return self.slow_ns - self.typical_ns


class Why(Value):
    """The stages with the largest difference first, and the latency that they sum to."""

    sets: Sets
    stages: list[Compared]
    latency: Compared
    longest_ns: int  # the slowest op's latency
    places: list[Place]  # of a joined run, the largest difference first

    @property
    def sums(self) -> bool:
        """In both sets the stages sum to the latency."""
        return all(
            sum(getattr(s, side).total_ns for s in self.stages) == getattr(self.latency, side).total_ns
            for side in ("slow", "typical")
        )

    def share(self, more_ns: float) -> float | None:
        """Of the whole difference; None where there is none."""
        whole = self.latency.more_ns
        return more_ns / whole if whole > 0 else None

    @property
    def alike(self) -> bool:
        """The slow ones are hardly slower than the others."""
        return self.latency.slow.mean_ns <= HARDLY * self.latency.typical.mean_ns

    @property
    def monster(self) -> float | None:
        """The slowest op's share of the slow ones' time, where it is most of it and twice an equal share."""
        part = self.longest_ns / self.latency.slow.total_ns
        return part if part > max(MONSTER, 2 / self.sets.slow) else None


_STAGES = f"""
    SELECT stage, min(kind), bool_and(from_point = 'C'), slow, sum(duration_ns)::HUGEINT,
           {", ".join(f"coalesce(sum({s}), 0)::BIGINT" for s in STATES)}
    FROM stages JOIN sides USING (op_id) GROUP BY stage, slow"""
_OPS = """
    SELECT slow, sum(unattributed_ns)::HUGEINT, sum(latency_ns)::HUGEINT, max(latency_ns)
    FROM ops JOIN sides USING (op_id) GROUP BY slow"""


def _places(run: Run, sizes: dict[bool, int]) -> list[Place]:
    """The places of the ops in `sides`."""
    found: dict[str, dict[tuple[str, bool], int]] = {}
    for place, stage, slow, total in run.rows(
        f"""SELECT place, stage, slow, sum(duration_ns)::HUGEINT FROM ({placed("sides")}) JOIN sides USING (op_id)
            GROUP BY place, stage, slow"""
    ):
        found.setdefault(place, {})[stage, slow] = int(total)
    places = []
    for place, sums in found.items():
        means = {
            stage: (sums.get((stage, True), 0) / sizes[True], sums.get((stage, False), 0) / sizes[False])
            for stage, _ in sums
        }
        stages = sorted(
            ((stage, slow - typical) for stage, (slow, typical) in means.items()), key=lambda s: (-s[1], s[0])
        )
        slow, typical = (sum(m[side] for m in means.values()) for side in (0, 1))
        places.append(Place(place, slow, typical, stages))
    return sorted(places, key=lambda p: (-p.more_ns, p.place))


def sums_of(run: Run) -> tuple[list[Any], list[Any]]:
    """The sums over the two sets in `sides`: a row per stage and set, a row per set. Rows of several runs add up in
    `compared`.
    """
    return run.rows(_STAGES), run.rows(_OPS)


def compared(sets: Sets, of_stages: Iterable[Any], of_ops: Iterable[Any], places: list[Place]) -> Why:
    """The stages of the two sets, of the rows of `sums_of`."""
    sizes = {True: sets.slow, False: sets.typical}
    kinds: dict[str, str] = {}
    after: dict[str, bool] = {}
    found: dict[tuple[str, bool], list[int]] = {}

    def add(stage: str, slow: bool, *sums: int) -> None:
        known = found.setdefault((stage, slow), [0] * (1 + len(STATES)))
        for place, ns in enumerate(sums):
            known[place] += ns

    for stage, kind, from_c, slow, *sums in of_stages:
        kinds[stage] = min(kind, kinds.get(stage, kind))
        after[stage] = from_c and after.get(stage, True)
        add(stage, slow, *sums)
    for slow in sizes:
        states = [
            sum(sums[place] for (_, of), sums in found.items() if of == slow) for place in range(1, 1 + len(STATES))
        ]
        found[LATENCY, slow] = [0, *states]
    longest = 0
    for slow, unattributed, latency, most in of_ops:
        add(LATENCY, slow, latency)
        add(UNATTRIBUTED, slow, unattributed)
        longest = max(longest, int(most))

    def side(stage: str, slow: bool) -> Side:
        return Side(sizes[slow], *found.get((stage, slow), [0] * (1 + len(STATES))))

    def both(stage: str) -> Compared:
        return Compared(stage, kinds.get(stage, ""), after.get(stage, False), side(stage, True), side(stage, False))

    rows = [both(stage) for stage in (*kinds, UNATTRIBUTED)]
    rows.sort(key=lambda s: (-s.more_ns, s.stage))
    return Why(sets, rows, both(LATENCY), longest, places)


def compare_sets(run: Run, sets: Sets) -> Why:
    """The stages of the two sets in `sides`."""
    sizes = {True: sets.slow, False: sets.typical}
    return compared(sets, *sums_of(run), _places(run, sizes) if run.is_cluster else [])
