# SPDX-License-Identifier: MIT
"""bcc's ext4slower, xfsslower, btrfsslower, nfsslower and their like: an operation on a file on each line, with the
time of its end and its latency, as CSV (-j, in us) and as a listing (the time of the day, and ms).

    ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE      TIME     COMM  PID   T BYTES OFF_KB LAT(ms) FILENAME
    140284091912,fio,2391,R,4096,8192,1523,data                  06:35:01 fio   2391  R 4096  8         1.52 data

A name of a thread or of a file may have commas: the numbers around it say which column is which. The tools leave out
what is faster than their threshold (10 ms where none is given), so the latencies are of slow operations alone. Format:
bcc 0.5 to 0.31, tools/ext4slower.py, libbpf-tools/fsslower.c.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers import day_times
from opline.readers.registry import CERTAIN, NO, VALUES
from opline.talk import talk
from opline_analyses.counts.values import batch_of

if TYPE_CHECKING:
    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked
    from opline_analyses.intervals.intervals import Batch

CALLED, HAS = "operations of ext4slower and its like", VALUES
_HEADER = re.compile(r"\s*+ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE\s*")
_LINE = re.compile(r"\s*+(?P<end>\d{1,18}),.{0,64}?,\d{1,10},[A-Z],\d{1,20},-?\d{1,20},(?P<us>\d{1,15}),.*")
_LISTING = re.compile(r"\s*+TIME\s++COMM\s++PID\s++T\s++BYTES\s++OFF_KB\s++LAT\(ms\)\s++FILENAME\s*+")
_ROW = re.compile(
    r"\s*+(\d\d):(\d\d):(\d\d)\s++\S.{0,40}?\s\d{1,10}\s++[A-Z]\s++\d{1,20}\s++-?\d{1,20}\s++(\d{1,12})\.(\d{1,3})\s.*"
)


def probe(head: Head) -> int:
    """CERTAIN where a line is the header."""
    return CERTAIN if head.has_line(_HEADER) or head.has_line(_LISTING) else NO


def _operation(line: str) -> tuple[int, int, bool] | None:
    """The time of the end and the latency, in ns; whether the time is one of the day."""
    if found := _LINE.fullmatch(line):
        return int(found["end"]) * 1000, int(found["us"]) * 1000, False
    if found := _ROW.fullmatch(line):
        hours, minutes, seconds = (int(found[n]) for n in (1, 2, 3))
        took_ns = int(found[4]) * 10**6 + int(f"{found[5]:0<3}") * 1000
        return ((hours * 60 + minutes) * 60 + seconds) * 10**9, took_ns, True
    return None


def read(asked: Asked) -> tuple[Batch, str]:
    """All operations: the time of the end and the latency, in ns. Raises OplineError where there is none."""
    path = asked.path
    times: list[int] = []
    values: list[int] = []
    others = 0
    for line in asked.lines():
        found = _operation(line.rstrip("\r\n"))
        if found is None:
            others += bool(line.strip()) and not (_HEADER.fullmatch(line) or _LISTING.fullmatch(line))
            continue
        time_ns, took_ns, of_day = found
        times.append(day_times.after(times[-1] if times else 0, time_ns) if of_day else time_ns)
        values.append(took_ns)
    if not times:
        raise OplineError(f"{path} has no operation.")
    if others:
        talk(f"{others} lines of {path} are of another form: left out.")
    return batch_of(times, values, path), "operation"
