# SPDX-License-Identifier: MIT
"""What has changed between runs of A and runs of B: the whole ops, their stages, devices and sizes.

Takes the figures of each run of both sides; gives a `Comparison`: rows with a verdict each, and what only one side has.
Judged are the mean, p50 and p99 of the latency and the rate, and of each stage (and device, where there are several)
mean and p50: two families of figures, each with Holm's correction. Stages of less than 1 us and 1 % of the latency on
both sides are not judged. ``shape`` holds each stage against the others of its own run: a slow moment of the machine
takes part in all of them and cancels.
"""

from __future__ import annotations

import math
import statistics
from itertools import combinations
from typing import TYPE_CHECKING

from opline.values import Value
from opline_analyses.compare.figures import LATENCY, Figures
from opline_analyses.compare.power import bounded, least_outside, least_seen, runs_needed
from opline_analyses.compare.verdicts import (
    FAMILY,
    HISTORY,
    HISTORY_LEVEL,
    LIMIT,
    SLOWER,
    Difference,
    Verdict,
    change,
    difference,
    holm,
    prediction,
    verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HEADLINE = ("mean", "p50", "p99", "iops")
OF_STAGES = ("mean", "p50")
LEAST_NS = 1000
LEAST_SHARE = 0.01
SHAPES = 4  # stages that it takes to hold one against the others
MIX = 0.01  # shares of classes or sizes that differ by more are told


class Row(Value):
    """A figure of both sides. ``a``, ``b``: its value in each run that has it; ns, but iops. ``p``: corrected."""

    name: str  # of the stage or the device, or LATENCY
    figure: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    difference: Difference | None
    p: float | None
    verdict: Verdict

    @property
    def typical(self) -> tuple[float, float]:
        """Of a run of A and of B: the geometric mean, where there is one."""
        if self.difference:
            return self.difference.a, self.difference.b
        return statistics.fmean(self.a), statistics.fmean(self.b)

    @property
    def size(self) -> float:
        """How much it changed, in its unit."""
        a, b = self.typical
        return abs(b - a)


class Only(Value):
    """A stage that some runs lack: in how many of each side it is, its share of the ops and time per op there."""

    stage: str
    a: int
    b: int
    share: float
    mean_ns: float


class Comparison(Value):
    """Everything that is said of two sides."""

    a: tuple[Figures, ...]
    b: tuple[Figures, ...]
    limit: float
    headline: list[Row]
    stages: list[Row]
    devices: list[Row]
    small: list[Row]  # stages too small to judge
    shape: list[Row]  # of the judged stages: their p50, without how fast their run was
    only: list[Only]
    judged: int  # figures in the family of stages

    def _level(self, row: Row) -> float:
        """Of the test of a figure, where it is the first of its family that Holm's correction looks at."""
        return FAMILY / (len(HEADLINE) if row.name == LATENCY else max(self.judged, 1))

    def needed(self, row: Row) -> int | None:
        """Runs of each side that would call a change of the limit in a figure, judged with the others of its family."""
        d = row.difference
        if d is None or d.scatter is None or d.scatter_df is None:
            return None
        return runs_needed(d.scatter, d.scatter_df, self.limit, self._level(row))

    def least(self, row: Row) -> float | None:
        """The log ratio of a figure that as many runs as these would call."""
        d = row.difference
        if d is None or d.scatter is None or d.scatter_df is None:
            return None
        scatter = bounded(d.scatter, d.scatter_df)
        if min(len(row.a), len(row.b)) == 1:
            return least_outside(scatter, len(row.a), 1 - HISTORY_LEVEL)
        return least_seen(scatter, 2 / (1 / len(row.a) + 1 / len(row.b)), self._level(row))

    @property
    def described(self) -> bool:
        """A side has one run: nothing is judged."""
        return min(len(self.a), len(self.b)) < 2

    def apart(self) -> list[float | None]:
        """The factor that two runs of a side are apart in their mean latency: the median of the pairs."""
        return [_apart([f.value("mean") or 0.0 for f in side]) for side in (self.a, self.b)]


def _apart(values: Sequence[float]) -> float | None:
    pairs = [max(p) / min(p) for p in combinations(values, 2) if min(p) > 0]
    return statistics.median(pairs) if pairs else None


def _values(side: Sequence[Figures], of: Callable[[Figures], float | None]) -> tuple[float, ...]:
    return tuple(v for f in side if (v := of(f)) is not None)


class _Candidate(Value):
    """A figure before it is judged."""

    name: str
    figure: str
    a: tuple[float, ...]
    b: tuple[float, ...]


def _rows(candidates: Sequence[_Candidate], limit: float, words: tuple[str, str] = SLOWER) -> list[Row]:
    """One family, judged together."""
    found = [difference(c.a, c.b, 0.0 if c.figure == "iops" else 1.0) for c in candidates]
    p = [d.p() if d else None for d in found]
    corrected = iter(holm([v for v in p if v is not None]))
    rows = []
    for c, d, v in zip(candidates, found, p, strict=True):
        holms = None if v is None else next(corrected)
        if d is None:
            text = Verdict("unjudged", "0 in some runs")
        else:
            text = verdict(d, holms, limit, ("higher", "lower") if c.figure == "iops" else words)
        rows.append(Row(c.name, c.figure, c.a, c.b, d, holms, text))
    return rows


def compare(a: Sequence[Figures], b: Sequence[Figures], limit: float = LIMIT) -> Comparison:
    """Compares runs of B with runs of A, at least one of each. ``limit``: a smaller share does not matter."""
    both = [*a, *b]
    headline = _rows([_Candidate(LATENCY, name, *_of_sides(a, b, LATENCY, name)) for name in HEADLINE], limit)
    if len(b) == 1 and len(a) >= HISTORY:
        headline = [_against_history(row) for row in headline]
    names = list(dict.fromkeys(name for f in both for name in f.stages))
    common = [name for name in names if all(name in f.stages for f in both)]
    latency = [statistics.fmean(v) for v in _of_sides(a, b, LATENCY, "mean")]
    judged: list[str] = []
    small: list[str] = []
    for name in common:
        means = [statistics.fmean(v) for v in _of_sides(a, b, name, "mean")]
        little = all(m < LEAST_NS and m < LEAST_SHARE * whole for m, whole in zip(means, latency, strict=True))
        (small if little else judged).append(name)
    candidates = [_Candidate(n, figure, *_of_sides(a, b, n, figure)) for n in judged for figure in OF_STAGES]
    devices = _device_candidates(a, b)
    rows = _rows([*candidates, *devices], limit)
    stages, of_devices = rows[: len(candidates)], rows[len(candidates) :]
    unjudged = [
        Row(name, "mean", *_of_sides(a, b, name, "mean"), None, None, Verdict("unjudged", "")) for name in small
    ]
    return Comparison(
        tuple(a), tuple(b), limit, headline, _biggest_first(stages), of_devices, unjudged,
        _shape(a, b, judged, limit), list(_only(a, b, names)), sum(row.p is not None for row in rows),
    )  # fmt: skip


def _of_sides(
    a: Sequence[Figures], b: Sequence[Figures], stage: str, figure: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return _values(a, lambda f: f.value(figure, stage)), _values(b, lambda f: f.value(figure, stage))


def _biggest_first(rows: list[Row]) -> list[Row]:
    """The rows of a stage together, in order of how much the mean per op changed."""
    size = {row.name: row.size for row in rows if row.figure == "mean"}
    return sorted(rows, key=lambda row: -size[row.name])


def _device_candidates(a: Sequence[Figures], b: Sequence[Figures]) -> list[_Candidate]:
    """The mean time between D and C of each device that all runs use, where they use several."""
    common = [d for d in dict.fromkeys(d for f in a for d in f.devices) if all(_done(f, d) for f in (*a, *b))]
    if len(common) < 2:
        return []

    def mean(f: Figures, name: str) -> float:
        return f.devices[name].d2c_ns / f.devices[name].done

    return [_Candidate(d, "D2C", *(tuple(mean(f, d) for f in side) for side in (a, b))) for d in common]


def _done(f: Figures, device: str) -> int:
    return f.devices[device].done if device in f.devices else 0


def _shape(a: Sequence[Figures], b: Sequence[Figures], judged: Sequence[str], limit: float) -> list[Row]:
    """Each stage's p50, as it would be if all runs were equally fast. How fast a run is: the median over its stages of
    how far each is from what it typically takes in all runs (S. Anders, W. Huber, Genome Biology 11:R106, 2010, who so
    compare samples of different size). Few stages that changed do not move it.
    """
    runs = (*a, *b)
    names = [name for name in judged if all(f.stages[name].p50_ns for f in runs)]
    if len(names) < SHAPES or min(len(a), len(b)) < 2:
        return []
    logs = {name: [math.log(f.stages[name].p50_ns) for f in runs] for name in names}
    typical = {name: statistics.fmean(values) for name, values in logs.items()}
    paces = [statistics.median(logs[name][n] - typical[name] for name in names) for n in range(len(runs))]
    shapes = {name: [math.exp(v - pace) for v, pace in zip(logs[name], paces, strict=True)] for name in names}
    candidates = [_Candidate(n, "shape", tuple(v[: len(a)]), tuple(v[len(a) :])) for n, v in shapes.items()]
    return _rows(candidates, limit, ("longer", "shorter"))


def _only(a: Sequence[Figures], b: Sequence[Figures], names: Sequence[str]) -> Iterator[Only]:
    for name in names:
        having = [[f for f in side if name in f.stages] for side in (a, b)]
        if len(having[0]) == len(a) and len(having[1]) == len(b):
            continue
        runs = [*having[0], *having[1]]
        ops = sum(f.ops for f in runs)
        share, mean = sum(f.stages[name].count for f in runs) / ops, sum(f.stages[name].total_ns for f in runs) / ops
        yield Only(name, len(having[0]), len(having[1]), share, mean)


def _against_history(row: Row) -> Row:
    """One run of B against HISTORY and more of A: of the median only, as p99 and means of single runs are too wild for
    it, and at 1 % instead of 5.
    """
    if row.figure != "p50" or len(row.b) != 1:
        return row
    d = prediction(row.a, row.b[0], 1.0)
    interval = d.interval(HISTORY_LEVEL) if d else None
    if d is None or interval is None:
        return row
    outside = interval[0] > 0 or interval[1] < 0
    where = "outside" if outside else "inside"
    text = f"{change(d.log_ratio)}: {where} what {len(row.a)} earlier runs span"
    kind = ("more" if d.log_ratio > 0 else "less") if outside else "undecided"
    return Row(row.name, row.figure, row.a, row.b, d, d.p(), Verdict(kind, text))


# --- whether the two are the same thing -------------------------------------------------------------------------------


def mixes(c: Comparison) -> Iterator[tuple[str, str, float, float]]:
    """Classes and sizes whose share of the ops differs by more than MIX: what, which, share in A, share in B."""

    def counts(f: Figures, what: str) -> dict[str, int]:
        return f.classes if what == "class" else f.sizes

    for what in ("class", "size"):
        shares = [_shares([counts(f, what) for f in side]) for side in (c.a, c.b)]
        for name in dict.fromkeys([*shares[0], *shares[1]]):
            x, y = (s.get(name, 0.0) for s in shares)
            if abs(x - y) > MIX:
                yield what, name, x, y


def _shares(counts: Sequence[dict[str, int]]) -> dict[str, float]:
    total = sum(sum(c.values()) for c in counts)
    names = dict.fromkeys(name for c in counts for name in c)
    return {name: sum(c.get(name, 0) for c in counts) / total for name in names}


def doubts(c: Comparison) -> Iterator[str]:
    """What may make a comparison of these runs meaningless, a line each."""
    both = [*c.a, *c.b]
    for key, what in (
        ("hostname", "machines"), ("kernel", "kernels"), ("cpu_count", "numbers of CPUs"), ("machine", "architectures")
    ):  # fmt: skip
        found = sorted({f.where[key] for f in both if key in f.where})
        if len(found) > 1:
            yield f"the runs are of different {what}: {', '.join(found)}"
    models = sorted({f.model for f in both if f.model})
    if len(models) > 1:
        yield f"the runs were correlated with different models: {', '.join(models)}"
    if any(what == "class" for what, *_ in mixes(c)):
        yield "the two sides have different shares of classes: compare each class by itself with --class C"
    for f in both:
        if f.tainted > LEAST_SHARE * f.ops:
            yield f"{f.name}: lost events touch {f.tainted} ops besides the {f.ops} that count"
    ops = [sum(f.ops for f in side) / len(side) for side in (c.a, c.b)]
    if max(ops) > 2 * min(ops):
        yield f"a run of A has {ops[0]:.0f} ops, one of B {ops[1]:.0f}: percentiles far out are not of equal weight"
