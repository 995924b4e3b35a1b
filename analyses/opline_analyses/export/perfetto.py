# SPDX-License-Identifier: MIT
"""Perfetto's protobuf trace (TrackEvent): a track per thread with the stages as slices, a flow per op, a track per
device with its block requests, counters of what is in flight. https://ui.perfetto.dev opens it.

Slices of one track must nest. Ops overlap on a thread (they wait in its queue together), so a thread has as many tracks
of one name as it needs, side by side, which the viewer shows as one; so has a device. Times are the run's clock.
Written with the classes of the package `perfetto`; docs/synthetic-track-event of Perfetto says what a reader expects.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from opline.talk import shown
from opline_analyses.base.text import device_name
from opline_analyses.ops.oplist import OpDetail, Request, read_ops
from opline_analyses.ops.rows import names_of_threads
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

SEQUENCE = 1


@dataclass(slots=True)
class Slice:
    """What is drawn: a name from begin to end, with what lies in it."""

    begin_ns: int
    end_ns: int
    name: str
    flows: list[int]
    notes: dict[str, str | int] = field(default_factory=dict)
    inside: list[Slice] = field(default_factory=list)


class _Writer:
    """Packets, a track at a time."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._tracks = 0
        self._first = True

    def _packet(self, packet: Any) -> None:
        packet.trusted_packet_sequence_id = SEQUENCE
        if self._first:
            packet.sequence_flags = pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
            self._first = False
        self._out.write(pb.Trace(packet=[packet]).SerializeToString())  # traces follow each other: packets add up

    def track(self, name: str, parent: int | None = None, counter: bool = False) -> int:
        """A new track; gives its id."""
        self._tracks += 1
        packet = pb.TracePacket()
        packet.track_descriptor.uuid = self._tracks
        packet.track_descriptor.name = shown(name)
        if parent is not None:
            packet.track_descriptor.parent_uuid = parent
        if counter:
            packet.track_descriptor.counter.SetInParent()
        self._packet(packet)
        return self._tracks

    def _event(self, track: int, at_ns: int, kind: int) -> Any:
        packet = pb.TracePacket()
        packet.timestamp = at_ns
        packet.track_event.track_uuid = track
        packet.track_event.type = kind
        return packet

    def slice(self, track: int, one: Slice) -> None:
        """A slice with what lies in it."""
        packet = self._event(track, one.begin_ns, pb.TrackEvent.TYPE_SLICE_BEGIN)
        packet.track_event.name = shown(one.name)
        packet.track_event.flow_ids.extend(one.flows)
        for key, value in one.notes.items():
            note = packet.track_event.debug_annotations.add()
            note.name = key
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = shown(value)
        self._packet(packet)
        for part in one.inside:
            self.slice(track, part)
        self._packet(self._event(track, one.end_ns, pb.TrackEvent.TYPE_SLICE_END))

    def counter(self, track: int, at_ns: int, value: int) -> None:
        """A counter's new value."""
        packet = self._event(track, at_ns, pb.TrackEvent.TYPE_COUNTER)
        packet.track_event.counter_value = value
        self._packet(packet)

    def lanes(self, name: str, parent: int, slices: list[Slice]) -> None:
        """Slices that may overlap, on as few tracks of one name as there are at a time."""
        free: list[tuple[int, int]] = []  # (end of its last slice, track)
        for one in sorted(slices, key=lambda s: (s.begin_ns, s.end_ns)):
            track = heapq.heappop(free)[1] if free and free[0][0] <= one.begin_ns else self.track(name, parent)
            self.slice(track, one)
            heapq.heappush(free, (one.end_ns, track))


def _request(op: OpDetail, request: Request, flows: list[int]) -> Slice | None:
    seen = request.steps()
    if not seen:
        return None
    parts = [Slice(begin, end, f"{a}2{b}", []) for (a, begin), (b, end) in itertools.pairwise(seen) if end >= begin]
    notes: dict[str, str | int] = {"op_id": op.op_id, "request_id": request.request_id}
    if request.sector is not None:
        notes["sector"] = request.sector
    if request.nr_sectors is not None:
        notes["bytes"] = request.nr_sectors * 512
    return Slice(seen[0][1], seen[-1][1], request.rwbs or "request", flows, notes, parts)


def _in_flight(writer: _Writer, name: str, parent: int | None, spans: list[tuple[int, int]]) -> None:
    track = writer.track(name, parent, counter=True)
    changes: dict[int, int] = {}
    for begin, end in spans:
        changes[begin] = changes.get(begin, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    now = 0
    for at in sorted(changes):
        now += changes[at]
        writer.counter(track, at, now)


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the complete ops among the selected; gives their number. Holds all of them in memory."""
    names = run.device_names()
    by_thread: dict[tuple[int | None, str], list[Slice]] = {}
    by_device: dict[int, dict[int, Slice]] = {}
    depth: dict[int, dict[int, tuple[int, int]]] = {}
    spans: list[tuple[int, int]] = []
    complete = which.also("o.complete")
    tids = run.rows(
        f"""SELECT DISTINCT tid FROM stages
            WHERE tid IS NOT NULL AND op_id IN (SELECT op_id FROM ({complete.sql()})) ORDER BY tid""",
        complete.parameters,
    )
    labels = names_of_threads(run, [tid for (tid,) in tids])
    for op in read_ops(run, complete):
        assert op.end_ns is not None
        spans.append((op.begin_ns, op.end_ns))
        flow = [op.op_id + 1]  # 0 is no flow
        for n, stage in enumerate(op.stages):
            label = labels[stage.tid] if stage.tid is not None else "completions"
            notes: dict[str, str | int] = {"op_id": op.op_id, "kind": stage.kind}
            if n == 0:
                notes |= {"class": op.op_class or "?", "object": op.object or "?"}
            one = Slice(stage.begin_ns, stage.begin_ns + stage.duration_ns, stage.stage, flow, notes)
            by_thread.setdefault((op.pid if stage.tid is not None else None, label), []).append(one)
        for request in op.requests:
            known = by_device.setdefault(request.dev, {})
            if request.request_id in known:
                known[request.request_id].flows.append(op.op_id + 1)
            elif (made := _request(op, request, list(flow))) is not None:
                known[request.request_id] = made
            if request.issue_ns is not None and request.complete_ns is not None:
                depth.setdefault(request.dev, {})[request.request_id] = (request.issue_ns, request.complete_ns)
    writer = _Writer(out)
    _in_flight(writer, "ops in flight", None, spans)
    processes: dict[int | None, int] = {}
    for (pid, label), slices in sorted(by_thread.items(), key=lambda item: (item[0][0] or 0, item[0][1])):
        if pid not in processes:
            processes[pid] = writer.track(f"process {pid}" if pid is not None else "block layer")
        writer.lanes(label, processes[pid], slices)
    for dev, requests in sorted(by_device.items()):
        name = device_name(names, dev)
        group = writer.track(f"device {name}")
        _in_flight(writer, f"{name} in flight (of these ops)", group, list(depth.get(dev, {}).values()))
        writer.lanes(f"{name} requests", group, list(requests.values()))
    return len(spans)
