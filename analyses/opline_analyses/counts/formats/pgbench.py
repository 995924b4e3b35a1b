# SPDX-License-Identifier: MIT
"""The log of `pgbench -l`: a transaction on each line, with the latency in us and the time of the end.

    client  transaction  latency  script  seconds of the epoch  us  [schedule lag]  [retries]

A transaction that was skipped or failed has that word instead of a latency. Format: PostgreSQL's documentation of
pgbench, "Per-Transaction Logging", versions 9.0 to 17.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers.registry import CERTAIN, NO, VALUES
from opline.talk import talk
from opline_analyses.counts.values import batch_of

if TYPE_CHECKING:
    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked
    from opline_analyses.intervals.intervals import Batch

CALLED, HAS = "pgbench's log of transactions", VALUES
_LINE = re.compile(
    r"\s*+\d{1,6} \d{1,12} (?P<us>\d{1,15}|skipped|failed|serialization|deadlock) \d{1,4} "
    r"(?P<seconds>\d{9,10}) (?P<fraction>\d{1,6})(?: \d{1,15}){0,2}\s*"
)


def probe(head: Head) -> int:
    """CERTAIN where a line is a transaction."""
    return CERTAIN if head.has_line(_LINE) else NO


def read(asked: Asked) -> tuple[Batch, str]:
    """All transactions: the time of the end and the latency, in ns. Raises OplineError where there is none."""
    path = asked.path
    times: list[int] = []
    values: list[int] = []
    without = 0
    for line in asked.lines():
        found = _LINE.fullmatch(line.rstrip("\r\n"))
        if found is None or not found["us"].isdecimal():
            without += bool(line.strip())
            continue
        times.append(int(found["seconds"]) * 1_000_000_000 + int(found["fraction"]) * 1000)
        values.append(int(found["us"]) * 1000)
    if not times:
        raise OplineError(f"{path} has no transaction with a latency.")
    if without:
        talk(f"{without} lines of {path} have no latency (skipped, failed, or of another form): left out.")
    return batch_of(times, values, path), "transaction"
