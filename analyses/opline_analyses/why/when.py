# SPDX-License-Identifier: MIT
"""When the slow ops come: whether they do in bursts that return after a fixed time.

Takes the begins and ends of slow ops; gives the period, the window in it and how sure that is, or nothing. The periods
from a FINEST-th to a LEAST-th of the run are looked at by octaves. In each, slow ops that overlap, or are no further
apart than a tenth of its shortest period, are one episode, which counts at the time of its first begin: what comes in
clusters is not taken for what comes often. A long burst counts no more than a single op then, so the largest episodes
that hold 8 in 10 or half of the slow ops are looked at, too, without the others. For each period the episodes are laid
on a circle of BINS bins, and the window of 1 to WIDEST bins with the most of them is found.

If episodes came at any time, a window with a share w of the circle would have k and more of n with the binomial tail's
probability. That times the number of octaves, of parts of the episodes, and of windows and periods that were
tried in the octave, is p (Bonferroni). Four in ten turns of the circle must have an episode in the window, and a fifth
of the slow ops must begin in it, its fullest turn not counted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opline_analyses.block.io_sources import AT_DEVICE
from opline_analyses.runs.columns import named, queried, ranges
from opline_analyses.why.device import OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from opline_analyses.runs.run import Run

    Numbers = np.ndarray[Any, np.dtype[np.int64]]
    Periods = np.ndarray[Any, np.dtype[np.float64]]

BINS = 20
WIDEST = 4  # bins of the window: a burst takes a fifth of its period at most
LEAST = 4  # turns of the circle in the run
FINEST = 256  # periods are at least this part of the run: six octaves
APART = 0.1  # of the period: closer slow ops are one episode
PARTS = (1.0, 0.8, 0.5)  # of the slow ops: of all episodes, and of the largest ones
P = 0.001
TURNS = 0.4  # of the turns have an episode in the window
LIFT = 2.0  # the window has so many times the episodes that its width would have
EPISODES = 6
COVER = 0.2  # of the slow ops begin in the window, its fullest turn not counted
CLOSE = 0.9  # of the best evidence, a logarithm: of the periods with so much the longest is told
MOSTLY = 0.75  # of the slow ops: a longer period with so many, and fewer empty turns, is told instead
ALTERNATE, DEVIATIONS = 0.7, 2.5  # so many of the episodes, and more than chance, in every second or third turn
CROWDED = 4  # episodes per turn: of more no period can be seen
NEXT = 20  # periods of an octave, the best first, whose windows are looked at
WINDOW_BINS = 200
ROOM = 1 << 19  # cells of a table of counts


class Bursts(NamedTuple):
    """Times in ns on the trace's clock: the window opens at ``first_ns`` and each ``period_ns`` later, for
    ``width_ns``. ``met`` of ``turns`` windows have a slow op, ``inside`` of ``slow`` slow ops begin in one.
    """

    period_ns: float
    first_ns: float
    width_ns: float
    turns: int
    met: int
    inside: int
    slow: int
    p: float

    def within(self, times: Numbers) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of these times lie in a window."""
        found: np.ndarray[Any, np.dtype[np.bool_]] = (times - self.first_ns) % self.period_ns < self.width_ns
        return found


def episodes(begins: Numbers, ends: Numbers, gap_ns: float) -> tuple[Numbers, Numbers]:
    """The first begin of each stretch in which an op is slow, or was less than ``gap_ns`` ago, and its number of slow
    ops. In order of time.
    """
    order = np.argsort(begins, kind="stable")
    begin, latest = begins[order], np.maximum.accumulate(ends[order])
    first = np.flatnonzero(np.concatenate(([True], begin[1:] > latest[:-1] + gap_ns)))
    return begin[first], np.diff(first, append=len(begin))


def _largest(times: Numbers, sizes: Numbers, part: float) -> Numbers:
    """The episodes that hold this part of the slow ops, the largest first, in order of time."""
    order = np.argsort(-sizes, kind="stable")
    number = int(np.searchsorted(np.cumsum(sizes[order]), part * sizes.sum(), "left")) + 1
    return times[np.sort(order[:number])]


