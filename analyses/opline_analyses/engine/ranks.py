# SPDX-License-Identifier: MIT
"""The exact value of a rank over many recordings, by further questions about the single bucket with the rank.

A summary has the number of values per bucket, so the bucket of a rank is known, and the number of values below. The
next question divides this bucket into PARTS, and so on until a part is one nanosecond wide. Values never travel.
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
    """The ``rank``-th smallest value of a group, from 1. Known: ``low`` ≤ value < ``past``; in each recording ``below``
    values are less than ``low``, and ``inside`` values are between both.
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
        """The group, the range, and the step."""
        return self.group, self.low, self.past, -(-(self.past - self.low) // PARTS)

    def narrow(self, counts: Sequence[Sequence[tuple[int, int]]]) -> None:
        """Takes each recording's answer to the question: (step, number of values). Raises OplineError if a recording
        has other values than before.
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
        """For each recording the number of values with this rank or a lower rank; ``rank``: the value's own, or the
        rank before. Equal values are in the order of the recordings, like the ops of one recording in the order of
        their numbers.
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
