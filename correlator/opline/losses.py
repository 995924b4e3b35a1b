# SPDX-License-Identifier: MIT
"""All kinds of losses, declared once; ``docs/losses.md`` is generated from this list.

``error``: a result is wrong. ``data_loss``: data is lost, and ops that overlap are doubtful. ``notice``: no result is
wrong. ``info``: normal.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Severity(Enum):
    """How bad."""

    INFO = "info"
    NOTICE = "notice"
    DATA_LOSS = "data_loss"
    ERROR = "error"


class Origin(Enum):
    """Who lost it: the recording, or the correlation."""

    RECORDING = "recording"
    CORRELATION = "correlation"


class Loss(Value):
    """One loss. ``advice``: what it means and what to do, in one or two sentences; ``words``: in a few words what it is,
    of those that make results doubtful.
    """

    name: str
    severity: Severity
    origin: Origin
    advice: str
    words: str = ""


#: Gaps that are no interval of the trace: they count as losses, and no op is doubtful.
UNPLACED = ("not_recorded", "events_unaccounted", "events_of_others", "maps_missing", "hosts_missing")


class Gap(Value):
    """Something is missing in [from_ns, to_ns] of the trace's monotonic clock; None: from the begin, to the end."""

    loss: str  # its name
    why: str
    from_ns: int | None = None
    to_ns: int | None = None
    count: int = 1

    @property
    def taints(self) -> bool:
        """Does the gap make ops doubtful? Not where events of a kind are absent altogether, or nobody knows where."""
        return self.loss not in UNPLACED

    def plan(self) -> dict[str, Any]:
        """For the core: ops that overlap are tainted."""
        return {"why": self.why, "begin_ns": self.from_ns, "end_ns": self.to_ns}


_R, _C = Origin.RECORDING, Origin.CORRELATION
_INFO, _NOTICE, _LOST, _ERROR = Severity.INFO, Severity.NOTICE, Severity.DATA_LOSS, Severity.ERROR

