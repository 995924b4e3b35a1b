# SPDX-License-Identifier: MIT
"""Threads that go on with an op for some events, on several streams: what comes of a trace of them is what comes of the
same events given to the core one by one in merge order, whatever they are about.
"""

from __future__ import annotations

import heapq
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lib.core_driver import Driver, Line, plan_of

from opline.readers.native import NativeReader
from opline.store.schema import TABLES

POINTS = {
    "begin": 'role = "begin", key = "op", class = "write", object = "ref", bind = "ref"',
    "again": 'role = "begin", key = "op"',
    "a": 'key = "op"', "b": 'key = "op"', "c": 'key = "op"', "d": 'key = "ref"',
    "f": 'key = "op"', "g": 'key = "op"', "h": 'key = "op"', "i": 'key = "op"',
    "two": 'key = ["op", "ref"]',
    "named": 'key = "op", bind = "ref"',
    "gone": 'key = "ref", release = "ref"',
    "freed": 'key = "op", release = "op"',
    "end": 'key = "op", role = "end"',
    "soft": 'key = "ref", role = "end?"',
}  # fmt: skip
MODEL = """linger_ns = 30
[keys]
op = { fields = "id", scope = "global" }
ref = { fields = "ref", scope = "global" }
[points]
"""
MODEL += "".join(f'"{name}" = {{ event = "app:{name}", {text} }}\n' for name, text in POINTS.items())
PLAN = plan_of(MODEL)
NAMES = list(POINTS)
METADATA = """/* CTF 1.8 */
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 27; align = 1; signed = false; } := uint27_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
trace { major = 1; minor = 8; byte_order = le;
  packet.header := struct { uint32_t magic; uint32_t stream_id; uint64_t stream_instance_id; }; };
env { hostname = "host"; domain = "ust"; };
clock { name = "monotonic"; freq = 1000000000; };
struct compact { enum : uint5_t { compact = 0 ... 30, extended = 31 } id; variant <id> {
  struct { uint27_t timestamp; } compact;
  struct { uint32_t id; uint64_t timestamp; } extended; } v; } align(8);
struct large { enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id; variant <id> {
  struct { uint32_t timestamp; } compact;
  struct { uint32_t id; uint64_t timestamp; } extended; } v; } align(8);
stream { id = 0; event.header := struct HEADER; event.context := struct { int32_t _vpid; int32_t _vtid; };
  packet.context := struct { uint64_t timestamp_begin; uint64_t timestamp_end; uint64_t content_size;
  uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id; }; };
"""
EVENT = (
    'event {{ name = "app:{}"; id = {}; stream_id = 0; fields := struct {{ uint64_t _id; uint64_t _ref; TEXT }}; }};\n'
)
HEADER_BYTES = 16 + 6 * 8 + 4
PADDING = 300  # of the last packet: events near a file's end are read one by one


@dataclass
class Step:
    """An event of a stream."""

    ts_ns: int
    name: str
    tid: int
    ref: int
    op: int


@dataclass
class Packet:
    """Some of a stream's events, after so many that were discarded."""

    steps: list[Step] = field(default_factory=list)
    discarded: int = 0


def metadata(large: bool, text: bool) -> str:
    events = "".join(EVENT.format(name, i) for i, name in enumerate(NAMES))
    out = (METADATA + events).replace("HEADER", "large" if large else "compact")
    string = "string _oid;" if text else ""
    char = "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char;\n" if text else ""
    return out.replace("TEXT", string).replace("typealias", char + "typealias", 1)


