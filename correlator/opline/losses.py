# SPDX-License-Identifier: MIT
"""Every way in which something can be missing or not understood: one declared list, ``docs/losses.md`` is made of it.

``error``: results are not to be trusted. ``data_loss``: correct working that lost data all the same. ``notice``: worth knowing,
no result is wrong. ``info``: normal. Nothing here is ever skipped in silence.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from opline.values import Value

if TYPE_CHECKING:
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


class Gap(Value):
    """Something is missing in [from_ns, to_ns] of the trace's monotonic clock; None: from the begin, to the end."""

    loss: str  # its name
    why: str
    from_ns: int | None = None
    to_ns: int | None = None
    count: int = 1

    def plan(self) -> dict[str, Any]:
        """For the core: ops that overlap are tainted."""
        return {"why": self.why, "begin_ns": self.from_ns, "end_ns": self.to_ns}


_R, _C = Origin.RECORDING, Origin.CORRELATION
_INFO, _NOTICE, _LOST, _ERROR = Severity.INFO, Severity.NOTICE, Severity.DATA_LOSS, Severity.ERROR

LOSSES: tuple[Loss, ...] = (
    Loss("discarded_events", _LOST, _R, "The tracer's buffers were full. Record with larger or more sub-buffers; ops that overlap are tainted.", "the tracer's buffers were full"),
    Loss("discarded_packets", _LOST, _R, "Whole packets are missing: their numbers have gaps, or do not begin at 0 (overwrite mode, a snapshot, `lttng clear`, a rotated session's earlier chunks, a full disk). Ops that overlap are tainted.", "whole packets are missing"),
    Loss("discarded_unknown_count", _LOST, _R, "Intervals with discarded events whose number the trace does not say.", "intervals with discarded events, how many is not known"),
    Loss("collector_lost", _LOST, _R, "A collector's ring buffer was full: BPF's, or a thread's with the shim for Ceph (or its process was killed in the midst of a record). Record fewer events, or leave the collector more CPU time.", "a collector's ring buffer was full"),
    Loss("recording_cut_short", _LOST, _R, "Tracing ended before the command did (--size-limit, a disk that was nearly full): what came later is not in the trace. Ops that reach beyond are tainted.", "tracing ended before the command did"),
    Loss("recording_unfinished", _LOST, _R, "The recorder was killed, or is still recording: the trace's last seconds are doubtful, and ops there are tainted.", "the recorder was killed, or is still recording"),
    Loss("tracer_died", _LOST, _R, "The session daemon or the consumer daemon died while the command ran: ops from there on are tainted.", "a daemon of LTTng died"),
    Loss("writes_failed", _LOST, _R, "LTTng could not write some packets, for want of room on the disk most likely: ops from there on are tainted.", "LTTng could not write packets"),
    Loss("collector_died", _LOST, _R, "A collector (BPF's, or the shim's) ended while the command ran: its events are missing from there on, and ops there are tainted.", "a collector ended before the command did"),
    Loss("probes_refused", _LOST, _R, "A probe of the model was removed because its hits cost more than --probe-budget allows: from then on its event is missing, and ops there lack it. Leave it out of the model, or allow more.", "a probe was removed, as its hits cost too much"),
    Loss("streams_stuck", _LOST, _R, "LTTng did not hand over all that it had when the recording was stopped: a traced process was killed in the midst of an event, most likely. Ops from there on are tainted.", "LTTng did not hand over all that it had"),
    Loss("discarded_at_end", _LOST, _R, "Events that were discarded after a stream's last packet: the tracer's own count alone has them. Ops from there on are tainted. Record with larger or more sub-buffers.", "events were discarded after a stream's last packet"),
    Loss("truncated_packets", _LOST, _R, "A stream file ends inside a packet, or a packet's content inside an event. What comes before is read.", "a stream file ends inside a packet"),
    Loss("malformed_packets", _ERROR, _R, "A packet's header makes no sense: the rest of that file is not read. Copy the trace again.", "a packet's header makes no sense"),
    Loss("packets_missing", _LOST, _R, "Stream files that are shorter than LTTng's index says: they were cut off between two packets. Ops that reach beyond are tainted. Copy the trace again.", "stream files are shorter than their index says"),
    Loss("streams_missing", _LOST, _R, "Data streams whose file is gone or empty, though LTTng's index, other CPUs' streams or events say that it was there. All ops are tainted. Copy the trace again.", "stream files are gone or empty"),
    Loss("events_missing", _LOST, _R, "Steps that must have happened, as other events show, and that are not in the trace though no tracer counted a loss: a block request that completes and was never issued, is issued and never allocated, or never completes; a number that a collector gave to an event. Counted where it shows, which may be in several places for one event. Ops that overlap are tainted; of a completion whose request is known, those alone that wait for it. What was in flight when the trace began does not count. Record it again; if a copy was read, copy it again first.", "events that must have been there, as others show"),
    Loss("packets_doubled", _NOTICE, _R, "Packets that are there twice, in one file or two: each was read once."),
    Loss("damaged_streams", _LOST, _R, "Streams that can't be read to their end: what came before is used, ops that reach beyond are tainted.", "streams can't be read to their end"),
    Loss("packets_out_of_order", _NOTICE, _R, "A packet begins before the previous one of its stream ends."),
    Loss("unreadable_lines", _LOST, _R, "Lines of a text that name a block event and could not be read: the first of them are shown. Report them with the kernel's version.", "lines with a block event could not be read"),
    Loss("unknown_events", _ERROR, _R, "An event's id is not in the metadata: the rest of that packet is not read, and is an interval with discarded events whose number is not known.", "events whose id the metadata does not have"),
    Loss("events_out_of_order", _NOTICE, _C, "Events that came earlier than the one before them in the merged order; they were used all the same."),
    Loss("partition_violations", _ERROR, _C, "Stages that do not sum to the op's latency: a fault of opline. Please report it with the trace.", "stages do not sum to the op's latency"),
    Loss("points_missing", _NOTICE, _C, "Points that ops must have passed and whose events are missing: an op went from one point to another for which the model has no stage, and two stages of the model lead there over a third point; or it passed a point and not the one that the model says is passed with it, or that one less often. Two of its stages are one, with another name; its latency is right, unless the point ends ops. Copy the trace again, or record it again; where an op may go that way, declare a stage for it."),
    Loss("halves_missing", _NOTICE, _C, "Events of which the other half of their pair shows that they are missing: a system call that a thread entered and did not leave before it entered the next, or the other way round; the same of an interrupt on its CPU and of a call that the shim for Ceph sees; a thread that unplugged and had not plugged, or went on with what it held back and had not unplugged, or did without a plug what it had done with one 32 times in turn; a messenger of Ceph that received after it had sent, and had not waited in between; a point at a mark that its thread has not made since it woke (`stamp`). Of calls that the model knows their ops are incomplete or absent; of others nothing depends on it, but other events may be missing as well. Copy the trace again, or record it again."),
    Loss("states_missing", _NOTICE, _C, "Switches and wake-ups of threads that are not in the trace, as others show: a CPU's next switch begins with another thread, or only one of the two events of a wake-up is there. What these threads did meanwhile is not known. Normal where the trace follows some processes alone (`lttng track`)."),
    Loss("interval_violations", _ERROR, _C, "Steps of a request or a bio that came before the step that they follow: left out, so that no interval is negative. Events out of order or lost, else a fault of opline.", "steps of requests came before the ones that they follow"),
    Loss("incomplete_ops", _NOTICE, _C, "Ops without an end: still running when tracing stopped, or their end was lost. Left out of statistics."),
    Loss("tainted_ops", _NOTICE, _C, "Ops that overlap an interval in which events were lost. Left out of statistics unless asked for."),
    Loss("late_transitions", _INFO, _C, "Points that came after their op's end: shown, outside its latency."),
    Loss("key_conflicts", _NOTICE, _C, "Events whose keys named different ops; the first key decided. Look at the model's keys."),
    Loss("ends_without_op", _NOTICE, _C, "End points of no op: it began before the trace, or its begin was lost."),
    Loss("evicted_ops", _LOST, _C, "Ops given up because too many were open at once (16 million).", "too many ops were open at once"),
    Loss("ambiguous_halves", _NOTICE, _C, "Halves of ops that were left alone: ops of several processes waited under the same name, and nothing said whose it is."),
    Loss("order_mismatches", _NOTICE, _C, "Halves of ops that were put together by order and parted again, by time or by a key: calls that are not traced, most likely."),
    Loss("batches_unseen", _NOTICE, _C, "Ops that went on without a batch that reaches what they need (`needs`): its events are missing, so what they waited for is not known."),
    Loss("batch_counts_differ", _NOTICE, _C, "Batches of which other ops were found than the application says: members that were not traced, or began before the trace."),
    Loss("evicted_facts", _LOST, _C, "Facts (what a descriptor stands for) given up because there were too many: ops that need them are found by another key or not at all.", "too many facts were known at once"),
    Loss("evicted_page_owners", _LOST, _C, "Dirty pages whose last writer was forgotten because there were too many (4 GiB): their write-back is nobody's.", "too many pages were dirty at once"),
    Loss("evicted_unsynced_writes", _NOTICE, _C, "Writes that no sync had covered, forgotten because there were too many: syncs count fewer members."),
    Loss("batches_left_open", _NOTICE, _C, "Batches whose close was never seen."),
    Loss("reaps_unseen", _NOTICE, _C, "Asynchronous I/Os whose completion no call in the trace takes (io_getevents): these ops end at their completion, not where the application learned of it."),
    Loss("orphan_no_op_for_key", _NOTICE, _C, "Points whose key belongs to no op: it began before the trace, its begin was lost, or the model lacks a key. So are points whose event names no op at all and goes to the one that waits (`sole`: a completion's callback of librados' C++ interface), where several waited or none: their ops lack that point, and nothing else."),
    Loss("orphan_no_key_no_thread", _NOTICE, _C, "Points without a key on a thread that worked for no op. Normal for work that is no client's."),
    Loss("orphan_op_settled", _NOTICE, _C, "Points of an op that ended too long ago to be found. Raise the model's linger_ns."),
    Loss("orphan_no_request", _NOTICE, _C, "Block events of no known request or bio: it began before the trace, or events were lost."),
    Loss("orphan_malformed", _ERROR, _C, "Events that lack a field which the model or the block model needs. See `opline model lint MODEL TRACE`.", "events lack a field that is needed"),
    Loss("unmatched_getrq", _NOTICE, _C, "Requests allocated for a bio that was never seen queued."),
    Loss("unmatched_merge", _NOTICE, _C, "Merges into a request that is not known."),
    Loss("unmatched_issue", _NOTICE, _C, "Requests issued that were never seen allocated: made before the trace began."),
    Loss("unmatched_complete", _NOTICE, _C, "Completions without their issue: issued before the trace began, or the issue was lost."),
    Loss("unmatched_requeue", _NOTICE, _C, "Requeues of a request that is not known."),
    Loss("second_completions", _INFO, _C, "FUA and PREFLUSH writes complete twice: the second, of 0 sectors, is no request of its own."),
    Loss("requests_incomplete", _NOTICE, _C, "Requests that had not completed when the trace ended."),
    Loss("pointer_reuse", _NOTICE, _C, "Requests whose completion was not seen; closed when the kernel used their address again."),
    Loss("evicted_block_state", _LOST, _C, "Open bios or requests given up because there were too many.", "too many bios or requests were open at once"),
    Loss("requests_failed", _NOTICE, _C, "Block requests that ended with an error. They are counted as the others are, with their time and their bytes; `opline requests` marks them."),
    Loss("ops_failed", _INFO, _C, "Ops whose call returned an error. They are counted as the others are, without bytes."),
    Loss("inserts_missing", _NOTICE, _C, "Requests that were issued without an insert, where nearly all of the device had one: it has a scheduler, and their inserts are missing. How long they waited in its queue is not known."),
    Loss("splits_missing", _NOTICE, _C, "Bios of which a request took the first part, where those of the device before them were split by an event: their splits are missing. When the rest was queued is not known."),
    Loss("bio_ends_missing", _NOTICE, _C, "Bios of devices that pass them on (device-mapper, md) of which all that came of them was done, and whose own ends are missing. Their requests are not concerned."),
    Loss("unmatched_insert", _NOTICE, _C, "Requests first seen at their insert: they began before the trace, or events are lost."),
    Loss("unmatched_split", _NOTICE, _C, "Splits of a bio that is not known."),
    Loss("unmatched_bio_complete", _NOTICE, _C, "Completions of a bio-based device's bio that is not known."),
    Loss("unmatched_rq_bio", _NOTICE, _C, "Further bios of an issued request, where one of the two is not known."),
    Loss("bios_lost", _NOTICE, _C, "Bios that reached no request before their thread or pointer was seen with another."),
    Loss("requests_given_up", _NOTICE, _C, "Requests whose completion must be lost: so many later ones of the device have completed, or its CPU has issued the next flush."),
    Loss("links_refused", _LOST, _C, "Links that can't be: the request came, or was still going on, after the op had ended. A step of a bio or a request is lost; nothing is linked.", "links of ops and requests that can't be"),
    Loss("bios_elsewhere", _NOTICE, _C, "Bios outside the bytes that the op of their thread is known to read or write: the kernel wrote what another op had left dirty, or the thread's next events are lost. They are not that op's."),
    Loss("devices_incomplete", _LOST, _R, "Devices of which many completions are not in the trace: how many requests were in flight is not known, and not said. perf records a completion where it interrupts a recorded process: record with `perf record -a`.", "devices of which many completions are missing"),
    Loss("request_size_differs", _NOTICE, _C, "Requests issued with another length than their bios have: a merge was not seen."),
)  # fmt: skip