def log_tail(n: int, most: int, share: float) -> Periods:
    """ln of the probability of at least k of n, for k from 0 to ``most``, each with the probability ``share``."""
    k = np.arange(n + 1)
    logs = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k])
    logs += k * math.log(share) + (n - k) * math.log1p(-share)
    tail = np.logaddexp.accumulate(logs[::-1])[::-1]
    found: Periods = np.minimum(tail, 0.0)[: most + 1]
    return found


def _octaves(whole_ns: float) -> Iterator[Periods]:
    """Periods so close that over the run the last episode moves by half a bin from one to the next."""
    turns = float(FINEST)
    while turns > LEAST:
        yield whole_ns / np.arange(turns, turns / 2, -1 / (2 * BINS))
        turns /= 2


def _counts(times: Periods, periods: Periods) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Episodes by period and bin."""
    bins = np.minimum((times[None, :] / periods[:, None] % 1.0 * BINS).astype(np.int64), BINS - 1)
    bins += np.arange(len(periods))[:, None] * BINS
    return np.bincount(bins.ravel(), minlength=len(periods) * BINS).reshape(-1, BINS)


def _evidence(times: Periods, periods: Periods) -> tuple[Periods, Numbers, Numbers]:
    """For each period -ln p of its best window, uncorrected, the bin where that begins, and its width in bins."""
    n = len(times)
    best = np.zeros(len(periods)), np.zeros(len(periods), np.int64), np.ones(len(periods), np.int64)
    tails = [-log_tail(n, n, width / BINS) for width in range(1, WIDEST + 1)]
    for low in range(0, len(periods), max(1, ROOM // (n + BINS))):
        part = slice(low, low + max(1, ROOM // (n + BINS)))
        counts = _counts(times, periods[part])
        window = np.zeros_like(counts)
        for width in range(1, WIDEST + 1):
            window = window + np.roll(counts, 1 - width, axis=1)
            at = window.argmax(axis=1)
            found = tails[width - 1][window[np.arange(len(at)), at]]
            better = found > best[0][part]
            for kept, new in zip(best, (found, at, np.full(len(at), width)), strict=True):
                kept[part][better] = new[better]
    return best


def _window(times: Periods, period: float, at: int, width: int) -> tuple[float, float, int, int] | None:
    """The period, the first begin in a window, the turns and those with an episode; as fine as the episodes let it.
    None where too few turns have one.
    """
    offset = period * at / BINS
    inside = (times - offset) % period < period * width / BINS
    turn = np.floor((times - offset) / period).astype(np.int64)
    for times_longer in (3, 2):  # every second turn is hit: twice the period is meant
        which = np.bincount(turn[inside] % times_longer)
        n, share = int(which.sum()), 1 / times_longer
        if which.max() >= max(ALTERNATE * n, n * share + DEVIATIONS * math.sqrt(n * share * (1 - share))):
            inside &= turn % times_longer == which.argmax()
            turn = (turn - which.argmax()) // times_longer
    turns, met = int(turn.max() - turn.min()) + 1, len(np.unique(turn[inside]))
    if met < max(LEAST, TURNS * turns) or inside.mean() < LIFT * width / BINS:
        return None
    slope, begin = np.polyfit(turn[inside], times[inside], 1)
    return float(slope), float(begin), turns, met


def bursts(begins: Numbers, ends: Numbers, from_ns: int, to_ns: int) -> Bursts | None:
    """Of the slow ops' times in a run from ``from_ns`` to ``to_ns``; None where they come without a period."""
    whole = float(to_ns - from_ns)
    told: list[tuple[Bursts, float]] = []
    if len(begins) < EPISODES or whole <= 0:
        return None
    octaves = list(_octaves(whole))
    tried = math.log(len(octaves) * len(PARTS) * BINS * WIDEST / P)
    for periods in octaves:
        found, sizes = episodes(begins, ends, APART * periods[0])
        for times in {len(t): t for t in (_largest(found, sizes, part) for part in PARTS)}.values():
            relative = (times - from_ns).astype(np.float64)
            if EPISODES <= len(times) <= CROWDED * FINEST and len(times) * periods[0] <= CROWDED * whole:
                evidence, at, width = _evidence(relative, periods)
                evidence -= tried + math.log(len(periods))
                told += _convincing(begins, from_ns, relative, periods, (evidence, at, width))
    if not told:
        return None
    best, most = max(told, key=lambda t: t[1])
    longest, sure = max(t for t in told if t[1] >= CLOSE * most or _says_more(t[0], best))
    return longest._replace(p=math.exp(-sure) * P)


