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
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from opline.talk import shown
from opline_analyses.base.colours import STATES
from opline_analyses.base.text import device_name
from opline_analyses.ops.oplist import InState, OpDetail, Request, read_chunks
from opline_analyses.ops.thread_names import names_of_threads
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

SEQUENCE = 1
STATE = "state"  # the category of what a thread did
_BATCH = 4096  # packets that are written at once

Notes = dict[str, str | int]
#: What may overlap others on its track: begin and end in ns, its number (of two at one time the first is first), and
#: what is drawn there. Tuples: a run has millions.
Drawn = tuple[int, int, int, Any]
Row = tuple[str, int | None, str]  # host, process and thread


@dataclass(slots=True)
class Slice:
    """A block request: a name from begin to end, with the steps that lie in it."""

    begin_ns: int
    end_ns: int
    name: str
    flows: list[int]
    notes: Notes
    steps: list[tuple[str, int]]


class _Writer:
    """Packets, a track at a time."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._tracks = 0
        self._batch = pb.Trace()
        self._held = 0
        self._shown: dict[str, str] = {}
        self._lanes: dict[tuple[int, str], list[tuple[int, int]]] = {}  # of each: (end of its last slice, track)
        self._begins = True

    def _packet(self) -> Any:
        """A new packet, to be filled."""
        if self._held == _BATCH:
            self.flush()
        self._held += 1
        packet = self._batch.packet.add(trusted_packet_sequence_id=SEQUENCE)
        if self._begins:
            packet.sequence_flags = pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
            self._begins = False
        return packet

    def flush(self) -> None:
        """Writes what is held: traces follow each other, packets add up."""
        self._out.write(self._batch.SerializeToString())
        self._batch, self._held = pb.Trace(), 0

    def _text(self, text: str) -> str:
        if text not in self._shown:
            self._shown[text] = shown(text)
        return self._shown[text]

    def track(self, name: str, parent: int | None = None, counter: bool = False) -> int:
        """A new track; gives its id."""
        self._tracks += 1
        described = self._packet().track_descriptor
        described.uuid = self._tracks
        described.name = shown(name)
        if parent is not None:
            described.parent_uuid = parent
        if counter:
            described.counter.SetInParent()
        return self._tracks

    def _event(self, track: int, at_ns: int, kind: int) -> Any:
        packet = self._packet()
        packet.timestamp = at_ns
        event = packet.track_event
        event.track_uuid = track
        event.type = kind
        return event

    def begin(
        self, track: int, at_ns: int, name: str, flows: Sequence[int] = (), notes: Notes | None = None, of: str = ""
    ) -> None:
        """A slice begins; ``of``: its category."""
        event = self._event(track, at_ns, pb.TrackEvent.TYPE_SLICE_BEGIN)
        event.name = self._text(name)
        if of:
            event.categories.append(of)
        event.flow_ids.extend(flows)
        for key, value in (notes or {}).items():
            note = event.debug_annotations.add()
            note.name = key
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = self._text(value)

    def end(self, track: int, at_ns: int) -> None:
        """The slice that began last on the track ends."""
        self._event(track, at_ns, pb.TrackEvent.TYPE_SLICE_END)

    def counter(self, track: int, at_ns: int, value: int) -> None:
        """A counter's new value."""
        self._event(track, at_ns, pb.TrackEvent.TYPE_COUNTER).counter_value = value

    def lanes(self, name: str, parent: int, slices: list[Drawn], draw: Callable[[int, Drawn], None]) -> None:
        """Slices that may overlap, on few tracks of one name, those of earlier calls too; ``draw`` one on its track."""
        free = self._lanes.setdefault((parent, name), [])
        slices.sort()
        for one in slices:
            track = heapq.heappop(free)[1] if free and free[0][0] <= one[0] else self.track(name, parent)
            draw(track, one)
            heapq.heappush(free, (one[1], track))

    def stage(self, track: int, one: Drawn) -> None:
        """A stage: its name and kind, its op, and of an op's first one what the op is; what its thread did is in it."""
        begin_ns, end_ns, _, (name, kind, op_id, op, states) = one
        notes: Notes = {"op_id": op_id, "kind": kind}
        if op is not None:
            notes["class"], notes["object"] = op
        self.begin(track, begin_ns, name, (op_id + 1,), notes)  # 0 is no flow
        for part in states:
            about: Notes = {"tid": part.tid}
            if part.woken_by_tid is not None:
                about["woken_by"] = f"{part.woken_by_comm or ''} {part.woken_by_tid}".strip()
            self.begin(track, part.begin_ns, STATES[f"{part.state}_ns"][0], (), about, STATE)
            self.end(track, part.begin_ns + part.duration_ns)
        self.end(track, end_ns)

    def request(self, track: int, one: Drawn) -> None:
        """A block request, and the intervals between its steps in it."""
        request: Slice = one[3]
        self.begin(track, request.begin_ns, request.name, request.flows, request.notes)
        for (a, begin), (b, end) in itertools.pairwise(request.steps):
            if end >= begin:
                self.begin(track, begin, f"{a}2{b}")
                self.end(track, end)
        self.end(track, request.end_ns)