LOSSES: tuple[Loss, ...] = (
    Loss("discarded_events", _LOST, _R, "The tracer's buffers were full. Ops that overlap are tainted. Use larger or more sub-buffers (--subbuf-size, --subbufs).", "the tracer's buffers were full"),
    Loss("discarded_packets", _LOST, _R, "Packets are missing: their numbers have gaps. Ops that overlap are tainted. Usual causes: overwrite mode, a snapshot, `lttng clear`, missing chunks, a full disk.", "whole packets are missing"),
    Loss("discarded_unknown_count", _LOST, _R, "Events were discarded, and no count is known. Ops that overlap are tainted.", "intervals with an unknown number of discarded events"),
    Loss("collector_lost", _LOST, _R, "A collector's ring buffer was full, or a process with a shim was killed inside a record. Record fewer events, or give the collector more CPU time.", "a collector's ring buffer was full"),
    Loss("recording_cut_short", _LOST, _R, "Tracing ended before the command did, at --size-limit or on a nearly full disk. Later ops are tainted. Allow a larger trace, or free disk space.", "tracing ended before the command did"),
    Loss("chunks_removed", _NOTICE, _R, "`opline record --keep` removed older chunks while it recorded. Ops that began before the first kept chunk do not count."),
    Loss("recording_unfinished", _LOST, _R, "The recorder was killed, or is still recording. Ops in the trace's last seconds are tainted.", "the recorder was killed, or is still recording"),
    Loss("tracer_died", _LOST, _R, "A daemon of LTTng died while the command ran. Later ops are tainted. Record again.", "a daemon of LTTng died"),
    Loss("writes_failed", _LOST, _R, "LTTng could not write some packets, most likely because the disk was full. Later ops are tainted. Free disk space and record again.", "LTTng could not write packets"),
    Loss("collector_died", _LOST, _R, "A collector (BPF's or the shim's) ended before the command did. Later ops are tainted. Record again.", "a collector ended before the command did"),
    Loss("not_recorded", _LOST, _R, "opline could not record one kind of events; recording.json has the reason. Other figures are right. See `opline doctor`, or leave the kind out (--no-block).", "a kind of events could not be recorded"),
    Loss("events_unaccounted", _LOST, _R, "Events of a collector are neither in the trace nor counted as discarded. Copy the trace again, or record again.", "events that a collector passed on are not in the trace"),
    Loss("events_of_others", _ERROR, _R, "Two recorders used the system's session daemon: each event is in the trace twice, and no figure is right. Record with --sessiond private, or one at a time.", "another recorder's events are in the trace"),
    Loss("maps_missing", _LOST, _R, "The watcher of opened files ended before the command did. Write-back has no op; reads and direct I/O have one. Record again.", "maps of files are missing"),
    Loss("probes_refused", _LOST, _R, "A probe was removed because it cost more than --probe-budget. Later ops are tainted. Remove the probe from the model, or allow more.", "a probe was removed because of its cost"),
    Loss("streams_stuck", _LOST, _R, "LTTng did not deliver all events, most likely because a traced process was killed inside an event. Later ops are tainted.", "LTTng did not deliver all events"),
    Loss("clock_stepped", _LOST, _R, "The clock of a host was set, or the host stood still. The clock has no bound there; ops that overlap are tainted.", "a host's clock was set"),
    Loss("hosts_missing", _LOST, _R, "A host's recording is missing or cannot be read, or no messages align its clock. Waits for this host are `unknown`. Join again with its recording.", "a host of the cluster is not in the figures"),
    Loss("discarded_at_end", _LOST, _R, "Events were discarded after a stream's last packet. Later ops are tainted. Use larger or more sub-buffers.", "events were discarded after a stream's last packet"),
    Loss("truncated_packets", _LOST, _R, "A stream file ends inside a packet, or a packet inside an event. Copy the trace again.", "a stream file ends inside a packet"),
    Loss("malformed_packets", _ERROR, _R, "A packet's header is malformed; the rest of its file is not read. Copy the trace again.", "a packet's header is malformed"),
    Loss("packets_missing", _LOST, _R, "Stream files are shorter than LTTng's index says. Later ops are tainted. Copy the trace again.", "stream files are shorter than their index says"),
    Loss("streams_missing", _LOST, _R, "Stream files are gone or empty, according to LTTng's index, other CPUs' streams or events. All ops are tainted. Copy the trace again.", "stream files are gone or empty"),
    Loss("events_missing", _LOST, _R, "Events are missing: later events prove it, as a completion without its issue. Ops that overlap are tainted; if the completion of a known request is missing, the ops that wait for it. One event may count several times. Copy the trace again, or record again.", "events are missing: later events prove that they happened"),
    Loss("completions_unseen", _NOTICE, _R, "The kernel ran no BPF program for these completions, at most 0.1 % of all. Their requests have no C and no D2C. An op keeps its latency, but the part after D is unknown. Nothing to do: some kernels run no BPF program while a thread of process 1 is interrupted."),
    Loss("completions_missing", _LOST, _R, "The kernel ran no BPF program for more than 0.1 % of the completions. Latencies of ops count; figures of devices are doubtful: compare them with /sys/block/DEVICE/stat in `opline losses`, or record with lttng-modules.", "more than 0.1 % of the completions were not seen"),
    Loss("packets_doubled", _NOTICE, _R, "Packets are in the trace twice, in one file or two. opline read each packet once."),
    Loss("damaged_streams", _LOST, _R, "opline cannot read some streams to their end. Later ops are tainted. Copy the trace again.", "streams cannot be read to their end"),
    Loss("packets_out_of_order", _NOTICE, _R, "A packet begins before the previous packet of its stream ends."),
    Loss("unreadable_lines", _LOST, _R, "opline could not read lines of a text with a block event. Report them with the kernel's version.", "lines with a block event could not be read"),
    Loss("unknown_events", _ERROR, _R, "A packet's bytes are damaged: an event's id is unknown, or its time is outside of the packet. opline skips the rest; ops that overlap the packet are tainted.", "bytes within a packet are damaged"),
    Loss("events_out_of_order", _NOTICE, _C, "Events came earlier than their predecessor in the merged order. opline used them."),
    Loss("partition_violations", _ERROR, _C, "Stages do not sum to the op's latency: a fault of opline. Report it with the trace.", "stages do not sum to the op's latency"),
    Loss("threads_unknown", _NOTICE, _C, "Threads in a PID namespace (a container), without their numbers in the root namespace. opline cannot link their block requests to ops by thread; `pid` and `tid` are the namespace's. Start the recording before these processes begin."),
    Loss("states_missing", _NOTICE, _C, "Switches or wake-ups of threads are missing, so the states of these threads are unknown there. Normal if the trace follows only some processes (`lttng track`)."),
    Loss("interval_violations", _ERROR, _C, "Steps of a request or bio that came too early are left out. Cause: lost or unordered events, or a fault of opline.", "steps of requests are out of order"),
    Loss("incomplete_ops", _NOTICE, _C, "Ops without an end: still running at the end of the trace, or with a lost end. Statistics leave them out."),
    Loss("tainted_ops", _NOTICE, _C, "Ops that overlap an interval with lost events, and are incomplete or can have lost their begin or end. Statistics leave out tainted ops; --tainted includes them."),
    Loss("unsplit_ops", _NOTICE, _C, "Ops with both ends and with lost events inside. The latency is exact and counts; the stages with the loss are one stage `unknown (events lost)`."),
    Loss("late_transitions", _INFO, _C, "Points after the end of their op: shown, outside of the latency."),
    Loss("key_conflicts", _NOTICE, _C, "The keys of an event name different ops; the first key decided. Check the model's keys."),
    Loss("ends_without_op", _NOTICE, _C, "End points without an op: the op began before the trace, or its begin is lost."),
    Loss("evicted_ops", _LOST, _C, "Over 16 million ops were open at once; opline gave some up.", "too many ops were open at once"),
    Loss("ambiguous_halves", _NOTICE, _C, "Halves of ops without a partner: ops of several processes waited under the same key."),
    Loss("order_mismatches", _NOTICE, _C, "Halves of ops that order had paired, and that time or a key has parted again. Most likely cause: untraced calls."),
    Loss("batches_unseen", _NOTICE, _C, "Ops that went on without a batch that reaches what they need (`needs`). The batch's events are missing, so the reason of the wait is unknown."),
    Loss("batch_counts_differ", _NOTICE, _C, "Batches with another number of ops than the application says: untraced members, or members from before the trace."),
    Loss("evicted_facts", _LOST, _C, "Too many facts (meanings of descriptors): ops are found by another key or not at all.", "too many facts were known at once"),
    Loss("evicted_page_owners", _LOST, _C, "Over 4 GiB of dirty pages: the write-back of some has no op.", "too many pages were dirty at once"),
    Loss("evicted_unsynced_writes", _NOTICE, _C, "opline forgot writes without a sync because there were too many. Syncs count fewer members."),
    Loss("batches_left_open", _NOTICE, _C, "Batches without a close event."),
    Loss("reaps_unseen", _NOTICE, _C, "No call in the trace takes the completion of these asynchronous I/Os (io_getevents). Their ops end at the completion, not when the application learned of it."),
    Loss("ends_untold", _NOTICE, _C, "I/Os of io_uring that have no latency: another thread queued their data, or it was in memory, and this tracer does not record io_uring's completions. Such a thread's block I/O is an op of the class `bio`. Record through BPF (Linux 6.0 or later) for the latency."),
    Loss("orphan_no_op_for_key", _NOTICE, _C, "Points whose key names no op: the op began before the trace, its begin is lost, or the model lacks a key. Also points with `sole` while no op or several ops waited. The ops lack only this point."),
    Loss("orphan_no_key_no_thread", _NOTICE, _C, "Points without a key, on a thread without an op. Normal for background work."),
    Loss("orphan_op_settled", _NOTICE, _C, "Points of an op that ended too long ago. Raise the model's linger_ns."),
    Loss("orphan_no_request", _NOTICE, _C, "Block events of an unknown request or bio: from before the trace, or after lost events."),
    Loss("orphan_malformed", _ERROR, _C, "Events lack a field that the model needs. `opline model lint` with the model and the trace names them.", "events lack a field that opline needs"),
    Loss("unmatched_getrq", _NOTICE, _C, "Requests allocated for a bio without a queue event."),
    Loss("unmatched_merge", _NOTICE, _C, "Merges into an unknown request."),
    Loss("unmatched_issue", _NOTICE, _C, "Issued requests without an allocation: allocated before the trace began."),
    Loss("unmatched_complete", _NOTICE, _C, "Completions without an issue: issued before the trace began, or the issue is lost."),
    Loss("unmatched_requeue", _NOTICE, _C, "Requeues of an unknown request."),
    Loss("second_completions", _INFO, _C, "FUA and PREFLUSH writes complete twice: the second completion, with 0 sectors, is no request."),
    Loss("requests_incomplete", _NOTICE, _C, "Requests in flight at the end of the trace."),
    Loss("pointer_reuse", _NOTICE, _C, "Requests without a completion; closed when the kernel used their address again."),
    Loss("evicted_block_state", _LOST, _C, "Too many bios or requests were open; opline gave some up.", "too many bios or requests were open at once"),
    Loss("requests_failed", _NOTICE, _C, "Block requests with an error. Time and bytes count; `opline requests` marks the requests."),
    Loss("ops_failed", _INFO, _C, "The call of these ops returned an error. The ops count, without bytes."),
    Loss("unmatched_insert", _NOTICE, _C, "Requests without an event before their insert: from before the trace, or after lost events."),
    Loss("unmatched_split", _NOTICE, _C, "Splits of an unknown bio."),
    Loss("unmatched_bio_complete", _NOTICE, _C, "Completions of an unknown bio of a bio-based device."),
    Loss("unmatched_rq_bio", _NOTICE, _C, "Further bios of an issued request, with an unknown bio or request."),
    Loss("bios_lost", _NOTICE, _C, "Bios that reached no request before their thread or pointer had another bio."),
    Loss("requests_given_up", _NOTICE, _C, "Requests with a lost completion: many later requests of the device are complete, or the CPU has issued its next flush."),
    Loss("links_refused", _LOST, _C, "The request came, or was in flight, after the op's end: a step is lost, and opline makes no link.", "impossible links of ops and requests"),
    Loss("bios_elsewhere", _NOTICE, _C, "Bios outside the bytes that their thread's op reads or writes: other ops' dirty data, or after lost events. opline does not link them to this op."),
    Loss("bios_of_other_processes", _NOTICE, _C, "Bios that only a thread number or a sector would link to an op of another process. opline does not link them. Usual cause: a program in a PID namespace (a container), with the namespace's numbers in its tracepoints."),
    Loss("process_violations", _ERROR, _C, "Links between an op and another process's bio: a fault of opline. Report it with the trace.", "links to another process: a fault of opline"),
    Loss("devices_incomplete", _LOST, _R, "Many completions of these devices are missing: the number in flight is unknown. Record with `perf record -a`; else perf has only completions that interrupt a recorded process.", "devices without many of their completions"),
    Loss("queues_assumed", _INFO, _C, "The recording and the events do not name the hardware queues of these devices with flushes. opline assumes one queue until flushes show several. An `opline record` of this version names them."),
    Loss("request_size_differs", _NOTICE, _C, "Requests issued with another length than their bios have: a merge is missing."),
)  # fmt: skip