def _says_more(one: Bursts, best: Bursts) -> bool:
    """Most of the slow ops in no more of the time and in more of the turns: of half a period, but for those between."""
    no_more = one.width_ns * best.period_ns <= best.width_ns * one.period_ns
    return one.inside >= MOSTLY * best.inside and no_more and one.met * best.turns > best.met * one.turns


def _convincing(
    begins: Numbers, from_ns: int, times: Periods, periods: Periods, tried: tuple[Periods, Numbers, Numbers]
) -> Iterator[tuple[Bursts, float]]:
    """The octave's period with the most evidence (ln) of those that hold in enough turns, and for enough slow ops."""
    evidence, at, width = tried
    for i in np.argsort(-evidence, kind="stable")[:NEXT].tolist():
        if evidence[i] <= 0:
            return
        if found := _window(times, float(periods[i]), int(at[i]), int(width[i])):
            told = _told(begins, from_ns, found)
            turn = np.floor((begins[told.within(begins)] - told.first_ns) / told.period_ns)
            _, numbers = np.unique(turn, return_counts=True)
            if told.inside - numbers.max(initial=0) >= COVER * told.slow:
                yield told, float(evidence[i])
                return


def _told(begins: Numbers, from_ns: int, found: tuple[float, float, int, int]) -> Bursts:
    """The window: from the phase of the episodes' begin as long as slow ops come more often than at other times."""
    period, begin, turns, met = found
    bins = np.floor((begins - from_ns - begin + period / 2) % period / period * WINDOW_BINS).astype(np.int64)
    counts = np.bincount(np.minimum(bins, WINDOW_BINS - 1), minlength=WINDOW_BINS)
    usual, middle = float(np.median(counts)), WINDOW_BINS // 2
    reach = WINDOW_BINS // WIDEST
    peak = middle - reach // 4 + int(counts[middle - reach // 4 : middle + reach].argmax())
    more = counts > usual + (counts[peak] - usual) / 5
    more[:-2] |= more[2:]  # a hole of one bin ends no window
    more[1:] |= more[:-1]
    low = peak - int(np.argmin(more[peak::-1])) if not more[: peak + 1].all() else -1
    high = peak + int(np.argmin(more[peak:])) if not more[peak:].all() else WINDOW_BINS
    first = from_ns + begin + ((low + 1) / WINDOW_BINS - 0.5) * period
    told = Bursts(period, first, (high - low - 1) / WINDOW_BINS * period, turns, met, 0, len(begins), 1.0)
    inside = begins[told.within(begins)]
    hit = np.unique(np.floor((inside - first) / period))  # smaller episodes may be in other turns
    return told._replace(
        inside=len(inside), met=max(met, len(hit)), turns=max(turns, int(np.ptp(hit)) + 1 if len(hit) else 0)
    )


class Companion(NamedTuple):
    """Requests that come with the same period: ``share`` of their bytes (of their number, where they have none) lies in
    a window of ``width_ns`` that overlaps the slow ops' one, in ``met`` of its ``turns``.
    """

    what: str
    requests: int
    share: float
    width_ns: float
    met: int


ARC = 0.8  # of the bytes are in a companion's window
ARC_WIDEST = 0.35  # of the period is it wide, at most
ARC_BINS = 200
COMPANIONS = 3

_WHAT = """coalesce(r.kind, '?') || ' requests of ' ||
           CASE WHEN r.op_id IS NOT NULL THEN coalesce(o.class, 'the') || ' ops'
                WHEN r.op_count > 0 THEN 'several ops' ELSE coalesce(r.queue_comm, 'no op') END"""