# Why no block request is linked to an op: the words of the column ops.no_request (the core decides, link/reasons.cpp).
NO_REQUEST: dict[str, str] = {
    "no_block_events": "The trace has no block events.",
    "lost_events": "Events were discarded while the op ran: those of its requests may be among them.",
    "failed": "Its call returned an error, and nothing was queued for it.",
    "written_back_later": "A buffered write: its pages were dirty when the op was settled, or reached the disk outside its latency. `deferred` has what the trace shows of it.",
    "not_completed": "Bios were queued for it, and none of their requests had completed when the op was settled.",
    "no_requests_made": "Its bios were done and became no block request: their device makes none (zram, a RAM disk: what it took is in the stage around it), or the block layer refused them.",
    "superseded": "It has no end (its key was given to another op), and nothing was queued for it.",
    "trace_ended": "It was still running when the trace ended, and nothing was queued for it.",
    "synced_by_another": "A sync of another op covered its write: which of that sync's requests carry its data can't be told.",
    "nothing_to_sync": "Its sync found nothing to write, and nothing on its way.",
    "no_io_seen": "It passed none of the model's points with `io`: what did its I/O was not traced (Ceph's OSD without tracepoints and without --probes), or there was nothing to do.",
    "cached": "A read for which nothing was queued: its data was in memory, or its descriptor is no file.",
    "no_length": "A write whose length the model does not name, and nothing was queued for it.",
    "not_an_io": "It has no bytes and no sync, as far as the model says, and nothing was queued for it.",
    "nothing_queued": "Nothing was queued for it: of an op on a raw device its bios are not in the trace; of others the model does not say whether they read or write.",
    "not_a_file": "A write to what has no place on a disk: a pipe, a socket, a terminal.",
    "no_extent_map": "A write for which nothing was queued while it ran (buffered, or direct and its bios are not known by its thread), and no map says where these bytes of its file lie: what reaches the disk for it can't be joined. See --extents.",
    "no_offset": "A buffered write whose offset the model does not name, or the trace does not have (LTTng does not say where a file is that write(2) writes; the BPF collector does): the maps are of no use.",
    "no_io_points": "A write without a request, and the model has no points with `io`: whether it was direct or waited in the page cache, and when its bytes got there, is not known. A direct write's bios are in the trace if its device was recorded, and were not found by thread or place.",
    "page_owner_evicted": "A buffered write whose pages may have been forgotten: see evicted_page_owners.",
    "overwritten": "A buffered write whose pages later ops wrote anew before they reached the disk: they have the cost.",
}  # fmt: skip

BY_NAME = {loss.name: loss for loss in LOSSES}


def from_core(summary: dict[str, dict[str, int]], read_losses: dict[str, int]) -> dict[str, int]:
    """The counts per loss name, from the core's summary and the reader's. Every name is in ``BY_NAME``."""
    counts = dict(summary["losses"])
    for fate, count in summary["orphans"].items():
        counts[fate.replace(":", "_", 1)] = count
    for name, count in read_losses.items():
        counts[name] = counts.get(name, 0) + count
    unknown = sorted(set(counts) - set(BY_NAME))
    if unknown:
        raise ValueError(f"losses that are not declared: {', '.join(unknown)}")
    return counts