# Why no block request is linked to an op: the words of the column ops.no_request (the core decides, link/no_request.cpp).
NO_REQUEST: dict[str, str] = {
    "no_block_events": "The trace has no block events.",
    "lost_events": "Events were lost while the op ran, perhaps those of its requests.",
    "failed": "The op's call returned an error, and queued nothing.",
    "written_back_later": "A buffered write; its pages reach the disk outside its latency: table `deferred`.",
    "not_completed": "The op queued bios, and no request of them was complete when opline closed the op.",
    "no_requests_made": "The device makes no requests of bios (zram, a RAM disk), or the block layer refused them.",
    "superseded": "The op's key went to another op before its end, and it queued nothing.",
    "end_untold": "An I/O of io_uring that another thread queued; the trace does not tell which, nor when.",
    "trace_ended": "The trace ended before the op, which had queued nothing.",
    "synced_by_another": "Another op's sync covered the write; which of its requests carried the data is unknown.",
    "thread_unknown": "The op's thread is in a PID namespace (a container), and the trace lacks its number in the root namespace.",
    "nothing_to_sync": "The sync found no dirty data, and none in flight.",
    "another_process": "The program runs in a PID namespace (a container); another process's thread of the same number queued bios.",
    "no_io_seen": "The op passed no point with `io`: the program that does the I/O was not traced (--probes), or there was nothing to do.",
    "cached": "The read's data was in memory, or its descriptor is no file.",
    "no_length": "A write without a length in the model queued nothing.",
    "not_an_io": "The model gives the op no bytes and no sync, and it queued nothing.",
    "nothing_queued": "The op queued nothing: a raw device's bios are not in the trace, or the model does not say if the op reads or writes.",
    "not_a_file": "A write to a pipe, a socket or a terminal.",
    "no_extent_map": "A buffered write; no map has these bytes of its file (--extents).",
    "no_offset": "A buffered write without an offset in the model or the trace. For write(2) opline's BPF collector has the file position, LTTng has not.",
    "no_io_points": "A write, and the model has no points with `io`: it was buffered, its device was not recorded, or its bios were not found.",
    "page_owner_evicted": "A buffered write whose pages opline may have forgotten: evicted_page_owners.",
    "overwritten": "A buffered write; later ops wrote its pages again before they reached the disk.",
}  # fmt: skip

