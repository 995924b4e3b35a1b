# SPDX-License-Identifier: MIT
"""iosnoop's listing (perf-tools, 2014), and that of `opline log`: an I/O on each line, in the order of completion.

    STARTs          ENDs            COMM         PID    TYPE DEV      BLOCK        BYTES     LATms
    5982800.302061  5982800.302679  supervise    1809   W    202,1    17039600     4096       0.62

The times are there with -s and -t, in us; LATms has two decimals. With both of them the latency is their difference.
With -Q an I/O begins at its insert, which the listing does not say: it is taken for the issue. Without a time the I/Os
are put one behind the other, which is said: their latencies are right, rates and intervals are not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.readers.events import EventsReader, lines_of, request
from opline.readers.registry import CERTAIN, EVENTS, NO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from opline.readers.events import Event
    from opline.readers.registry import Head

CALLED, HAS, MODEL = "iosnoop's listing", EVENTS, "generic"
_HEADER = re.compile(r"(STARTs +)?(ENDs +)?COMM +PID +TYPE +DEV +BLOCK +BYTES +LATms *+")
_TIME = r"(\d{1,12}[.,]\d{6})"
_REST = (
    r"(\S.{0,30}?) +(\d{1,9}|-) +([A-Z]{1,8}|-) +(\d{1,4},\d{1,7}|-) +(\d{1,20}|-) +(\d{1,12}|-) +(\d{1,9}[.,]\d{2})"
)
_ORIGIN_NS = 3600 * 10**9  # where no line has a time
_SECTOR = 512
_NONE = 2**64 - 1  # the sector of a flush, on kernels up to 4.x


def probe(head: Head) -> int:
    """CERTAIN where a line is its header."""
    return CERTAIN if head.has(lambda line: _HEADER.fullmatch(line.lstrip())) else NO


def names(_head: Head) -> set[str]:
    """A listing has no bios."""
    return {"block_rq_issue", "block_rq_complete"}


def files(path: str) -> list[str]:
    """The file alone."""
    return [path]


def front(paths: list[str]) -> IosnoopReader:
    """What reads it."""
    return IosnoopReader(paths[0])


def _ns(seconds: str) -> int:
    whole, fraction = re.split("[.,]", seconds)  # of the locale
    return int(whole) * 10**9 + int(fraction) * 1000


class IosnoopReader(EventsReader):
    """Reads one file of lines."""

    name = "iosnoop"

    def events(self, file: BinaryIO) -> Iterator[Event | None]:
        """The issue and the completion of each I/O."""
        pattern: re.Pattern[str] | None = None
        start = end = False
        last_ns = _ORIGIN_NS
        for number, line in lines_of(file):
            yield None
            if header := _HEADER.fullmatch(line.lstrip()):
                start, end = header[1] is not None, header[2] is not None
                pattern = re.compile(f"{_TIME} +" * (start + end) + _REST)
                if not (start or end):
                    self.tell_no_times(" (iosnoop -s, -t)")
                continue
            if pattern is None or not line.strip() or line.lstrip().startswith(("Tracing ", "Ending ")):
                continue
            found = pattern.fullmatch(line.strip())
            if found is None:
                self.not_understood(number, line)
                continue
            *times, comm, tid, kind, dev, block, size, milliseconds = found.groups()
            took_ns = round(float(milliseconds.replace(",", ".")) * 1e6)
            if start and end:
                begin_ns, end_ns = map(_ns, times)
            elif times:
                begin_ns = _ns(times[0]) - (took_ns if end else 0)
                end_ns = begin_ns + took_ns
            else:
                begin_ns, end_ns = last_ns, last_ns + took_ns
            last_ns = end_ns
            place: dict[str, int | str] = {
                "rq": number, "dev": self.device(dev), "sector": 0 if block in ("-", str(_NONE)) else int(block),
                "nr_sector": 0 if size == "-" else int(size) // _SECTOR, "rwbs": kind, "comm": comm,
            }  # fmt: skip
            if tid != "-":
                place["tid"] = int(tid)
            steps = list(request(None, begin_ns, end_ns, place))
            if not steps:
                self.not_understood(number, line)
            yield from steps