def _request(op: OpDetail, request: Request) -> Slice | None:
    seen = request.steps()
    if not seen:
        return None
    notes: Notes = {"op_id": op.op_id, "request_id": request.request_id}
    if request.sector is not None:
        notes["sector"] = request.sector
    if request.nr_sectors is not None:
        notes["bytes"] = request.nr_sectors * 512
    return Slice(seen[0][1], seen[-1][1], request.rwbs or "request", [op.op_id + 1], notes, seen)


class _InFlight:
    """A counter's track, and the spans that it counts: 16 bytes each."""

    def __init__(self, track: int) -> None:
        self._track = track
        self._begins, self._ends = array("q"), array("q")

    def add(self, begin_ns: int, end_ns: int) -> None:
        self._begins.append(begin_ns)
        self._ends.append(end_ns)

    def __len__(self) -> int:
        return len(self._begins)

    def write(self, writer: _Writer) -> None:
        """The counter's values: one at each time at which a span begins or ends."""
        times, place = np.unique(np.concatenate([self._begins, self._ends]), return_inverse=True)
        changes = np.zeros(len(times), np.int64)
        np.add.at(changes, place, np.repeat([1, -1], len(self)))
        for at in range(0, len(times), _BATCH):
            part = slice(at, at + _BATCH)
            now = np.cumsum(changes[part]) + changes[:at].sum()
            for at_ns, value in zip(times[part].tolist(), now.tolist(), strict=True):
                writer.counter(self._track, at_ns, value)


