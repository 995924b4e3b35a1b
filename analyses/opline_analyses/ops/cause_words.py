# SPDX-License-Identifier: MIT
"""Causes of waits (opline/readers/causes.py) as objects of "waits for"."""

from __future__ import annotations

_ABOUT_REQUESTS = ("direct I/O", "flush", "bio", "buffer", "page", "discard", "aio completion", "io_uring completion")
_WORDS = {
    "journal commit": "a commit of the journal",
    "journal full": "room in the journal",
    "journal locked": "a locked journal",
    "journal buffer": "a metadata buffer of the journal",
    "log (XFS)": "the XFS log",
    "log (btrfs)": "the btrfs log",
    "throttled: wbt": "the limit of write-back throttling (wbt)",
    "throttled: io.cost": "the limit of io.cost",
    "throttled: io.latency": "the limit of io.latency",
    "throttled: dirty pages": "the limit of dirty pages",
    "throttled: memory.high": "the limit memory.high",
    "no free tag": "a free tag of the request queue",
    "queue frozen": "a frozen request queue",
    "reclaim": "memory reclaim",
    "stopped": "a signal to continue",
    "frozen": "the end of the freezer",
    "futex": "a lock (futex)",
    "sleep": "a timer (sleep)",
    "timerfd": "a timer (timerfd)",
    "FUSE server": "the server of the FUSE file system",
    "NFS server": "the NFS server",
    "io_uring completion": "a completion of io_uring",
    "aio completion": "a completion of AIO",
    "idle worker": "work",
    "idle SQ thread": "work",
    "idle journal thread": "work",
    "poll": "an event (poll)",
    "kernel rwsem": "a kernel lock (rwsem)",
    "kernel mutex": "a kernel lock (mutex)",
    "other direct I/O": "other direct I/O on the file",
    "child process": "a child process",
    "RCU grace period": "an RCU grace period",
    "limit freed": "an I/O limit (wbt, io.cost or io.latency)",
    "throttled: io.max": "the I/O limit of a cgroup (io.max)",
    "unfreeze": "a frozen request queue",
    "journal": "the journal",
    "page written": "a page under write-back",
    "page read": "a page being read",
    "network": "a message from the network",
    "event": "an event (eventfd)",
    "exit": "the end of a thread",
}
_VOWELS = "aeio"
_TIMERS = ("sleep", "timerfd")


def cause_words(cause: str) -> str:
    """``page under write-back`` → ``a page under write-back``."""
    if cause in _WORDS:
        return _WORDS[cause]
    uncountable = cause == "direct I/O" or cause.startswith("ordered data")
    return cause if uncountable else f"{'an' if cause[:1] in _VOWELS else 'a'} {cause}"


def until_timeout(cause: str | None, kind: str) -> bool:
    """The awaited event did not come: a timer ended the wait. ``kind``: of the part of the wait."""
    return kind == "timer" and cause is not None and cause not in _TIMERS


def about_requests(cause: str) -> bool:
    """A block request ends such a wait: with a known request, the cause adds nothing."""
    return cause in _ABOUT_REQUESTS
