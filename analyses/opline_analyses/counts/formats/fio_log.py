# SPDX-License-Identifier: MIT
"""fio's logs of latencies (write_lat_log: PREFIX_lat.N.log, _clat, _slat): an I/O on each line, or a mean.

    time ms, latency ns, direction, bytes[, offset][, priority][, issue ns]
    time ms, mean ns, maximum ns, direction, bytes[, offset], priority[, issue ns]

With per_job_logs=0 one log has the lines of all jobs, so times go back. With log_avg_msec each line is the mean of an
interval, and its bytes are 0: that is said. With log_window_value=both (fio 3.37) it has the maximum besides: the
second form. fio before 3.0 wrote microseconds in four columns: --counted-in us. Logs of
bandwidth and of IOPS look the same and have other names (_bw, _iops). Format: fio's HOWTO, "Log File Formats".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers.registry import CERTAIN, NO, VALUES
from opline.talk import talk
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.base.text import duration
from opline_analyses.counts.values import batch_of

if TYPE_CHECKING:
    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked
    from opline_analyses.intervals.intervals import Batch

CALLED, HAS = "fio's log of latencies", VALUES
_REST = r"(?:, (?:\d{1,19}|0x[0-9a-fA-F]{1,8})){0,3}"
_LINE = re.compile(rf"\s*+(\d{{1,15}}), (\d{{1,18}}), ([012]), (\d{{1,12}}){_REST}\s*+")
_BOTH = re.compile(rf"\s*+(\d{{1,15}}), (\d{{1,18}}), (\d{{1,18}}), ([012]), (0){_REST}\s*+")
_OTHER = re.compile(r"(?s:.*)_(?:bw|iops)(?:\.\d{1,6})?\.log")
_COLUMNS_OF_FIO_2 = 4


def probe(head: Head) -> int:
    """CERTAIN where some of the first lines are I/Os."""
    return CERTAIN if any(_line(line) for line in head.begun(3)) else NO


def _line(line: str) -> re.Match[str] | None:
    """A line of the second form, else one of the first."""
    found = _BOTH.fullmatch(line)
    return found if found is not None and int(found[2]) <= int(found[3]) else _LINE.fullmatch(line)


def read(asked: Asked) -> tuple[Batch, str]:
    """All I/Os: the time of the end and the latency, in ns. Raises OplineError."""
    path = asked.path
    if _OTHER.fullmatch(path):
        raise OplineError(f"{path} is fio's log of bandwidth or IOPS by its name: give the log of latencies (_lat).")
    unit_ns = DURATIONS[asked.counted_in or "ns"]
    times: list[int] = []
    values: list[int] = []
    others = averaged = fewest = largest = 0
    for line in asked.lines():
        found = _line(line)
        if found is None:
            others += bool(line.strip())
            continue
        columns = line.count(",") + 1
        fewest = min(fewest or columns, columns)
        times.append(int(found[1]) * 1_000_000)
        values.append(int(found[2]) * unit_ns)
        both = found.re is _BOTH
        averaged += both or found[4] == "0"
        largest = max(largest, int(found[3]) * unit_ns if both else 0)
    if not times:
        raise OplineError(f"{path} has no I/O.")
    if averaged == len(times):
        most = f" The slowest I/O took {duration(largest)}." if largest else ""
        talk(f"{path}: each line is the mean of an interval (log_avg_msec), and no single I/O.{most}")
    if fewest == _COLUMNS_OF_FIO_2 and asked.counted_in is None:
        talk(f"{path}: latencies are taken for ns; fio before 3.0 wrote us (--counted-in us).")
    if others:
        talk(f"{others} lines of {path} are of another form: left out.")
    return batch_of(times, values, path), "mean" if averaged == len(times) else "I/O"
