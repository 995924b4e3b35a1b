# SPDX-License-Identifier: MIT
"""blkparse's text of what blktrace recorded: by default, and what `-f` makes of the same columns in the same order.

      8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]

Device, CPU, number, time, process, action, rwbs, what the action is about, thread. With `-f` the CPU, the number, the
process and the thread may be left out, and the `+`; the time may be the first, and one of the day (%z). A program's
name is not in the line of a completion. The summary behind the events is skipped. Source of the format: blktrace's
blkparse_fmt.c (1.0 to 1.3) and its manual page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline import _core
from opline.readers import day_times
from opline.readers.events import Event, EventsReader, lines_of
from opline.readers.registry import CERTAIN, EVENTS, NO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from opline.readers.registry import Head

CALLED, HAS, MODEL = "blkparse's text", EVENTS, "generic"
_HEAD = (
    r" *+(?:(?P<dev>\d{1,4},\d{1,7}) +(?:(?P<cpu>\d{1,5}) +(?:\d{1,12} +)?)?)?"
    r"(?:(?P<hour>\d\d):(?P<minute>\d\d):)?(?P<time>\d{1,12}\.(?:\d{9}|\d{6})) +"
    r"(?(dev)|(?P<later>\d{1,4},\d{1,7}) +)(?:(?P<pid>\d{1,9}) +)?(?P<action>UT|[A-Zm]) ++"
)
_LINE = re.compile(
    _HEAD + r"(?P<rwbs>[A-Z]{1,8}) ++(?:(?P<sector>\d{1,20}) (?:(?:\+ )?(?P<number>\d{1,10})|/ (?P<at>\d{1,20})))?"
    r"(?P<rest>.*+)"
)
_OTHER = re.compile(_HEAD + r".*+")
_OLD = re.compile(r" *<- \((?P<dev>\d{1,4},\d{1,7})\) (?P<sector>\d{1,20})")
_RELEASED = re.compile(r"\] (\d{1,19})$")  # requests, after an unplug
_LAST = re.compile(r"\[([^][]{0,40})\]$")
_EVENTS = {
    "Q": "block_bio_queue", "G": "block_getrq", "I": "block_rq_insert", "D": "block_rq_issue",
    "M": "block_bio_backmerge", "F": "block_bio_frontmerge", "C": "block_rq_complete", "R": "block_rq_requeue",
    "X": "block_split", "A": "block_bio_remap", "B": "block_bio_bounce",
}  # fmt: skip
_NOT_OF_REQUESTS = frozenset(("P", "U", "UT", "S", "m", "N"))  # plugs, timers, messages


def _with_blanks(line: str) -> str:
    """A line that came through a table has tabs."""
    return line.replace("\t", " ")


def _is_action(line: str) -> bool:
    found = _LINE.fullmatch(_with_blanks(line))
    return found is not None and found["action"] in _EVENTS


def probe(head: Head) -> int:
    """CERTAIN where a line is an action of a request."""
    return CERTAIN if head.has(_is_action) else NO


def names(head: Head) -> set[str]:
    """Of the actions."""
    lines = (_LINE.fullmatch(_with_blanks(line)) for line in head.lines)
    return {_EVENTS[found["action"]] for found in lines if found and found["action"] in _EVENTS}


def files(path: str) -> list[str]:
    """The file alone."""
    return [path]


def front(paths: list[str]) -> BlkparseReader:
    """What reads it."""
    return BlkparseReader(paths[0])


class BlkparseReader(EventsReader):
    """Reads one file of lines."""

    name = "blkparse"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._plugs = _core.Plugs()
        self._last_ns = 0  # of times of the day: the last one

    def events(self, file: BinaryIO) -> Iterator[Event | None]:
        """An event for each action. A device that never issues requests (device mapper) completes bios."""
        issuing: set[int] = set()
        for number, line in lines_of(file):
            yield None
            line = _with_blanks(line)
            found = _LINE.fullmatch(line)
            if found is None or found["action"] not in _EVENTS:
                other = found or _OTHER.fullmatch(line)
                if other is not None:
                    self._plug(other, line)
                if other is not None and other["action"] not in _NOT_OF_REQUESTS:
                    self.not_understood(number, line)
                continue
            event = self._event(found)
            dev = int(event.fields["dev"])
            if event.name != "block_split":  # as btt
                self._plugs.saw(dev, event.ts_ns)
            if event.name == "block_rq_issue":
                issuing.add(dev)
            elif event.name == "block_rq_complete" and dev not in issuing:
                event = Event(event.ts_ns, "block_bio_complete", event.fields, cpu=event.cpu)
            yield event

    def _event(self, found: re.Match[str]) -> Event:
        name = _EVENTS[found["action"]]
        sector = int(found["sector"] or 0)
        fields: dict[str, int | str] = {
            "dev": self.device(found["dev"] or found["later"]), "sector": sector if sector < 1 << 55 else 0,
            "nr_sector": int(found["number"] or 0), "rwbs": re.sub("^FN", "FF", found["rwbs"]),  # as the kernel has it
        }  # fmt: skip
        if found["pid"] is not None:
            fields["tid"] = int(found["pid"])
        last = _LAST.search(found["rest"].rstrip()[-_COMM:])
        if name in ("block_rq_complete", "block_rq_requeue"):
            fields["error"] = int(last[1]) if last and last[1].lstrip("-").isdecimal() else 0
        elif last:
            fields["comm"] = last[1]
        if name == "block_split":
            del fields["nr_sector"]
            fields["new_sector"] = int(found["at"] or 0)
        if old := _OLD.match(found["rest"]):
            fields["old_dev"], fields["old_sector"] = self.device(old["dev"]), int(old["sector"])
        return Event(self._time_ns(found), name, fields, cpu=None if found["cpu"] is None else int(found["cpu"]))

    def _plug(self, found: re.Match[str], line: str) -> None:
        dev, ts_ns = self.device(found["dev"] or found["later"]), self._time_ns(found)
        if found["action"] == "P":
            self._plugs.plug(dev, ts_ns)
        elif found["action"] in ("U", "UT"):
            released = _RELEASED.search(line.rstrip()[-_COMM:])
            self._plugs.unplug(dev, ts_ns, int(released[1]) if released else 0, found["action"] == "UT")

    def _time_ns(self, found: re.Match[str]) -> int:
        whole, _, fraction = found["time"].partition(".")
        time_ns = int(whole) * 10**9 + int(fraction.ljust(9, "0"))
        if found["hour"] is None:
            return time_ns
        time_ns += (int(found["hour"]) * 60 + int(found["minute"])) * 60 * 10**9
        self._last_ns = day_times.after(self._last_ns, time_ns)
        return self._last_ns

    def plugs(self) -> list[dict[str, int]]:
        """Of each device that was plugged."""
        return self._plugs.told()


_COMM = 40  # characters: a thread's name in brackets
