# SPDX-License-Identifier: MIT
"""CSV of bcc's ext4slower, xfsslower, btrfsslower, nfsslower and their like (-j): an operation on a file on each line,
with the time of its end and its latency in us.

    ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE
    140284091912,fio,2391,R,4096,8192,1523,data

A name of a thread or of a file may have commas: the numbers around it say which column is which. The tools leave out
what is faster than their threshold (10 ms where none is given), so the latencies are of slow operations alone. Format:
bcc 0.5 to 0.31, tools/ext4slower.py, libbpf-tools/fsslower.c.
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

CALLED, HAS = "CSV of ext4slower and its like", VALUES
_HEADER = re.compile(r"\s*+ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE\s*")
_LINE = re.compile(r"\s*+(?P<end>\d{1,18}),.{0,64}?,\d{1,10},[A-Z],\d{1,20},-?\d{1,20},(?P<us>\d{1,15}),.*")


def probe(head: Head) -> int:
    """CERTAIN where a line is the header."""
    return CERTAIN if head.has_line(_HEADER) else NO


def read(asked: Asked) -> tuple[Batch, str]:
    """All operations: the time of the end and the latency, in ns. Raises OplineError where there is none."""
    path = asked.path
    times: list[int] = []
    values: list[int] = []
    others = 0
    for line in asked.lines():
        found = _LINE.fullmatch(line.rstrip("\r\n"))
        if found is None:
            others += bool(line.strip()) and _HEADER.fullmatch(line) is None
            continue
        times.append(int(found["end"]) * 1000)
        values.append(int(found["us"]) * 1000)
    if not times:
        raise OplineError(f"{path} has no operation.")
    if others:
        talk(f"{others} lines of {path} are of another form: left out.")
    return batch_of(times, values, path), "operation"