def write(folder: Path, streams: list[list[Packet]], large: bool, text: bool) -> None:
    """The trace that has these packets, as LTTng lays them out."""
    (folder / "metadata").write_text(metadata(large, text))
    for instance, packets in enumerate(streams):
        out = b""
        discarded = 0
        for number, packet in enumerate(packets):
            body = b""
            for s in packet.steps:
                kind = NAMES.index(s.name)
                body += struct.pack("<HI", kind, s.ts_ns) if large else struct.pack("<I", s.ts_ns << 5 | kind)
                body += struct.pack("<iiQQ", 1, s.tid, s.op, s.ref)
                if text:
                    body += f"object.{s.op:05}".encode() + b"\0"
            discarded += packet.discarded
            content = HEADER_BYTES + len(body)
            size = content + (PADDING if number == len(packets) - 1 else 0)
            begin, end = (packet.steps[i].ts_ns for i in (0, -1))
            out += struct.pack("<IIQ", 0xC1FC1FC1, 0, instance)
            out += struct.pack("<6QI", begin, end, content * 8, size * 8, number, discarded, 0)
            out += body + bytes(size - content)
        (folder / f"ch_{instance}").write_bytes(out)


def merged(streams: list[list[Packet]]) -> Iterator[tuple[int, Step, Packet | None, Packet]]:
    """The events of all streams in merge order; with the first of a packet the one before it."""
    heads: list[tuple[int, int, int, int]] = []
    for k, packets in enumerate(streams):
        heapq.heappush(heads, (packets[0].steps[0].ts_ns, k, 0, 0))
    while heads:
        _, k, p, e = heapq.heappop(heads)
        packet = streams[k][p]
        yield k, packet.steps[e], None, packet
        if e + 1 == len(packet.steps):
            if p + 1 == len(streams[k]):
                continue
            p, e = p + 1, -1
            yield k, packet.steps[-1], packet, streams[k][p]
        heapq.heappush(heads, (streams[k][p].steps[e + 1].ts_ns, k, p, e + 1))


def one_by_one(streams: list[list[Packet]], text: bool) -> Driver:
    """What the core makes of them, each for itself."""
    driver = Driver(PLAN)
    driver.core.keep_statistics(True, (), ())
    numbers = [driver.stream("host", False, k) for k in range(len(streams))]
    for k, step, before, packet in merged(streams):
        if before:
            if packet.discarded:
                ends = (before.steps[-1].ts_ns, packet.steps[-1].ts_ns)
                driver.core.discarded(numbers[k], *ends, packet.discarded, False)
            continue
        payload: dict[str, Any] = {"id": step.op, "ref": step.ref}
        if text:
            payload["oid"] = f"object.{step.op:05}"
        context = {"pid": 1, "tid": step.tid, "cpu": 0, "host": "host", "stream": k}
        driver.push(Line(step.ts_ns, f"app:{step.name}", context, payload))
    driver.finish()
    return driver


def read(folder: Path, tables: tuple[str, ...], threads: int, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """What it makes of the trace."""
    monkeypatch.setenv("OPLINE_THREADS", str(threads))
    driver = Driver(PLAN)
    driver.core.keep_tables(tables)
    driver.core.keep_statistics(True, (), ())
    for _ in NativeReader([str(folder)]).read(driver.core):
        pass
    driver.drain()
    return driver


def summary(driver: Driver) -> dict[str, Any]:
    """The core's own, without keys that no event had: only a trace declares classes that have no events."""
    out = driver.summary()
    return {**out, "keys": [k for k in out["keys"] if k["found"] or k["missed"]]}


def check(streams: list[list[Packet]], large: bool, text: bool) -> None:
    """All that does not show single transitions is the same."""
    expected = one_by_one(streams, text)
    shown = tuple(t.name for t in TABLES if t.name not in ("losses", "transitions"))
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as monkeypatch:
        write(Path(name), streams, large, text)
        for threads, tables in ((1, shown), (2, shown), (1, ())):
            found = read(Path(name), tables, threads, monkeypatch)
            assert found.core.statistics() == expected.core.statistics()
            assert summary(found) == summary(expected)
            for table in tables:
                assert found.tables().get(table, []) == expected.tables().get(table, []), table


@st.composite
def bursts(draw: st.DrawFn, ops: int) -> list[Packet]:
    """A stream: threads that go on with an op for some events, of few ops, soon after each other."""
    at = draw(st.integers(100, 140))
    packets = [Packet()]
    for _ in range(draw(st.integers(1, 12))):
        op = draw(st.integers(1, ops))
        tid, ref = draw(st.integers(1, 3)), draw(st.sampled_from([op, op, op, 1]))
        points = draw(st.one_of(st.sampled_from(WAYS), st.lists(st.sampled_from(NAMES), min_size=1, max_size=20)))
        for point in points:
            at += draw(st.sampled_from([0, 0, 1, 1, 2, 7]))
            packets[-1].steps.append(Step(at, point, tid, ref, op))
            if draw(st.integers(0, 30)) == 0:
                packets.append(Packet(discarded=draw(st.sampled_from([0, 0, 3]))))
        at += draw(st.sampled_from([0, 1, 20, 60]))
    return [p for p in packets if p.steps]


WAYS = (
    ["begin", "a", "b", "c", "a", "b"],
    ["a", "b", "c", "b", "a"],
    ["a", "b", "c", "b", "a", "end"],
    ["a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a"],
    ["d", "d", "d", "d"],
    ["a", "d", "a", "d", "b", "c"],
    ["c", "end", "a", "a", "b"],
    ["begin", "a", "again", "a", "a", "b", "end"],
)


@settings(max_examples=50)
@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.booleans(), st.booleans())
def test_whatever_comes_between(data: st.DataObject, streams: int, ops: int, large: bool, text: bool) -> None:
    check([data.draw(bursts(ops)) for _ in range(streams)], large, text)


