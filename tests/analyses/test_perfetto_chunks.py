# SPDX-License-Identifier: MIT
"""The Perfetto export draws some ops at a time: of chunks of any size come the same slices and counters."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
from tests.lib.recorded import RunOf

from opline_analyses.export import perfetto
from opline_analyses.ops import oplist
from opline_analyses.runs.run import open_run
from opline_analyses.runs.selection import Selection


def drawn(run: Path) -> tuple[int, Counter[object], Counter[object], int]:
    """Number of ops, slices' begins and ends by time, names and flows, the counters' values, and how many lanes."""
    out = io.BytesIO()
    with open_run(run) as opened:
        ops = perfetto.write(opened, Selection(), out)
    trace = pb.Trace()
    trace.ParseFromString(out.getvalue())
    names = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")}
    slices: Counter[object] = Counter()
    counters: Counter[object] = Counter()
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        name = names[event.track_uuid]
        if event.type == pb.TrackEvent.TYPE_COUNTER:
            counters[name, packet.timestamp, event.counter_value] += 1
        else:
            slices[name, packet.timestamp, event.type, event.name, tuple(sorted(event.flow_ids))] += 1
    return ops, slices, counters, len(names)


@pytest.mark.parametrize("recording", ["demo-qd4", "ctf-blue-v2-qd1"])
def test_chunks_of_any_size_give_the_same(run_of: RunOf, monkeypatch: pytest.MonkeyPatch, recording: str) -> None:
    run = run_of(recording).path
    whole = drawn(run)
    monkeypatch.setattr(oplist, "CHUNK_OPS", 37)
    parts = drawn(run)
    assert parts[:3] == whole[:3]
    assert parts[0] > 2 * 37  # several chunks, with requests of ops on both sides
    assert whole[3] <= parts[3] <= 2 * whole[3]
