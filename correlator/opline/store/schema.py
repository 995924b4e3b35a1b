# SPDX-License-Identifier: MIT
"""The tables of a run: every column with its type, unit and meaning, declared once.

``docs/tables.md`` is generated from this file and a test compares it with what the core emits.
Types: ``i64 u64 i32 u32 bool`` are plain; ``dict`` is a dictionary-encoded string, ``text`` a plain string.
All times are integer nanoseconds of the raw monotonic clock (``manifest.json`` has the offset to wall time).
Absent (null) means unknown: never 0, never -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.steps import STEPS
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator


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


class Attribute(Value):
    """A whole number that describes an op, declared here once for all outputs: a column of the table ops and of `opline
    csv`, a value of `opline ops`, a kind of the page, and what `opline why` tests. The core sets it
    (`stages/op_attributes.cpp`).
    """

    column: str
    meaning: str
    kind: str  # what people call it
    phrase: str  # the ops that have the value {}
    text: str = ""  # in the first line of `opline ops`, with {}; empty: the lines below it say it


ATTRIBUTES = (Attribute("begin_cpu", "CPU of the begin point.", "CPU", "begin on CPU {}"),)


def _step_columns() -> Iterator[tuple[str, str, str]]:
    for step in STEPS:
        if step.letter == "D":
            yield "first_issue_ns", "i64", "First D: issued to the driver."
        yield step.column, "i64", step.recorded


TABLES: tuple[TableSpec, ...] = (
    _table(
        "ops",
        "op",
        ("op_id", "i64", "Number, from 0, in order of begin."),
        ("class", "dict", "Class in the model, as write or read."),
        ("object", "text", "The application's name of the object; the path of a system call's file."),
        ("key", "text", "The first key, as space=value."),
        ("host", "dict", "Host of the trace."),
        ("pid", "i32", "Process of the begin point."),
        ("comm", "dict", "Name of the thread begin_tid."),
        ("program", "dict", "Program of the process at the begin, if recorded."),
        ("population", "bool", "The process is recorded (the command, --pid, --comm)."),
        ("cgroup", "dict", "Cgroup of the thread begin_tid."),
        ("begin_tid", "i64", "Thread of the begin point."),
        ("end_tid", "i64", "Thread of the end point."),
        ("begin_ns", "i64", "Begin point."),
        ("end_ns", "i64", "End point."),
        ("latency_ns", "i64", "end_ns - begin_ns."),
        ("complete", "bool", "The end point was seen."),
        ("reason", "dict", "If not complete: no_end, key_reused, ends_before_begin."),
        ("tainted", "bool", "The begin or the end can be lost."),
        ("unsplit", "bool", "Events inside are lost: a stage is `unknown (events lost)`."),
        ("offset_bytes", "i64", "Offset of the data, if the model names it."),
        ("length_bytes", "i64", "Length of the data; for an op made of bios the bios', unless some were read ahead."),
        ("transition_count", "u32", "Points passed."),
        ("late_count", "u32", "Points after the end."),
        ("request_count", "u32", "Block requests of the op and its batches."),
        ("batch_count", "u32", "Batches (group commits) joined."),
        ("dev", "u32", "Device of the first block request."),
        ("sector", "u64", "First sector of the first bio."),
        ("no_request", "dict", "Reason for no block request: docs/losses.md."),
        ("unattributed_ns", "i64", "Part of latency_ns in no stage."),
        ("unknown_ns", "i64", "Part in stages of kind unknown."),
        *((a.column, "i64", a.meaning) for a in ATTRIBUTES),
    ),
    _table(
        "transitions",
        "point that an op passed",
        ("op_id", "i64", "The op."),
        ("seq", "u32", "Number in the op, from 0, in order of time."),
        ("ts_ns", "i64", "Time of the point."),
        ("point", "dict", "The point; a repetition has a number: fdatasync#2."),
        ("event", "dict", "Its event; absent if a completion ends the op."),
        ("tid", "i64", "Thread (pthread_id if the trace has nothing better)."),
        ("pid", "i32", "Process."),
        ("host", "dict", "Host of the thread."),
        ("cpu", "u32", "CPU of the event."),
        ("comm", "dict", "Name of the thread at this time."),
        ("evidence", "dict", "How the op is known: begin, key:SPACE, thread, batch, completion (of its requests)."),
        ("late", "bool", "The point comes after the op's end."),
        ("aside", "bool", "No stage begins or ends here."),
        ("batch_id", "i64", "Batch, if this is a batch's shared work."),
        ("child", "i32", "Child that passed the point, from 1; absent: the op itself."),
    ),
    _table(
        "stages",
        "interval of an op's critical path",
        ("op_id", "i64", "The op."),
        ("seq", "u32", "Number in the op, from 0, in order of time."),
        ("stage", "dict", "Name of the stage."),
        ("kind", "dict", "work, wait, network, device, block (between two block steps), unknown."),
        ("from_point", "dict", "Begin: a point, or Q G I D C of a block request."),
        ("to_point", "dict", "End."),
        ("begin_ns", "i64", "Begin of the interval."),
        ("duration_ns", "i64", "Its length. An op's durations and unattributed_ns sum to its latency_ns."),
        ("tid", "i64", "Thread at the end; absent at a block completion."),
        ("host", "dict", "Host of this thread, or of the block device."),
        ("request_id", "i64", "Block request of a block stage."),
        ("states_tid", "i64", "Thread of the columns below: tid; at a completion, the thread that waited for it."),
        ("on_cpu_ns", "i64", "The thread ran. These columns are absent if sched events do not cover the stage."),
        ("runnable_ns", "i64", "It waited for a CPU."),
        ("blocked_io_ns", "i64", "Uninterruptible sleep, or sleep while a request of the op was between Q and C."),
        ("blocked_ns", "i64", "Other sleep. The four parts sum to duration_ns."),
        (
            "woken_by_tid",
            "i64",
            "Thread of the last wake-up; in an interrupt, the interrupted thread (0: an idle CPU).",
        ),
        ("woken_by_comm", "dict", "Name of that thread."),
    ),
    _table(
        "states",
        "time in one state of a thread in a stage",
        ("op_id", "i64", "The op."),
        ("seq", "u32", "The stage: its seq in the op."),
        ("tid", "i64", "The stage's states_tid."),
        ("state", "dict", "on_cpu, runnable, blocked_io, blocked."),
        ("begin_ns", "i64", "Begin of the state, or of the stage."),
        ("duration_ns", "i64", "Length within the stage."),
        ("woken_by_tid", "i64", "Thread whose wake-up began the state, if one did."),
        ("woken_by_comm", "dict", "Name of that thread."),
    ),
    _table(
        "waits",
        "part of a wait in a stage",
        ("wait_id", "i64", "The wait: a sleep, or a time without a CPU. Several stages may share it."),
        ("op_id", "i64", "The op."),
        ("seq", "u32", "The stage: its seq in the op."),
        ("begin_ns", "i64", "Begin of the part."),
        ("duration_ns", "i64", "Its length. A stage's parts sum to runnable_ns + blocked_io_ns + blocked_ns."),
        ("part_count", "u32", "Parts in the row: more than 1 if the stage has over 256."),
        (
            "kind",
            "dict",
            "device, queue, completion: of a block request; work, cpu, thread: a thread ran, waited for a CPU, or is not recorded; stopped, timer, network, interrupt: the end of the wait; unknown.",
        ),
        ("reason", "dict", "If unknown: no wake-up, before the request, cycle, too long."),
        ("depth", "u32", "Threads on the path; 0: the stage's thread."),
        ("path", "dict", "Their names from the waker on, each woken by the next; absent at depth 0."),
        ("tid", "i64", "Thread of the part: queued the request, ran, waited for a CPU, sent the signal, or slept."),
        ("comm", "dict", "Name of that thread."),
        ("request_id", "i64", "The block request."),
        ("instead_tid", "i64", "For cpu: the thread that ran longest on the CPU meanwhile."),
        ("instead_comm", "dict", "Name of that thread."),
        ("stack_id", "i32", "Kernel stack of the stage's thread at the wake-up, in stacks.json."),
        ("waker_stack_id", "i32", "Kernel stack of the CPU of the wake-up."),
        ("cause", "dict", "Reason of the sleep of the stage's thread, by the kernel stacks."),
        ("last_cause", "dict", "The same of the last thread on the path."),
        (
            "lock_kind",
            "dict",
            "Lock that the stage's thread, else the path's first, slept for: futex, mutex, rwsem, per-CPU rwsem, rt_mutex.",
        ),
        ("lock", "u64", "Its address: a futex's in the process, else in the kernel."),
        ("holder_tid", "i64", "Thread that held the lock when the sleep began; for a futex, that woke the sleeper."),
        ("holder_comm", "dict", "Name of that thread."),
        ("certain", "bool", "The events name every waker on the path; else an interrupt may have met a bystander."),
    ),
    _table(
        "requests",
        "block request",
        ("request_id", "i64", "Number, from 1, in order of appearance."),
        ("dev", "u32", "Device."),
        ("host", "dict", "Host of the device."),
        ("sector", "u64", "First sector as issued; absent for a flush."),
        ("nr_sectors", "u32", "Length in sectors."),
        (
            "kind",
            "dict",
            "read, write, discard, write_zeroes, flush, zone_reset, zone_reset_all, zone_finish, zone_open, zone_close, other.",
        ),
        ("rwbs", "dict", "Flags in blkparse's letters: WS, FWS, RM."),
        *_step_columns(),
        ("q2c_ns", "i64", "complete_ns - queue_ns."),
        ("d2c_ns", "i64", "complete_ns - issue_ns: driver and device."),
        ("queue_tid", "i32", "Thread that queued the first bio."),
        ("queue_comm", "dict", "Name of that thread."),
        ("issue_tid", "i32", "Thread that issued the request; often a kworker."),
        ("issue_comm", "dict", "Name of that thread."),
        ("queue_cpu", "u32", "CPU at Q."),
        ("issue_cpu", "u32", "CPU at D."),
        ("complete_cpu", "u32", "CPU at C."),
        ("error", "i32", "Error of the completion; 0: none."),
        ("bio_count", "u32", "Bios in the request."),
        ("merge_count", "u32", "Merges into the request."),
        ("requeue_count", "u32", "Requeues."),
        (
            "in_flight",
            "u32",
            "The device's other requests between D and C at the first D; absent if completions are missing.",
        ),
        ("op_count", "u32", "Ops served, with those that did not wait."),
        ("op_id", "i64", "The op, if there is exactly one."),
        ("ambiguous", "bool", "A step could also be another request's."),
        ("population", "bool", "A recorded process queued a bio, or the request serves such a process's op."),
        ("cgroup", "dict", "Cgroup of the first bio."),
        ("outcome", "dict", "completed, absorbed (rq_merge), reused (no completion seen), open (at the trace's end)."),
        ("flushed_by", "i64", "The flush that served this request, and gives its D."),
        ("preflush_ns", "i64", "End of the flush before the data (PREFLUSH)."),
        ("end_ns", "i64", "C, or the end of the flush after the data."),
    ),
    _table(
        "bios",
        "bio",
        ("bio_id", "i64", "Number, from 1, in order of Q."),
        ("request_id", "i64", "The bio's request."),
        ("dev", "u32", "Device."),
        ("sector", "u64", "First sector."),
        ("nr_sectors", "u32", "Length in sectors."),
        ("kind", "dict", "As in requests."),
        ("queue_ns", "i64", "Q; absent for the rest of a split."),
        ("getrq_ns", "i64", "G of the bio's own request; absent after a merge."),
        ("merge_ns", "i64", "M or F: merged into a request."),
        ("tid", "i32", "Thread that queued the bio."),
        ("pid", "i32", "Its process."),
        ("comm", "dict", "Name of that thread."),
        ("parent_id", "i64", "The original bio of a remap."),
        ("split_from_id", "i64", "The original bio of a split."),
        ("op_id", "i64", "The op that owns the bio."),
        ("op_by_thread", "i64", "By the thread rule."),
        ("op_by_sector", "i64", "By a raw device's sectors."),
        ("op_by_extent", "i64", "By a mapped file's sectors."),
        ("sector_candidates", "u32", "Ops in flight on these sectors: over 1 is ambiguous."),
        ("batch_id", "i64", "Batch or sync that owns the bio."),
        ("population", "bool", "A recorded process queued the bio, or the bio serves such a process's op."),
        ("cgroup", "dict", "Cgroup of the thread; for a write of the page cache, of the pages."),
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
            "Rules, joined by +: thread, sector, extent, page, batch; parent: those of the original bio.",
        ),
        ("request_evidence", "dict", "Rule for the bio's request: pointer, or sector (device, sector, order)."),
        (
            "confidence",
            "dict",
            "high: thread and place agree; medium: one rule, or order; low: ambiguous, events lost, map changed.",
        ),
        ("bytes", "u64", "Bytes of the op in the bio."),
        ("shared", "bool", "The bio serves other ops too: of a batch, or of a sync."),
        ("ambiguous", "bool", "The op or the request could be another one."),
    ),
    _table(
        "deferred",
        "(op, bio) where the op's data was written back outside its latency",
        ("op_id", "i64", "The op that wrote these pages last."),
        ("bio_id", "i64", "The bio."),
        ("request_id", "i64", "The bio's request."),
        ("file", "dict", "The file, from its map."),
        ("bytes", "u64", "Bytes of the op in the bio."),
        ("written_ns", "i64", "The op wrote the pages to the page cache."),
        ("queue_ns", "i64", "Q of the bio."),
        ("issue_ns", "i64", "D of its request."),
        ("complete_ns", "i64", "C of its request: the data is on the device."),
        ("tid", "i32", "Thread that queued the bio."),
        ("comm", "dict", "Name of that thread."),
        ("evidence", "dict", "page: the last writer of each page."),
        ("confidence", "dict", "medium, or low: ambiguous, events lost, map changed."),
        ("shared", "bool", "The bio also has other bytes."),
        ("ambiguous", "bool", "The page's file or the bio's request could be another one."),
    ),
    _table(
        "batches",
        "batch or sync",
        ("batch_id", "i64", "Number, from 0."),
        ("space", "dict", "Kind of the batch in the model; sync: between begin and end of a sync."),
        ("tid", "i32", "Thread that worked for the batch."),
        ("begin_ns", "i64", "Opened."),
        ("end_ns", "i64", "Closed."),
        ("member_count", "u32", "Ops that joined; for a sync: its op, and the ops whose writes it covered first."),
        ("request_count", "u32", "Block requests of the batch's work; for a sync: that its op waited for."),
        ("declared_count", "u32", "Members according to the closing event."),
    ),
    _table(
        "members",
        "(batch, op that joined it)",
        ("batch_id", "i64", "The batch."),
        ("op_id", "i64", "The op."),
        ("joined_ns", "i64", "The op joined."),
    ),
    _table(
        "messages",
        "send or receive point of a message",
        ("ts_ns", "i64", "Time of the point."),
        ("point", "dict", "The point in the model."),
        ("direction", "dict", "send or receive."),
        ("identity", "u64", "Hash of the message key, the same at both ends."),
        ("host", "dict", "Host of the point."),
        ("pid", "i32", "Process."),
        ("tid", "i64", "Thread, as in transitions."),
    ),
    _table(
        "tcp",
        "call on a TCP stream (`opline record --tcp`)",
        ("ts_ns", "i64", "Before the call writes the first byte of a segment; end of the call to receive."),
        ("direction", "dict", "send or receive."),
        ("local", "dict", "This end's address and port."),
        ("peer", "dict", "The other end's."),
        ("socket", "u64", "The kernel's number of the socket."),
        ("position", "u32", "TCP's sequence number of the first byte, equal at both ends."),
        ("bytes", "u32", "Bytes, if received."),
        ("host", "dict", "Host of the call."),
        ("pid", "i32", "Process."),
        ("tid", "i64", "Thread."),
    ),
    _table(
        "fates",
        "(event class, fate)",
        ("event", "dict", "The event class."),
        ("fate", "dict", "The fate: docs/internals/losses.md."),
        ("count", "u64", "Events."),
    ),
    _table(
        "losses",
        "loss name",
        ("loss", "dict", "The name: docs/losses.md."),
        ("severity", "dict", "info, notice, data_loss, error."),
        ("origin", "dict", "recording or correlation."),
        ("count", "u64", "Losses."),
    ),
    _table(
        "discarded",
        "interval with discarded events",
        ("stream", "text", "The data stream (channel and CPU), or the reason."),
        ("begin_ns", "i64", "Begin."),
        ("end_ns", "i64", "End."),
        ("count", "u64", "Discarded events (or packets)."),
        ("packets", "bool", "Packets are counted, not events."),
    ),
)

BY_NAME = {t.name: t for t in TABLES}
