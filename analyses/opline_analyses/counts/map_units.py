# SPDX-License-Identifier: MIT
"""The unit of a bpftrace map's values, from the map's name: @read_ns, @usecs, @latms, @queueLatUs.

bpftrace prints no unit. Scripts have the unit in the name: as a separate word (words are separated by underscores,
digits or capital letters), or as the end of a word about time. The letter s at such an end is a plural: @times, @lats.
"""

from __future__ import annotations

import re

_WORDS = {
    "ns": ("ns", "nsec", "nsecs", "nano", "nanos", "nanosec", "nanosecs", "nanosecond", "nanoseconds"),
    "us": ("us", "usec", "usecs", "micro", "micros", "microsec", "microsecs", "microsecond", "microseconds"),
    "ms": ("ms", "msec", "msecs", "milli", "millis", "millisec", "millisecs", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
}
_UNITS = {word: unit for unit, words in _WORDS.items() for word in words}
_TIMES = (
    "lat|latency|latencies|time|times|dur|duration|durations|delay|delays|wait|waits|elapsed|delta|svc|svctm|service|"
    "resp|response|queue|queued|disk|dev|device|block|io|read|reads|write|writes|sync|flush|issue|run|runq|oncpu|"
    "offcpu|sched|lock|hold|req|request|op|ops|rtt|hist|lhist|d2c|q2c|q2d|i2d"
)
_ENDS = sorted(_UNITS.keys() - {"s"}, key=len, reverse=True)
_JOINED = re.compile(rf"(?:{_TIMES})({'|'.join(_ENDS)})")
_NO_TIME = {
    *("b", "byte", "bytes", "kb", "kib", "mb", "mib", "size", "sizes", "sz", "bsize", "bytesize", "sector", "sectors"),
    *("blocks", "pages", "depth", "qd", "qlen", "len", "length", "count", "counts", "cpu", "cpus", "nr", "num"),
    *("inflight", "kbyte", "kbytes"),
}
_COUNTED = re.compile(r"\d(?:ns|us|ms|s)(?![A-Za-z])")  # @lat_100us: the values are numbers of 100 us
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def _parts(name: str) -> list[str]:
    return [part.lower() for part in _PART.findall(name)]


def unit_of(name: str) -> str | None:
    """ns, us, ms or s; None for a name with no unit, two units, or a multiple of a unit."""
    if _COUNTED.search(name):
        return None
    found = set()
    for part in _parts(name):
        joined = _JOINED.fullmatch(part)
        if part in _UNITS:
            found.add(_UNITS[part])
        elif joined is not None:
            found.add(_UNITS[joined[1]])
    return found.pop() if len(found) == 1 else None


def is_no_time(name: str) -> bool:
    """True for a map of sizes or numbers, by its name: @bytes, @queue_depth."""
    return unit_of(name) is None and not _NO_TIME.isdisjoint(_parts(name))
