# SPDX-License-Identifier: MIT
"""Lines of block events as `perf script`, ftrace (trace, trace_pipe) and `trace-cmd report` print them.

    tar 16072 [001] 2199495.030133: block:block_rq_issue: 202,16 R 0 () 21997888 + 8 [tar]
    tar-16072 [001] d..1. 2199495.030133: block_rq_issue: 202,16 R 4096 () 21997888 + 8 none,0,0 [tar]

The first is perf's, the second ftrace's. What differs between kernels is parsed by structure, never by the number of a
field: with and without the bytes, with and without the I/O priority (kernel 6.x), with and without ftrace's flags and
thread group, stamps of us and of ns. Names of threads may have spaces, hyphens and brackets. Sources: TP_printk in the
kernel's include/trace/events/block.h.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    # event, ns, CPU, thread's name, thread, what the event's class wants of the payload
    Parsed: TypeAlias = tuple[str, int, int, str, int, dict[str, int | str]]

_HEAD = re.compile(
    r"\s*(?P<who>.*?)\s+\[(?P<cpu>\d{1,9})\]\s+(?:(?!\d+\.\d+:)\S+\s+)?(?P<s>\d{1,10})\.(?P<frac>\d{1,9}):"
    r"\s+(?:\d+\s+)?(?:block:)?(?P<event>block_\w+):\s*(?P<rest>.*)"
)
_PERF_WHO = re.compile(r"(.*?)\s+(-?\d{1,9})(?:/(-?\d{1,9}))?")
_FTRACE_WHO = re.compile(r"(.*)-(\d{1,9})(?:\s+\(\s*[\d-]+\))?")
_BODY = re.compile(
    r"(?P<major>\d{1,9}),(?P<minor>\d{1,9})\s+(?P<rwbs>[A-Z]+)\s+(?:\d+\s+)?(?:\(.*?\)\s+)?"
    r"(?P<sector>\d{1,20})\s+(?P<sign>[+/])\s+(?P<number>\d{1,20})"
    r"(?:\s+<-\s+\((?P<old_major>\d{1,9}),(?P<old_minor>\d{1,9})\)\s+(?P<old_sector>\d{1,20}))?"
    r"(?:\s+\w+,\w+,\w+)?(?:\s+\[(?P<last>.*)\])?.*"
)
_LOST = re.compile(r"LOST (\d{1,18}) (?:EVENTS|events)")

#: What each event's class has, in this order, besides tid and comm.
_REQUEST = ("dev", "sector", "nr_sector", "rwbs")
FIELDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "block_rq_insert", "block_rq_issue", "block_rq_merge", "block_bio_queue", "block_getrq",
            "block_bio_backmerge", "block_bio_frontmerge", "block_bio_bounce",
        ),
        _REQUEST,
    ),
    **dict.fromkeys(
        ("block_rq_complete", "block_rq_requeue", "block_rq_error", "block_bio_complete"), (*_REQUEST, "error")
    ),
    **dict.fromkeys(("block_bio_remap", "block_rq_remap"), (*_REQUEST, "old_dev", "old_sector")),
    "block_split": ("dev", "sector", "new_sector", "rwbs"),
}  # fmt: skip
#: They say nothing of a request.
SILENT = frozenset(
    {"block_plug", "block_unplug", "block_touch_buffer", "block_dirty_buffer", "block_sleeprq", "block_io_start",
     "block_io_done"}
)  # fmt: skip


def lost_events(line: str) -> int:
    """How many events the tracer says here that it has lost."""
    found = _LOST.search(line)
    return int(found[1]) if found else 0


def parse(line: str) -> Parsed | None:
    """A line's block event; None where it is none, or one that can't be read."""
    head = _HEAD.fullmatch(line)
    if head is None:
        return None
    event = head["event"]
    if event not in FIELDS:
        return None
    body = _BODY.fullmatch(head["rest"])
    if body is None:
        return None
    who = _PERF_WHO.fullmatch(head["who"]) or _FTRACE_WHO.fullmatch(head["who"])
    if who is None:
        return None
    tid = who[3] if who.re is _PERF_WHO and who[3] else who[2]
    ts_ns = int(head["s"]) * 1_000_000_000 + int(head["frac"].ljust(9, "0"))
    payload: dict[str, int | str] = {
        "dev": int(body["major"]) << 20 | int(body["minor"]),
        "sector": int(body["sector"]),
        "rwbs": body["rwbs"],
        "new_sector" if body["sign"] == "/" else "nr_sector": int(body["number"]),
    }
    if body["old_major"] is not None:
        payload["old_dev"] = int(body["old_major"]) << 20 | int(body["old_minor"])
        payload["old_sector"] = int(body["old_sector"])
    fields = FIELDS[event]
    if "error" in fields:
        last = body["last"] or "0"
        payload["error"] = int(last) if re.fullmatch(r"-?\d{1,18}", last) else 0
    if not all(name in payload for name in fields) or _too_large(ts_ns, payload):
        return None
    return event, ts_ns, int(head["cpu"]), who[1], int(tid), payload


def _too_large(ts_ns: int, payload: dict[str, int | str]) -> bool:
    """A time or a number that no event has."""
    return ts_ns >= 2**63 or any(isinstance(v, int) and not -(2**63) <= v < 2**64 for v in payload.values())


def is_block_line(line: str) -> bool:
    """Whether a line ought to be an event that says something of a request."""
    found = re.search(r"\b(block_\w+):", line)
    return found is not None and found[1] not in SILENT
