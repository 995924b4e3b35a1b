# SPDX-License-Identifier: MIT
"""biosnoop's listing: an I/O on each line, at its completion. Of bcc (tools/biosnoop.py, 0.5 to 0.31) and libbpf-tools,
with -Q (the time in the kernel's queue) and without, and of bpftrace (tools/biosnoop.bt).

    TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   QUE(ms) LAT(ms)
    0.000004    supervise      1950    xvda1     W 13092560   4096       0.01    0.74

The header says which columns there are. A name of a thread may have blanks: what is before it is found from the left,
what is behind it from the right. bpftrace's has neither place nor size (at first no disk), and whole milliseconds. bcc
names no disk for some commands, and has no blank
between the size and the time behind it, so both may be one word: 1 MiB that took a second. Some locales have decimal
commas.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from opline.readers.events import EventsReader, lines_of, request
from opline.readers.registry import CERTAIN, EVENTS, NO
from opline.talk import talk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from opline.readers.events import Event
    from opline.readers.registry import Head

CALLED, HAS, MODEL = "biosnoop's listing", EVENTS, "generic"
_UNITS = {"(s)": 10**9, "(ms)": 10**6, "(us)": 10**3, "(ns)": 1}
_NAMES = {"T": "TYPE", "R/W": "TYPE"}
_FEWEST = {"TIME", "COMM", "PID", "LAT"}
_SECTOR = 512
_NO_DISK = "?"
_ROW = re.compile(r"\s*+\d++([.,]\d++)?+\s")  # its begin, a time; of seconds with decimals
_NONE = ("-1", str(2**64 - 1))  # the sector of a flush, on kernels up to 4.x, and of a command that has none
#: A size of seven digits and a time of 1000.00 ms or more: their columns are seven letters wide.
_JOINED = re.compile(r"\b(\d{7,10})([1-9]\d{3}[.,]\d\d)\b")


def _columns(line: str) -> dict[str, int] | None:
    """Of a header each column's name and its unit in ns, 1 where it has none."""
    if "COMM" not in line or "LAT" not in line:
        return None
    words = line.split()[:16]
    found = {}
    for word in words:
        unit = next((unit for unit in _UNITS if word.endswith(unit)), "")
        name = word.removesuffix(unit)
        found[_NAMES.get(name, name)] = _UNITS.get(unit, 1)
    known = _FEWEST | {"DISK"} <= found.keys() or found.keys() == _FEWEST
    return found if known and len(found) == len(words) else None


def _parted(line: str) -> str:
    """The line with a blank between a size and a time that have none; a size is a number of whole sectors."""
    return _JOINED.sub(lambda found: found[0] if int(found[1]) % _SECTOR else f"{found[1]} {found[2]}", line)


def _with_disk(columns: dict[str, int], words: list[str]) -> list[str]:
    """The words of a line without a disk, with a name for that."""
    names = list(columns)
    at = len(words) + 1 - (len(names) - names.index("DISK")) if "DISK" in columns else 0
    return [*words[:at], _NO_DISK, *words[at:]] if at > 0 else []


def probe(head: Head) -> int:
    """CERTAIN where a line is its header."""
    return CERTAIN if head.has(_columns) else NO


def names(_head: Head) -> set[str]:
    """A listing has no bios."""
    return {"block_rq_issue", "block_rq_complete"}


def files(path: str) -> list[str]:
    """The file alone."""
    return [path]


def front(paths: list[str]) -> BiosnoopReader:
    """What reads it."""
    return BiosnoopReader(paths[0])


class BiosnoopReader(EventsReader):
    """Reads one file of lines."""

    name = "biosnoop"

    def events(self, file: BinaryIO) -> Iterator[Event | None]:
        """The steps of each I/O: insert if its time in the queue is there, issue and completion."""
        columns: dict[str, int] | None = None
        self._whole = True  # no latency has decimals
        ios = 0
        for number, line in lines_of(file):
            yield None
            if (header := _columns(line)) is not None:
                columns = header
            elif columns is not None and line.strip():
                found = self._io(columns, line.split(), number) or self._io(columns, _parted(line).split(), number)
                found = found or self._io(columns, _with_disk(columns, line.split()), number)
                if not found and (row := _ROW.match(line)) and (row[1] or columns["TIME"] < _UNITS["(s)"]):
                    self.not_understood(number, line)
                ios += bool(found)
                yield from found
        if ios and columns is not None and self._whole and columns["LAT"] > _UNITS["(us)"]:
            talk(f"{self._path}: its latencies are whole milliseconds, rounded down.")

    def _io(self, columns: dict[str, int], words: list[str], number: int) -> list[Event]:
        words, names = [*words], list(columns)
        before = names.index("COMM")
        behind = len(names) - before - 1
        if len(words) < before + behind:
            return []
        words[before : len(words) - behind] = [" ".join(words[before : len(words) - behind])]
        row = dict(zip(names, words, strict=True))
        try:
            took = {
                name: int(Decimal(row[name].replace(",", ".")) * columns[name])
                for name in ("TIME", "LAT", "QUE")
                if name in row
            }
            size = int(row.get("BYTES", "0"))
            sector = 0 if row.get("SECTOR") in _NONE else int(row.get("SECTOR", "0"))
            tid = int(row["PID"])
        except (ValueError, InvalidOperation, OverflowError):
            return []
        self._whole = self._whole and row["LAT"].isdecimal()
        place: dict[str, int | str] = {
            "rq": number, "dev": self.device(row.get("DISK", _NO_DISK)), "sector": sector, "nr_sector": size // _SECTOR,
            "rwbs": row.get("TYPE", "N"), "tid": tid, "comm": row["COMM"],
        }  # fmt: skip
        end_ns = took["TIME"] + _ORIGIN_NS
        issue_ns = end_ns - took["LAT"]
        return list(request(issue_ns - took["QUE"] if "QUE" in took else None, issue_ns, end_ns, place))


_ORIGIN_NS = 3600 * 10**9  # its times count from its first completion: what was issued before is not below 0
