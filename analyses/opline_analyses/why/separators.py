# SPDX-License-Identifier: MIT
"""What separates the slow ops from the others: one condition that most of them meet and few others, or nothing.

Takes a run with the temporary tables `ranked` and `sides` (why_sets.py); gives the condition that goes best with being
slow, by the phi coefficient of the two by two table (Pearson's r of two yes-or-no variables), and how sure that is.

Slow ops come in bursts and what they meet changes slowly, so tests that take ops for independent find something in
nearly every run. Here the slow ops are shifted along the run in a circle, SHIFTS times: that keeps both patterns and
breaks what joins them. The largest phi of all conditions in each shift is what chance gives, however many conditions
there are. Named is the best condition that chance matches in less than P of the shifts, that is twice as frequent among
the slow ops, covers a fifth of them, and holds in both halves of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opline_analyses.runs.columns import queried
from opline_analyses.why.attributes import NEIGHBOUR, Attribute, Condition, attributes

if TYPE_CHECKING:
    from typing import Any

    from opline_analyses.runs.run import Run

    Counts = np.ndarray[Any, np.dtype[np.float64]]
    Places = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]

SHIFTS = 199
P = 0.01
FEW = 30  # slow ops: fewer say nothing
GROUP = 20  # ops that meet the condition, at least
LIFT, COVER, HALVES = 2.0, 0.2, 1.5
PLAINER = "device"
MET = ("queue depth met", "reads met", "writes met", "flushes met", "background met", NEIGHBOUR)
ON = 0.9  # of the ops that meet a condition are on one device
NEXT = 50  # conditions, the best first, that are looked at
SAME = 0.8  # Jaccard index of two conditions' ops: the same in other words
MOST_SLOW = 2000  # of more slow ops evenly spread ones are tested
MOST_OPS = 100_000  # of more ops each ``step``-th by its begin is looked at, slow or not


class Separator(NamedTuple):
    """A condition with its table: ``slow_met`` of ``slow`` ops, ``met`` of ``ops``."""

    attribute: str
    text: str
    slow_met: int
    slow: int
    met: int
    ops: int
    as_good: int  # shifts in which some condition goes as well with the slow ops
    same: list[str]  # other conditions that nearly the same ops meet
    above_all: str | None = None  # a condition that goes better with the slow ops, of ops that meet this one

    @property
    def lift(self) -> float:
        """How many times as frequent among the slow ops as among all."""
        return (self.slow_met / self.slow) / (self.met / self.ops)


class Separation(NamedTuple):
    """``found``: None where nothing separates them; ``best``: what comes nearest then. ``too_few``: not tested."""

    found: Separator | None
    best: Separator | None
    attributes: int
    conditions: int
    shifts: int
    too_few: bool
    step: int = 1


class _Candidate(NamedTuple):
    attribute: Attribute
    condition: Condition


def phi(met_slow: Counts, met: Counts, slow: int, ops: int) -> Counts:
    """The coefficient for each condition; 0 where a margin is empty."""
    margins = slow * (ops - slow) * met * (ops - met)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (met_slow * ops - slow * met) / np.sqrt(margins)
    return np.where(margins > 0, found, 0.0)


def _counts(attribute: Attribute, places: Places | None) -> Counts:
    """How many of the ops at these places (None: of all) meet each condition."""
    codes = attribute.codes if places is None else attribute.codes[places]
    below = np.concatenate(([0], np.cumsum(np.bincount(codes + 1, minlength=attribute.size + 1))))
    low = np.array([c.low for c in attribute.conditions])
    high = np.array([c.high for c in attribute.conditions])
    found: Counts = (below[high + 2] - below[low + 1]).astype(np.float64)
    return found


def _all_counts(found: list[Attribute], places: Places | None = None) -> Counts:
    return np.concatenate([_counts(a, places) for a in found])


def _members(candidate: _Candidate) -> Flags:
    low, high = candidate.condition.low, candidate.condition.high
    return (candidate.attribute.codes >= low) & (candidate.attribute.codes <= high)


def separate(found: list[Attribute], slow_places: Places, ops: int) -> Separation:
    """Tests the attributes of ``ops`` ops, of which those at these places (ascending) are slow."""
    found = [a for a in found if a.conditions]
    candidates = [_Candidate(a, c) for a in found for c in a.conditions]
    slow = len(slow_places)
    if slow < FEW or not candidates:
        return Separation(None, None, len(found), len(candidates), 0, slow < FEW)
    met = _all_counts(found)
    usable = (met >= GROUP) & (met <= ops - GROUP)
    taken = slow_places[:: -(-slow // MOST_SLOW)]
    real = np.where(usable, phi(_all_counts(found, taken), met, len(taken), ops), 0.0)
    best = int(np.argmax(real))
    if real[best] <= 0:
        return Separation(None, None, len(found), len(candidates), 0, False)
    far = max(1, ops // 50)
    shifts = np.random.default_rng(ops).integers(far, max(far + 1, ops - far), SHIFTS)
    chance = np.array(
        [
            np.where(usable, phi(_all_counts(found, (taken + s) % ops), met, len(taken), ops), 0.0).max()
            for s in shifts.tolist()
        ]
    )
    flags = np.zeros(ops, bool)
    flags[slow_places] = True
    tested = _Tested(candidates, real, chance, flags)
    for i in np.argsort(-real, kind="stable")[:NEXT].tolist():
        if not tested.sure(i):
            break
        i = _plainer(candidates, real, i)
        if s := tested.supported(i):
            device = _device_of(candidates, real, i)
            where = tested.supported(device) if device is not None and tested.sure(device) else None
            s = s if where is None else where._replace(above_all=s.text)
            return Separation(s, s, len(found), len(candidates), SHIFTS, False)
    nearest = _separator(candidates, real, best, flags, tested.as_good(best))
    return Separation(None, nearest, len(found), len(candidates), SHIFTS, False)


class _Tested(NamedTuple):
    """``real``: phi of each condition; ``chance``: the best of all in each shift; ``flags``: which ops are slow."""

    candidates: list[_Candidate]
    real: Counts
    chance: Counts
    flags: Flags

    def as_good(self, choice: int) -> int:
        """Shifts in which some condition goes as well with the slow ops."""
        return int((self.chance >= self.real[choice]).sum())

    def sure(self, choice: int) -> bool:
        """It is not what chance gives."""
        return bool(self.real[choice] > 0) and (self.as_good(choice) + 1) / (SHIFTS + 1) < P

    def supported(self, choice: int) -> Separator | None:
        """The condition, where it is often enough met by the slow ops, by many of them, and all along the run."""
        s = _separator(self.candidates, self.real, choice, self.flags, self.as_good(choice))
        often = s.lift >= LIFT and s.slow_met >= COVER * s.slow
        return s if often and _in_both_halves(_members(self.candidates[choice]), self.flags) else None


def _device_of(candidates: list[_Candidate], real: Counts, choice: int) -> int | None:
    """The device on which nearly all are that meet so many requests: there are so many because it is slow."""
    if candidates[choice].attribute.name not in MET:
        return None
    members = _members(candidates[choice])
    for i in np.argsort(-real, kind="stable").tolist():
        if candidates[i].attribute.name == PLAINER and (members & _members(candidates[i])).sum() >= ON * members.sum():
            return int(i)
    return None


def _plainer(candidates: list[_Candidate], real: Counts, choice: int) -> int:
    """The device, where nearly the same ops are on it: it explains more than its descriptor or its thread."""
    members = _members(candidates[choice])
    for i in np.argsort(-real, kind="stable")[:NEXT].tolist():
        if candidates[i].attribute.name == PLAINER and real[i] > 0 and _alike(members, _members(candidates[i])):
            return int(i)
    return choice


def _separator(candidates: list[_Candidate], real: Counts, choice: int, flags: Flags, as_good: int) -> Separator:
    members = _members(candidates[choice])
    same = [
        candidates[i].condition.text
        for i in np.argsort(-real, kind="stable")[:NEXT].tolist()
        if i != choice and real[i] > 0 and _alike(members, _members(candidates[i]))
    ]
    return Separator(
        candidates[choice].attribute.name, candidates[choice].condition.text, int((members & flags).sum()),
        int(flags.sum()), int(members.sum()), len(flags), as_good, same[:3],
    )  # fmt: skip


def _alike(one: Flags, other: Flags) -> bool:
    either = int((one | other).sum())
    return either > 0 and int((one & other).sum()) >= SAME * either


def _in_both_halves(members: Flags, flags: Flags) -> bool:
    middle = len(flags) // 2
    for half in (slice(None, middle), slice(middle, None)):
        m, f = members[half], flags[half]
        if not f.any() or not m.any() or (m & f).sum() / f.sum() < HALVES * m.mean():
            return False
    return True


def what_separates(run: Run) -> Separation:
    """Of the ops in `ranked`, what separates those that `sides` calls slow. Makes `tested`: the ops looked at."""
    (ops,) = run.row("SELECT count(*) FROM ranked")
    step = -(-ops // MOST_OPS)
    run.con.execute(
        f"""CREATE OR REPLACE TEMP TABLE tested AS
            SELECT op_id, n // {step} AS place
            FROM (SELECT op_id, row_number() OVER (ORDER BY op_id) - 1 AS n FROM ranked) WHERE n % {step} = 0"""
    )
    slow = queried(
        run, "SELECT place FROM tested SEMI JOIN (SELECT op_id FROM sides WHERE slow) USING (op_id) ORDER BY place"
    )["place"]
    if len(slow) < FEW:
        return Separation(None, None, 0, 0, 0, True, step)
    return separate(attributes(run), slow, -(-ops // step))._replace(step=step)
