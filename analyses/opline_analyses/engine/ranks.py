# SPDX-License-Identifier: MIT
"""The exact value of a rank over many recordings, by further questions about the one bucket that holds it.

A summary says how many values are in which bucket, so the bucket of a rank is known, and how many values are below it.
The next question divides this bucket into PARTS, and so on until a part is one nanosecond wide. Values never travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import OplineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.engine.cells import Buckets
    from opline_analyses.engine.recordings import Asking

PARTS = 4096  # of a bucket in one question: a bucket of a value below 1 ms (2^20 ns) is not wider


class Rank:
    """The ``rank``-th smallest value of a group, from 1. It lies in ``low`` ≤ value < ``past``; of each recording
    ``below`` values are less than ``low``, and ``inside`` are between both.
    """

    def __init__(self, group: str, rank: int, of_runs: Sequence[Buckets], whole: Buckets) -> None:
        """``of_runs``: the group's buckets of each recording; ``whole``: of all. Some bucket has the rank."""
        self.group, self.rank = group, rank
        place = whole.place(rank)
        self.low, self.past = int(whole.least[place]), int(whole.most[place]) + 1
        ends = [one.bucket.searchsorted([whole.bucket[place], whole.bucket[place] + 1]) for one in of_runs]
        self.below = [int(one.count[:low].sum()) for one, (low, _) in zip(of_runs, ends, strict=True)]
        self.inside = [int(one.count[low:past].sum()) for one, (low, past) in zip(of_runs, ends, strict=True)]

    @property
    def known(self) -> bool:
        """``low`` is the value."""
        return self.past - self.low == 1

    @property
    def question(self) -> tuple[str, int, int, int]:
        """The group, where it is looked, in steps of how much."""
        return self.group, self.low, self.past, -(-(self.past - self.low) // PARTS)

    def narrow(self, counts: Sequence[Sequence[tuple[int, int]]]) -> None:
        """What each recording answers to the question: (step, values in it). Raises OplineError where a recording has
        other values than before.
        """
        _, low, past, step = self.question
        if [sum(count for _, count in one) for one in counts] != self.inside:
            raise OplineError("A recording changed while it was read: ask again when it is complete.")
        steps: dict[int, int] = {}
        for one in counts:
            for place, count in one:
                steps[place] = steps.get(place, 0) + count
        passed = sum(self.below)
        for place in sorted(steps):
            if passed + steps[place] >= self.rank:
                break
            passed += steps[place]
        for number, one in enumerate(counts):
            self.below[number] += sum(count for p, count in one if p < place)
            self.inside[number] = sum(count for p, count in one if p == place)
        self.low, self.past = low + place * step, min(past, low + (place + 1) * step)

    def up_to(self, rank: int) -> list[int]:
        """Of each recording how many values have this rank or a lower one; ``rank``: its own, or the one before it.
        Equal values are in the order of the recordings, as ops of one recording are in the order of their numbers.
        """
        left = rank - sum(self.below)
        found = []
        for below, inside in zip(self.below, self.inside, strict=True):
            taken = min(inside, left)
            left -= taken
            found.append(below + taken)
        return found


def refine(asking: Asking, ranks: Sequence[Rank]) -> None:
    """Asks until the values of all are known. Raises OplineError and FewerError."""
    while unknown := [rank for rank in ranks if not rank.known]:
        questions = sorted({rank.question for rank in unknown})
        answers = asking.more("within", {"open": questions})
        for rank in unknown:
            place = questions.index(rank.question)
            rank.narrow([answer["counts"][place] for answer in answers])