BY_NAME = {loss.name: loss for loss in LOSSES}


#: Completions that no BPF program saw are no loss of data unless they are more than this share (1 / _UNSEEN_OF) of all.
_UNSEEN_OF = 1000


def too_many_unseen(recording: Mapping[str, Any] | None) -> bool | None:
    """Were more than 0.1 % of the completions not seen, as the recording's collector counted them? None: it did not."""
    counted = ((recording or {}).get("collector") or {}).get("requests") or {}
    unseen, seen = counted.get("unseen"), counted.get("records")
    return None if unseen is None or seen is None else unseen * _UNSEEN_OF > seen + unseen


def from_core(
    summary: dict[str, dict[str, int]], read_losses: dict[str, int], recording: Mapping[str, Any] | None = None
) -> dict[str, int]:
    """The counts per loss name, from the core's summary and the reader's. Every name is in ``BY_NAME``. A recorder that
    has judged the completions (its exit status) is not contradicted.
    """
    counts = dict(summary["losses"])
    if (too_many := too_many_unseen(recording)) is not None:
        names = ("completions_unseen", "completions_missing")
        whole = sum(counts.get(name, 0) for name in names)
        counts |= dict(zip(names, (0, whole) if too_many else (whole, 0), strict=True))
    for fate, count in summary["orphans"].items():
        counts[fate.replace(":", "_", 1)] = count
    for name, count in read_losses.items():
        counts[name] = counts.get(name, 0) + count
    unknown = sorted(set(counts) - set(BY_NAME))
    if unknown:
        raise ValueError(f"losses that are not declared: {', '.join(unknown)}")
    return counts
