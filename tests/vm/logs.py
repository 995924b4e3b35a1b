# SPDX-License-Identifier: MIT
"""What the recorded programs wrote down beside the trace, and where files lie: the truth of check_recording.py."""

from __future__ import annotations

import bisect
import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


def lines(path: Path) -> Iterator[dict[str, str]]:
    """A CSV file's rows."""
    with path.open(newline="") as f:
        yield from csv.DictReader(f)


class Point(NamedTuple):
    """One line of demo-bench --log-points."""

    place: tuple[int, int]  # thread, and how manieth line of it
    time_ns: int
    truth_id: int | None  # of the op; none: a commit's point
    event: str


@dataclass
class Commit:
    """A group commit, by its sync's begin."""

    members: list[int] = field(default_factory=list)


class Points:
    """The log of points, by thread."""

    def __init__(self, path: Path) -> None:
        rows = defaultdict(list)
        for row in lines(path):
            truth_id = int(row["truth_id"]) if row["truth_id"] else None
            rows[int(row["tid"])].append((int(row["time_ns"]), truth_id, row["event"].removeprefix("demo:")))
        self._marks = {
            tid: [Point((tid, i), *mark) for i, mark in enumerate(sorted(marks, key=lambda mark: mark[0]))]
            for tid, marks in rows.items()
        }
        self._times = {tid: [mark.time_ns for mark in marks] for tid, marks in self._marks.items()}

    def at(self, tid: int, ts_ns: int) -> Point | None:
        """The thread's last point at a time."""
        i = bisect.bisect_right(self._times.get(tid, []), ts_ns) - 1
        return None if i < 0 else self._marks[tid][i]

    def hidden(self, transitions: Iterable[dict[str, Any]]) -> dict[int, int | None]:
        """{op_id: the op's number in the logs}, by the op's first transition."""
        return {
            t["op_id"]: point.truth_id
            for t in transitions
            if t["seq"] == 0 and (point := self.at(t["tid"], t["ts_ns"])) is not None
        }

    def stragglers(self, linger_ns: int) -> int:
        """Points that came so long after their op's end that the op may be settled: a sendmsg that returned late."""
        marks = [mark for marks in self._marks.values() for mark in marks if mark.truth_id is not None]
        ends = {mark.truth_id: mark.time_ns for mark in marks if mark.event == "aio_complete"}
        return sum(mark.time_ns > ends[mark.truth_id] + linger_ns for mark in marks)

    def commits(self) -> dict[tuple[int, int], Commit]:
        """Every commit, by the place of its sync_begin."""
        found = {}
        for marks in self._marks.values():
            commit = Commit()
            for mark in marks:
                if mark.event == "commit_open":
                    commit = Commit()
                elif mark.event == "commit_join" and mark.truth_id is not None:
                    commit.members.append(mark.truth_id)
                elif mark.event == "sync_begin":
                    found[mark.place] = commit
        return found


def object_offsets(path: Path) -> dict[int | None, int]:
    """{an op's number: its offset in the object}, of demo-bench --log."""
    return {int(row["truth_id"]): int(row["offset_bytes"]) for row in lines(path)}


def fio_log(path: Path) -> list[tuple[str, int]]:
    """(direction, offset in bytes) of each I/O, in the log's order: time, latency, direction, block size, offset."""
    rows = (line.split(",") for line in path.read_text().splitlines())
    return [(("read", "write")[int(row[2])], int(row[4])) for row in rows]


class Written(NamedTuple):
    """One write and its fdatasync, of writers.py."""

    pid: int
    file: str
    offset_bytes: int
    begin_ns: int
    written_ns: int
    end_ns: int


def writers_log(path: Path) -> list[Written]:
    """All writes of all writers."""
    return [
        Written(int(row["pid"]), row["file"], *(int(row[name]) for name in Written._fields[2:])) for row in lines(path)
    ]


def file_sectors(path: Path) -> dict[str, Callable[[int], int]]:
    """{file: function that gives the disk's sector for the file's}, of `filefrag -v -b512`'s text."""
    found: dict[str, Callable[[int], int]] = {}
    for part in re.split(r"^(?=File size of )", path.read_text(), flags=re.M)[1:]:
        name = re.match(r"File size of (.+) is \d+ \(", part)
        assert name is not None, part
        extents = [
            (int(logical), int(physical), int(count))
            for logical, physical, count in re.findall(r"^ +\d+: +(\d+)\.\. +\d+: +(\d+)\.\. +\d+: +(\d+):", part, re.M)
        ]

        def at(sector: int, extents: list[tuple[int, int, int]] = extents) -> int:
            (place,) = (
                physical + sector - logical for logical, physical, n in extents if logical <= sector < logical + n
            )
            return place

        found[name[1]] = at
    return found


_BIO = re.compile(r".*-(\d+) +\[\d+\] \S+ +(\d+)\.(\d{6}): bio_(?:queued|ended): .* bio=(\S+)(?: sector=(\d+))?$")


@dataclass
class LoggedBio:
    """One that a thread queued, and when it ended; nanoseconds, but to the microsecond."""

    tid: int
    sector: int
    queued_ns: int
    ended_ns: int | None = None


def logged_bios(path: Path) -> list[LoggedBio]:
    """In the order in which they were queued, of ftrace's text. The rest of one that was split is queued anew with the
    same address: all of it ends then.
    """
    bios: list[LoggedBio] = []
    in_flight: dict[str, LoggedBio] = {}  # by address
    for line in path.read_text().splitlines():
        if (found := _BIO.match(line)) is None:
            continue
        at_ns, address = int(found[2] + found[3]) * 1000, found[4]
        if found[5] is not None:
            bios.append(LoggedBio(int(found[1]), int(found[5]), at_ns))
            in_flight[address] = bios[-1]
        elif address in in_flight:
            in_flight.pop(address).ended_ns = at_ns
    return bios
