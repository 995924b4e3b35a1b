# SPDX-License-Identifier: MIT
"""The tables of a run: every column with its type, unit and meaning, declared once.

``docs/tables.md`` is generated from this file and a test compares it with what the core emits.
Types: ``i64 u64 i32 u32 bool`` are plain; ``dict`` is a dictionary-encoded string, ``text`` a plain string.
All times are integer nanoseconds of the raw monotonic clock (``manifest.json`` has the offset to wall time).
Absent (null) means unknown: never 0, never -1.
"""

from __future__ import annotations

from opline.values import Value


class Column(Value):
    """One column: its name (unit included), type and one sentence."""

    name: str
    type: str
    meaning: str


class TableSpec(Value):
    """One table: a row per ``row``."""

    name: str
    row: str
    columns: tuple[Column, ...]


def _table(name: str, row: str, *columns: tuple[str, str, str]) -> TableSpec:
    return TableSpec(name, row, tuple(Column(*c) for c in columns))


TABLES: tuple[TableSpec, ...] = (
    _table(
        "ops",
        "op",
        ("op_id", "i64", "Ordinal of the op's begin in the trace, from 0; unique in the run."),
        ("class", "dict", "The op's class as the model names it (write, read, ...)."),
        ("object", "text", "The application's name of what the op works on."),
        ("key", "text", "The op's first key, printed as space=value; for people, not for joins."),
        ("host", "dict", "Host name from the trace."),
        ("pid", "i32", "Process of the begin point (VPID for user-space events)."),
        ("comm", "dict", "Name of the begin point's thread."),
        ("begin_tid", "i64", "Thread of the begin point."),
        ("end_tid", "i64", "Thread of the end point."),
        ("begin_ns", "i64", "Time of the begin point."),
        ("end_ns", "i64", "Time of the end point."),
        ("latency_ns", "i64", "end_ns - begin_ns."),
        ("complete", "bool", "The end point was seen."),
        ("reason", "dict", "Why an op is not complete: no_end, key_reused, ends_before_begin."),
        (
            "tainted",
            "bool",
            "The op overlaps an interval in which the tracer discarded events, or the recorder knew of a loss.",
        ),
        ("offset_bytes", "i64", "Offset of the op's data, where the model names it."),
        ("length_bytes", "i64", "Length of the op's data; of an op made of bios theirs, unless some were read ahead."),
        ("transition_count", "u32", "Points passed, late ones included."),
        ("late_count", "u32", "Points passed after the end."),
        ("request_count", "u32", "Block requests that serve the op, those of its batches included."),
        ("batch_count", "u32", "Batches that it joined: a group commit is one."),
        ("dev", "u32", "Device of the op's first block request, kernel-internal (major << 20 | minor)."),
        ("sector", "u64", "First sector of the op's first bio."),
        ("no_request", "dict", "Why no block request is linked: see docs/losses.md; absent where one is."),
        ("unattributed_ns", "i64", "Part of latency_ns that no stage claims."),
        (
            "unknown_ns",
            "i64",
            "Part of latency_ns in stages of kind unknown: between threads without evidence on both sides.",
        ),
    ),
    _table(
        "transitions",
        "point that an op passed",
        ("op_id", "i64", "The op."),
        ("seq", "u32", "Ordinal in the op, in time order, from 0."),
        ("ts_ns", "i64", "Time of the point."),
        ("point", "dict", "Name of the point; a recurrence is numbered: fdatasync#2."),
        ("event", "dict", "Name of the event behind it; absent where a completion ends the op."),
        ("tid", "i64", "Thread (VTID for user-space events; pthread_id where the trace has nothing better)."),
        ("pid", "i32", "Process (VPID for user-space events)."),
        ("cpu", "u32", "CPU of the event."),
        ("comm", "dict", "Name of the thread at the time."),
        (
            "evidence",
            "dict",
            "Why the point is the op's: begin, key:SPACE, thread, batch, completion (of its requests).",
        ),
        ("late", "bool", "The point comes after the op's end and is outside its latency."),
        ("aside", "bool", "The point is not on the critical path: no stage is cut at it."),
        ("batch_id", "i64", "The batch whose shared work the point is."),
        (
            "child",
            "i32",
            "The op's child that passed it (a replica, one of several aios), from 1; absent: the op itself.",
        ),
    ),
    _table(
        "stages",
        "interval of an op's critical path",
        ("op_id", "i64", "The op."),
        ("seq", "u32", "Ordinal in the op, in time order, from 0."),
        ("stage", "dict", "Name of the stage."),
        ("kind", "dict", "work, wait, network, device, block (between two block steps), or unknown."),
        ("from_point", "dict", "Where it begins: a point, or Q G I D C of a block request."),
        ("to_point", "dict", "Where it ends."),
        ("begin_ns", "i64", "Begin of the interval."),
        ("duration_ns", "i64", "Its length. The durations of an op and its unattributed_ns sum to its latency_ns."),
        ("tid", "i64", "Thread at its end; absent at a block completion."),
        ("request_id", "i64", "The block request that cuts here, for block stages."),
        ("states_tid", "i64", "Thread whose states follow: tid; at a completion, the one that it let go on."),
        ("on_cpu_ns", "i64", "Of it, that thread ran. Absent, as all of these, where sched events don't cover it all."),
        ("runnable_ns", "i64", "It could have run and waited for a CPU."),
        ("blocked_io_ns", "i64", "It slept uninterruptibly, or while a request of the op was between Q and C."),
        ("blocked_ns", "i64", "It slept otherwise. The four sum to duration_ns."),
        ("woken_by_tid", "i64", "Who woke it last; in an interrupt, whoever was interrupted (0: an idle CPU)."),
        ("woken_by_comm", "dict", "Name of that thread."),
    ),
    _table(
        "states",
        "time in one state of a thread in a stage",
        ("op_id", "i64", "The op."),
        ("seq", "u32", "The stage: its seq in the op. Of a stage the rows follow each other without a gap."),
        ("tid", "i64", "The thread: the stage's states_tid."),
        ("state", "dict", "on_cpu, runnable, blocked_io, blocked. Their sums are the stage's columns of these names."),
        ("begin_ns", "i64", "When it began, or the stage did."),
        ("duration_ns", "i64", "How long it lasted, in the stage."),
        ("woken_by_tid", "i64", "Whose wake-up began it; absent if none did."),
        ("woken_by_comm", "dict", "Name of that thread."),
    ),
    _table(
        "requests",
        "block request",
        ("request_id", "i64", "Ordinal, from 1, in order of first sight."),
        ("dev", "u32", "Device, kernel-internal (major << 20 | minor)."),
        ("sector", "u64", "First sector as issued (512-byte units); absent for a flush."),
        ("nr_sectors", "u32", "Length in sectors."),
        ("kind", "dict", "read, write, discard, write_zeroes, flush, other."),
        ("rwbs", "dict", "Flags in blkparse letters, e.g. WS, FWS, RM."),
        ("queue_ns", "i64", "Q: its first bio was queued; of a split's remainder: the bio that it was cut from."),
        ("getrq_ns", "i64", "G: the request was allocated."),
        ("insert_ns", "i64", "I: inserted into the scheduler; absent with scheduler none."),
        ("first_issue_ns", "i64", "First D: issued to the driver."),
        ("issue_ns", "i64", "Last D; differs from the first after a requeue."),
        ("complete_ns", "i64", "C: completed."),
        ("q2c_ns", "i64", "complete_ns - queue_ns."),
        ("d2c_ns", "i64", "complete_ns - issue_ns: driver and device."),
        ("queue_tid", "i32", "Thread that queued the first bio."),
        ("queue_comm", "dict", "Its name."),
        ("issue_tid", "i32", "Thread that issued; often a kworker."),
        ("issue_comm", "dict", "Its name."),
        ("queue_cpu", "u32", "CPU at Q."),
        ("issue_cpu", "u32", "CPU at D."),
        ("complete_cpu", "u32", "CPU at C."),
        ("error", "i32", "Error of the completion; 0 fine; absent if not completed."),
        ("bio_count", "u32", "Bios in the request."),
        ("merge_count", "u32", "Bios or requests merged into it."),
        ("requeue_count", "u32", "Times it was requeued."),
        (
            "in_flight",
            "u32",
            "Requests of the device between D and C at this one's first D, itself excluded; absent where the device's completions are missing.",
        ),
        ("op_count", "u32", "Ops that it serves, those that did not wait for it included."),
        ("op_id", "i64", "The op, where it is exactly one."),
        ("ambiguous", "bool", "A step could have belonged to another request as well."),
        (
            "outcome",
            "dict",
            "completed, absorbed (by rq_merge), reused (its completion was not seen), open (at the trace's end).",
        ),
        ("flushed_by", "i64", "The flush that served it, and others with it maybe: its D is that flush's."),
        ("preflush_ns", "i64", "The flush before its data (PREFLUSH) was done."),
        ("end_ns", "i64", "All of it is done: C, or the end of the flush behind its data."),
    ),
    _table(
        "bios",
        "bio",
        ("bio_id", "i64", "Ordinal, from 1, in order of Q."),
        ("request_id", "i64", "The request that carried it; absent if none is known."),
        ("dev", "u32", "Device."),
        ("sector", "u64", "First sector."),
        ("nr_sectors", "u32", "Length in sectors."),
        ("kind", "dict", "read, write, discard, write_zeroes, flush, other."),
        ("queue_ns", "i64", "Q; absent for a split remainder."),
        ("getrq_ns", "i64", "G of a request of its own; absent if it was merged into another's."),
        ("merge_ns", "i64", "M or F: it was merged into a request; absent if it was not."),
        ("tid", "i32", "Thread that queued it."),
        ("comm", "dict", "Its name."),
        ("parent_id", "i64", "The bio that it was remapped from."),
        ("split_from_id", "i64", "The bio whose remainder it is."),
        ("op_id", "i64", "The op that owns it, by the rule that won."),
        ("op_by_thread", "i64", "The op by the thread rule."),
        ("op_by_sector", "i64", "The op by the sector rule: a raw device's sectors."),
        ("op_by_extent", "i64", "The op by the extent rule: sectors of a mapped file."),
        ("sector_candidates", "u32", "Ops in flight on those sectors: more than one is ambiguous."),
        ("batch_id", "i64", "The batch, or the sync, that owns it."),
    ),
    _table(
        "links",
        "(op, bio)",
        ("op_id", "i64", "The op."),
        ("bio_id", "i64", "The bio."),
        ("request_id", "i64", "The bio's request."),
        (
            "evidence",
            "dict",
            "Rules that say so, joined by +: thread, sector, extent, page, batch; parent: of the bio that it was made of.",
        ),
        ("request_evidence", "dict", "How the bio's request was found: pointer, or sector (device, sector, order)."),
        (
            "confidence",
            "dict",
            "high: the thread and the place of the data agree; medium: one rule; low: ambiguous, events lost, map changed.",
        ),
        ("bytes", "u64", "Bytes of the op in the bio; absent where they can't be told from those of others."),
        ("shared", "bool", "The bio serves other ops too: a batch's, or a sync's that covers several."),
        ("ambiguous", "bool", "Another op could claim it as well, or another request the bio."),
    ),
    _table(
        "deferred",
        "(op, bio) where the op's data was written back outside its latency",
        ("op_id", "i64", "The op that wrote these pages last; its row in ops is older than this one."),
        ("bio_id", "i64", "The bio."),
        ("request_id", "i64", "The bio's request."),
        ("file", "dict", "The file, by its map."),
        ("bytes", "u64", "Bytes of the bio's pages that the op wrote last."),
        ("written_ns", "i64", "When the op wrote them to the page cache (its io end)."),
        ("queue_ns", "i64", "Q of the bio."),
        ("issue_ns", "i64", "D of its request."),
        ("complete_ns", "i64", "C of its request: from here on the data is on the device."),
        ("tid", "i32", "Thread that queued it."),
        ("comm", "dict", "Its name."),
        ("evidence", "dict", "page: the last writer of each page."),
        ("confidence", "dict", "medium, or low: ambiguous, events lost, map changed."),
        ("shared", "bool", "The bio has other bytes as well."),
        ("ambiguous", "bool", "The page of another file may be meant, or another request."),
    ),
    _table(
        "batches",
        "batch or sync",
        ("batch_id", "i64", "Ordinal, from 0."),
        ("space", "dict", "The batch's kind as the model names it; sync: between a sync's begin and its end."),
        ("tid", "i32", "The thread that worked for it."),
        ("begin_ns", "i64", "Opened."),
        ("end_ns", "i64", "Closed; absent if the trace ended before."),
        (
            "member_count",
            "u32",
            "Ops that joined; of a sync: its op, and those whose writes it was the first to cover.",
        ),
        ("request_count", "u32", "Block requests of its work; of a sync: that its op waited for."),
        ("declared_count", "u32", "Members that its closing event speaks of; absent where it does not."),
    ),
    _table(
        "members",
        "(batch, op that joined it)",
        ("batch_id", "i64", "The batch."),
        ("op_id", "i64", "The op."),
        ("joined_ns", "i64", "Time of the point at which the op joined."),
    ),
    _table(
        "fates",
        "(event class, fate)",
        ("event", "dict", "Name of the event class."),
        ("fate", "dict", "What became of its events: see docs/losses.md."),
        ("count", "u64", "How many. Per event class they sum to the input."),
    ),
    _table(
        "losses",
        "loss name",
        ("loss", "dict", "Name: see docs/losses.md."),
        ("severity", "dict", "info, notice, data_loss, error."),
        ("origin", "dict", "recording (the tracer lost it) or correlation (we could not make sense of it)."),
        ("count", "u64", "How many."),
    ),
    _table(
        "discarded",
        "interval with discarded events",
        ("stream", "text", "The data stream (channel and CPU); of what the recorder knew, or other events show: why."),
        ("begin_ns", "i64", "Begin of the interval; absent if unknown."),
        ("end_ns", "i64", "Its end."),
        ("count", "u64", "Events (or packets) discarded; absent if unknown."),
        ("packets", "bool", "Whole packets, not events."),
    ),
)

BY_NAME = {t.name: t for t in TABLES}