def _by(run: Run, name: str, a: str, b: str, condition: str) -> dict[str, tuple[Numbers, Numbers]]:
    """Of the requests that meet the condition: two of their columns by a name, both in SQL."""
    parts: dict[str, list[tuple[Numbers, Numbers]]] = {}
    for part in ranges(run, "all_requests", "request_id", "op_id"):
        rows, names, codes = named(
            run,
            f"""WITH r AS (SELECT * FROM all_requests WHERE request_id BETWEEN {part.first} AND {part.last}),
                     o AS (SELECT op_id, class FROM all_ops WHERE op_id BETWEEN {part.least} AND {part.most})
                SELECT {a} AS a, {b} AS b, {name} AS name FROM r LEFT JOIN o USING (op_id) WHERE {condition}""",
            "name",
        )
        for code, text in enumerate(names.tolist()):
            parts.setdefault(text, []).append((rows["a"][codes == code], rows["b"][codes == code]))
    return {
        text: (np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found]))
        for text, found in parts.items()
    }


def _arc(weights: Periods) -> tuple[int, int]:
    """The shortest stretch of a circle of bins with ARC of the weight: its first bin, and its width."""
    n = len(weights)
    sums = np.concatenate(([0.0], np.cumsum(np.tile(weights, 2))))
    ends = np.searchsorted(sums, sums[:n] + ARC * weights.sum() * (1 - 1e-9), "left")
    widths = ends - np.arange(n)
    first = int(widths.argmin())
    return first, int(widths[first])


def companions(run: Run, found: Bursts) -> list[Companion]:
    """What else comes with the slow ops' period, and at the same time. The narrowest first."""
    told = []
    known = f"r.queue_ns IS NOT NULL AND r.complete_ns IS NOT NULL AND {AT_DEVICE}"
    by_what = _by(run, _WHAT, "r.queue_ns", "coalesce(512 * r.nr_sectors, 0)::BIGINT", known)
    for what, (times, whole) in by_what.items():
        sizes = whole.astype(np.float64)
        weights = sizes if sizes.sum() > 0 else np.ones(len(times))
        phase = (times - found.first_ns) % found.period_ns
        bins = np.minimum((phase / found.period_ns * ARC_BINS).astype(np.int64), ARC_BINS - 1)
        first, width = _arc(np.bincount(bins, weights, ARC_BINS).astype(np.float64))
        inside = (bins - first) % ARC_BINS < width
        turns = len(np.unique(np.floor((times[inside] - found.first_ns - first / ARC_BINS) / found.period_ns)))
        slow_bins = max(1, math.ceil(found.width_ns / found.period_ns * ARC_BINS))
        apart = first > 0 and first + width <= ARC_BINS and first >= slow_bins
        if width <= ARC_WIDEST * ARC_BINS and not apart and turns >= TURNS * found.turns:
            share = float(weights[inside].sum() / weights.sum())
            told.append(Companion(what, len(times), share, width * found.period_ns / ARC_BINS, turns))
    return sorted(told, key=lambda c: (c.width_ns, c.what))[:COMPANIONS]


class Rhythm(NamedTuple):
    """Requests that come with a period of their own. ``bursts``: of the requests, not of slow ops."""

    owner: str
    bursts: Bursts


def rhythms(run: Run, owners: Sequence[str]) -> list[Rhythm]:
    """Of those (names as in why/device.py) whose requests slow ops wait behind: who comes in bursts with a period."""
    begin, end = run.row("SELECT min(begin_ns), max(end_ns) FROM ops JOIN ranked USING (op_id)")
    if not owners:
        return []
    known = f"r.complete_ns >= r.queue_ns AND r.queue_ns BETWEEN {begin} AND {end}"
    by_owner = _by(run, OWNER, "r.queue_ns", "r.complete_ns", known)
    told = []
    for owner in owners:
        if owner in by_owner and (found := bursts(*by_owner[owner], int(begin), int(end))):
            told.append(Rhythm(owner, found))
    return told


def when_slow(run: Run) -> tuple[Bursts | None, list[Companion]]:
    """Of the slow ops of `sides`."""
    slow = queried(run, "SELECT begin_ns, end_ns FROM ops JOIN sides USING (op_id) WHERE slow")
    begin, end = run.row("SELECT min(begin_ns), max(end_ns) FROM ops JOIN ranked USING (op_id)")
    found = bursts(slow["begin_ns"], slow["end_ns"], int(begin), int(end))
    return found, [] if found is None else companions(run, found)
