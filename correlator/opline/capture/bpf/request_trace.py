# SPDX-License-Identifier: MIT
"""The metadata of the trace that records of block requests make.

The stream is written by tracepoints/request_writer.c, from records of tracepoints/request_event.h;
docs/internals/collectors.md says what each event is.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from opline.capture.bpf import ctf_metadata as ctf

CHANNEL = "requests"
#: Of the recording's manifest: those that every recording has.
EVENTS = ("request", "bio", "thread", "block_*")

# As in tracepoints/request_event.h.
_REQUEST, _BIO, _THREAD, _REQUEST_OF_PARTITION, _BIO_OF_PARTITION, _LOST, _WATERMARK, _CGROUP_PATH = range(32, 40)

#: What an event's number means, beside the single steps of ``opline.capture.bpf.bpf.KINDS``; those that were counted.
RECORDS = {
    _REQUEST: "request", _BIO: "bio", _THREAD: "thread", _REQUEST_OF_PARTITION: "request", _BIO_OF_PARTITION: "bio",
}  # fmt: skip


def _wide(*names: str) -> str:
    return "".join(ctf.integer(name, base=16) for name in names)


def _numbers(bits: int, *names: str, signed: bool = False) -> str:
    return "".join(ctf.integer(name, bits, signed) for name in names)


_PARTITION = _numbers(64, "old_sector") + _numbers(32, "old_dev")
_REQUEST_FIELDS = (
    _wide("rq", "bio")
    + _numbers(64, "sector")
    + _numbers(32, "getrq", "insert", "issue", "complete", "bytes", "dev")
    + _numbers(32, "tid", "issue_tid", signed=True)
    + _numbers(64, "cgroup")
    + ctf.integer("rq_flags", 32, base=16)
    + _numbers(16, "rwbs", "cpu", "issue_cpu", "complete_cpu", "hw_queue", "flags")
    + _numbers(16, "error", signed=True)
)
_BIO_FIELDS = (
    _wide("bio", "rq")
    + _numbers(64, "sector")
    + _numbers(32, "queue", "getrq", "merge", "named", "complete")
    + _numbers(64, "cgroup")
    + _numbers(32, "bytes", "dev")
    + _numbers(32, "tid", signed=True)
    + _numbers(16, "rwbs", "cpu", "flags")
    + _numbers(16, "error", signed=True)
)
_THREAD_FIELDS = _numbers(32, "kernel_tid", "tid", "pid", signed=True) + ctf.text("comm", 16)


def _single(kind: str) -> str:
    """The fields of a step that is told by itself; what the kind does not have is 0."""
    other = {
        "block_bio_queue": "cgroup", "block_split": "new_sector",
        "block_bio_remap": "old_sector", "block_rq_remap": "old_sector",
    }  # fmt: skip
    return (
        _numbers(32, "dev")
        + _numbers(64, "sector")
        + _numbers(32, "nr_sector", "bytes", "rwbs")
        + _numbers(32, "error", "tid", "pid", signed=True)
        + ctf.text("comm", 17)
        + _numbers(32, "cpu")
        + _wide("rq", "bio", "parent")
        + _numbers(32, "old_dev")
        + _numbers(64, other.get(kind, "other"))
        + _numbers(32, "queue", signed=True)
        + _numbers(16, "tag", signed=True)
        + ctf.integer("rq_flags", 32, base=16)
        + _numbers(8, "flush_seq", signed=True)
    )


def metadata(trace: uuid.UUID, kinds: Iterable[str]) -> str:
    """The text. ``kinds``: of single steps, in the order of their numbers."""
    events = [
        ctf.event(f"block:{kind}", number, _single(kind))
        for number, kind in enumerate(kinds)
        if kind.startswith("block_")
    ]
    events += [
        ctf.event("block:request", _REQUEST, _REQUEST_FIELDS),
        ctf.event("block:bio", _BIO, _BIO_FIELDS),
        ctf.event("block:thread", _THREAD, _THREAD_FIELDS),
        ctf.event("block:request", _REQUEST_OF_PARTITION, _REQUEST_FIELDS + _PARTITION),
        ctf.event("block:bio", _BIO_OF_PARTITION, _BIO_FIELDS + _PARTITION),
        ctf.event(
            "block:lost",
            _LOST,
            _numbers(32, "cpu", signed=True) + _numbers(64, "count", "since", "until"),
        ),
        ctf.event("block:watermark", _WATERMARK, _numbers(64, "drained_through")),
        ctf.event("sched:process_cgroup_path", _CGROUP_PATH, _numbers(64, "cgroup") + ctf.string("path")),
    ]
    return ctf.head(trace, "opline-block") + ctf.stream() + "".join(events)