def ops_of_three_streams(count: int) -> list[list[Packet]]:
    """Ops that go from one stream to the next while these are still at it, in every possible place."""
    streams: list[list[Packet]] = [[Packet()] for _ in range(3)]
    for op in range(count):
        base = 100 + 40 * op
        first = [Step(base + 2 * i, p, 1, op, op) for i, p in enumerate(WAYS[0])]
        second = [Step(base + op % 14 + i * (op % 3), p, 2, op, op) for i, p in enumerate(WAYS[1])]
        third = [Step(base + 20 + op % 7, p, 3, op, op) for p in ("a", "b", "c", "end")]
        for stream, steps in zip(streams, (first, second, third), strict=True):
            stream[0].steps += steps
    return streams


@pytest.mark.parametrize("pieces", [2, 3, 4])
def test_streams_that_stay_at_one_op(pieces: int) -> None:
    """In the last turn of some ops one stream's events come between the other's; else they come behind them."""
    streams: list[list[Packet]] = [[], []]
    for op in range(40):
        base = 1000 * op
        streams[0].append(Packet([Step(base, "begin", 1, op, op)]))
        for piece in range(pieces):
            at = base + 1 + 40 * piece
            streams[0].append(Packet([Step(at + 3 * i, p, 1, op, op) for i, p in enumerate("abfghi")]))
            at += 1 if op % 8 == 7 and piece == pieces - 1 else 13
            streams[1].append(Packet([Step(at + 3 * i, p, 2, op, op) for i, p in enumerate("cbf")]))
        streams[0].append(Packet([Step(base + 900, "end", 1, op, op)]))
    check(streams, large=True, text=False)


def test_a_third_stream_asks_for_the_op_between_two_events_of_a_burst() -> None:
    first = [(169, "begin"), (169, "a"), (169, "b"), (213, "begin"), (213, "a"), (215, "b"), (222, "c"), (222, "a")]
    third = [(169, "c"), (214, "d")]
    streams = [[*first, (224, "b")], [(303, "end")], third]
    check([[Packet([Step(at, p, k, 1, 1) for at, p in steps])] for k, steps in enumerate(streams)], False, text=False)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("length", [5, 1000])
def test_streams_that_are_at_one_op(large: bool, length: int) -> None:
    """In packets of so many events."""
    streams = []
    for (whole,) in ops_of_three_streams(900):
        steps = whole.steps
        streams.append([Packet(steps[i : i + length]) for i in range(0, len(steps), length)])
    check(streams, large, text=True)