class _Drawing:
    """The tracks of a run, and what is drawn on them: some thousand ops at a time, as they begin."""

    def __init__(self, run: Run, writer: _Writer, hosts: dict[str, dict[int, str]]) -> None:
        """``hosts``: the names of threads by host."""
        self._writer, self._labels = writer, hosts
        self.ops = _InFlight(writer.track("ops in flight", counter=True))
        self._machines = {host: writer.track(f"host {host}") for host in sorted(set(hosts) - {""})}
        self._names = run.device_names()
        self._host_of = {int(device["dev"]): str(device.get("host", "")) for device in run.devices()}
        self._processes: dict[tuple[str, int | None], int] = {}
        self._devices: dict[int, tuple[int, _InFlight]] = {}
        self._requests: dict[int, dict[int, Slice]] = {}  # by device and number: those that more ops may have
        self._number = itertools.count()

    def draw(self, ops: list[OpDetail]) -> None:
        """Ops that begin no earlier than those before. A request is held until all that have it are known: they began
        before its end.
        """
        by_thread: dict[Row, list[Drawn]] = {}
        for op in ops:
            assert op.end_ns is not None
            self.ops.add(op.begin_ns, op.end_ns)
            self._stages(op, by_thread)
            for request in op.requests:
                self._request(op, request)
        for (host, pid, label), slices in sorted(by_thread.items(), key=lambda item: _order(item[0])):
            self._writer.lanes(label, self._process(host, pid), slices, self._writer.stage)
        self._draw_requests(ops[0].begin_ns)

    def end(self) -> None:
        """What is left, and the counters."""
        self._draw_requests(None)
        self.ops.write(self._writer)
        for _, (_, depth) in sorted(self._devices.items()):
            depth.write(self._writer)

    def _stages(self, op: OpDetail, by_thread: dict[Row, list[Drawn]]) -> None:
        about: tuple[str, str] | None = (op.op_class or "?", op.object or "?")
        states: dict[int, list[InState]] = {}
        for part in op.states:
            states.setdefault(part.seq, []).append(part)
        for seq, stage in enumerate(op.stages):
            tid, begin = stage.tid, stage.begin_ns
            host = stage.host or ""
            pid = op.pid if host in ("", op.stages[0].host) else None  # an op's process is the one that begins it
            row = (host, pid, self._labels[host][tid]) if tid is not None else (host, None, "completions")
            what = (stage.stage, stage.kind, op.op_id, about, states.get(seq, ()))
            by_thread.setdefault(row, []).append((begin, begin + stage.duration_ns, next(self._number), what))
            about = None

    def _request(self, op: OpDetail, request: Request) -> None:
        known = self._requests.setdefault(request.dev, {})
        if request.request_id in known:
            known[request.request_id].flows.append(op.op_id + 1)
        elif (made := _request(op, request)) is not None:
            known[request.request_id] = made

    def _process(self, host: str, pid: int | None) -> int:
        if (host, pid) not in self._processes:
            name = f"process {pid}" if pid is not None else "threads" if host else "block layer"
            self._processes[host, pid] = self._writer.track(name, self._machines.get(host))
        return self._processes[host, pid]

    def _device(self, dev: int) -> tuple[int, _InFlight]:
        if dev not in self._devices:
            name = device_name(self._names, dev)
            group = self._writer.track(f"device {name}", self._machines.get(self._host_of.get(dev, "")))
            counted = self._writer.track(f"{name} in flight (of these ops)", group, counter=True)
            self._devices[dev] = group, _InFlight(counted)
        return self._devices[dev]

    def _draw_requests(self, before_ns: int | None) -> None:
        """Those that ended before (None: all)."""
        for dev, known in sorted(self._requests.items()):
            done = {n: r for n, r in known.items() if before_ns is None or r.end_ns < before_ns}
            if not done:
                continue
            group, counted = self._device(dev)
            drawn: list[Drawn] = [(r.begin_ns, r.end_ns, next(self._number), r) for r in done.values()]
            self._writer.lanes(f"{device_name(self._names, dev)} requests", group, drawn, self._writer.request)
            for number, request in done.items():
                del known[number]
                at = dict(request.steps)
                if "D" in at and "C" in at:
                    counted.add(at["D"], at["C"])


def _order(row: Row) -> tuple[str, int, str]:
    return row[0], row[1] or 0, row[2]


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the complete ops among the selected; gives their number."""
    complete = which.also("o.complete")
    as_they_begin = f"SELECT op_id FROM ({complete.of('o.begin_ns, o.op_id')}) ORDER BY begin_ns, op_id"
    ids = array("q", (op_id for (op_id,) in run.rows(as_they_begin, complete.parameters)))
    tids = run.rows(
        f"""SELECT DISTINCT tid FROM stages
            WHERE tid IS NOT NULL AND op_id IN (SELECT op_id FROM ({complete.sql()})) ORDER BY tid""",
        complete.parameters,
    )
    hosts = [host for (host,) in run.rows("SELECT DISTINCT host FROM stages ORDER BY host")]
    labels = {host or "": names_of_threads(run, [tid for (tid,) in tids], host) for host in hosts}
    writer = _Writer(out)
    drawing = _Drawing(run, writer, labels)
    for ops in read_chunks(run, ids, with_transitions=False):
        drawing.draw(ops)
    drawing.end()
    writer.flush()
    return len(ids)
