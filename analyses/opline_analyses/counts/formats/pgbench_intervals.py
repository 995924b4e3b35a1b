# SPDX-License-Identifier: MIT
"""The log of `pgbench -l --aggregate-interval`: the sums of an interval on each line.

    seconds of the epoch, transactions, sum of latencies, sum of their squares, minimum, maximum (us) [, others]

Only a line whose sums agree with each other is one. An interval without a transaction has zeros and is left out.
Format: PostgreSQL's documentation of pgbench, "Aggregated Logging", versions 9.3 to 17, of which the later ones have
more columns behind: lag, skipped, retried, failed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers.registry import CERTAIN, NO, VALUES
from opline.talk import talk
from opline_analyses.base.text import duration
from opline_analyses.counts.values import batch_of

if TYPE_CHECKING:
    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked
    from opline_analyses.intervals.intervals import Batch

CALLED, HAS = "pgbench's log of intervals", VALUES
_LINE = re.compile(r"\s*+(\d{9,10}) (\d{1,12}) (\d{1,18}) (\d{1,30}) (\d{1,15}) (\d{1,15})(?: \d{1,30}){0,11}\s*")


def _interval(line: str) -> tuple[int, int, int, int, int] | None:
    """Time in s, transactions, and in us the sum of their latencies, the minimum and the maximum."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    at, count, total, squares, least, most = map(int, found.groups())
    if count == 0:
        return (at, 0, 0, 0, 0) if total == squares == 0 else None
    agree = least * count <= total <= most * count and total * total <= squares * count <= most * most * count * count
    return (at, count, total, least, most) if agree else None


def _counts(line: str) -> bool:
    found = _interval(line)
    return found is not None and found[1] > 0


def probe(head: Head) -> int:
    """CERTAIN where a line is an interval with transactions."""
    return CERTAIN if head.has(_counts) else NO


def read(asked: Asked) -> tuple[Batch, str]:
    """All intervals with transactions: the begin and the mean, in ns. Raises OplineError where there is none."""
    path = asked.path
    times: list[int] = []
    values: list[int] = []
    others = transactions = total_us = most_us = 0
    least_us: int | None = None
    for line in asked.lines():
        found = _interval(line)
        if found is None:
            others += bool(line.strip())
            continue
        at, count, total, least, most = found
        if not count:
            continue
        times.append(at * 1_000_000_000)
        values.append(total * 1000 // count)
        transactions, total_us = transactions + count, total_us + total
        least_us, most_us = least if least_us is None else min(least_us, least), max(most_us, most)
    if least_us is None:
        raise OplineError(f"{path} has no interval with a transaction.")
    mean = duration(total_us * 1000 / transactions)
    talk(
        f"{path}: each line is the mean of an interval (--aggregate-interval), and no single transaction. All "
        f"{transactions} transactions: mean {mean}, min {duration(least_us * 1000)}, "
        f"max {duration(most_us * 1000)}."
    )
    if others:
        talk(f"{others} lines of {path} are of another form: left out.")
    return batch_of(times, values, path), "mean"
