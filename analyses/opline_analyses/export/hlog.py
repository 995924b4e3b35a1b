# SPDX-License-Identifier: MIT
"""HdrHistogram's interval log (format 1.3), which HistogramLogProcessor and HistogramLogAnalyzer read: of each second
and class of ops the latencies of those that ended in it, ns, with the class as tag.

Source: HdrHistogram 2.1, HistogramLogWriter.java. Times are since 1970 where the trace knows its offset, else the run's
own clock's. A tag has no comma, blank or line's end: each is an underscore.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import BinaryIO

from opline.talk import shown
from opline_analyses.export.hdr_counts import HdrCounts, index_of
from opline_analyses.ops.stages import COUNTED_ROWS, counted_ranges, select_counted
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection
from opline_analyses.runs.wall_clock import offset_ns

_INTERVAL_NS = 1_000_000_000
_MAX_UNIT = 1e6  # of the greatest latency: ms, as HistogramLogWriter has it by default


def counted(run: Run, interval_ns: int | None) -> Iterator[tuple[int, str, dict[int, int]]]:
    """Of each interval (one alone with None) and class, in that order: its number, the class, and counts by index."""
    number = "0" if interval_ns is None else f"(end_ns - {run.start_ns()}) // {interval_ns}"
    found: defaultdict[tuple[int, str], Counter[int]] = defaultdict(Counter)
    for first, last in counted_ranges(run):
        for interval, name, latency, n in run.rows(
            f"""SELECT {number} AS interval, coalesce(class, '?') AS name, latency_ns, count(*)
                FROM ({COUNTED_ROWS.format(table="ops", first=first, last=last)}) GROUP BY ALL"""
        ):
            found[interval, name][index_of(latency)] += n
    for (interval, name), counts in sorted(found.items()):
        yield interval, name, counts


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the log; gives the number of ops: incomplete and tainted ones don't count, as in `opline stages`."""
    ops, _, _ = select_counted(run, which, False)
    start_ns = run.start_ns() + (offset_ns(run) or 0)
    begun = datetime.datetime.fromtimestamp(start_ns / 1e9, datetime.UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    out.write(b"#[Logged with opline: latencies in ns]\n#[Histogram log format version 1.3]\n")
    out.write(f"#[StartTime: {start_ns / 1e9:.3f} (seconds since epoch), {begun}]\n".encode())
    out.write(b'"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n')
    for interval, name, counts in counted(run, _INTERVAL_NS):
        found = HdrCounts(counts)
        tag = re.sub(r"[,\s]", "_", shown(name))
        seconds = interval * _INTERVAL_NS / 1e9
        most = found.greatest / _MAX_UNIT
        out.write(f"Tag={tag},{seconds:.3f},{_INTERVAL_NS / 1e9:.3f},{most:.3f},{found.encoded()}\n".encode())
    return ops
