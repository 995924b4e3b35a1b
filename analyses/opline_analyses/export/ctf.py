# SPDX-License-Identifier: MIT
"""A trace in CTF 1.8 with the ops as events: `op_begin`, `op_stage` at the begin of each stage, `op_end`.

babeltrace2 and Trace Compass read it, also beside the trace that the run was made of: the clock is the same one. The
format is that of the Common Trace Format 1.8.3 (diamon.org/ctf). CTF 1.8 has no absent fields: what may be unknown is
an array without or with one element; an unknown text is empty.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from opline.paths import name_bytes
from opline.talk import passing_rows
from opline_analyses.runs.wall_clock import offset_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

NUMBER, MAYBE, TEXT = "number", "maybe", "text"
#: The fields of each event, in the order in which they are written; the place of an event is its id.
EVENTS: dict[str, dict[str, str]] = {
    "op_begin": {
        "op_id": NUMBER, "class": TEXT, "object": TEXT, "host": TEXT, "comm": TEXT, "pid": MAYBE, "tid": MAYBE,
    },
    "op_stage": {
        "op_id": NUMBER, "seq": NUMBER, "stage": TEXT, "kind": TEXT, "from_point": TEXT, "to_point": TEXT,
        "duration_ns": NUMBER, "tid": MAYBE, "request_id": MAYBE,
    },
    "op_end": {"op_id": NUMBER, "class": TEXT, "latency_ns": NUMBER, "tid": MAYBE},
}  # fmt: skip
#: Of a slice of time, and of the ops that it is about.
_ROWS = """
    WITH exported AS (SELECT op_id FROM exported WHERE op_id BETWEEN {low} AND {high})
    SELECT begin_ns AS at_ns, op_id, -1 AS seq, 0 AS event, [op_id, pid, begin_tid] AS numbers,
           [class::VARCHAR, object::VARCHAR, host::VARCHAR, comm::VARCHAR] AS texts
    FROM ops SEMI JOIN exported USING (op_id) WHERE begin_ns BETWEEN {first} AND {last}
    UNION ALL
    SELECT begin_ns, op_id, seq::INTEGER, 1, [op_id, seq, duration_ns, tid, request_id],
           [stage::VARCHAR, kind::VARCHAR, from_point::VARCHAR, to_point::VARCHAR]
    FROM stages SEMI JOIN exported USING (op_id) WHERE begin_ns BETWEEN {first} AND {last}
    UNION ALL
    SELECT end_ns, op_id, 1 << 30, 2, [op_id, latency_ns, end_tid], [class::VARCHAR]
    FROM ops SEMI JOIN exported USING (op_id) WHERE end_ns BETWEEN {first} AND {last}
    ORDER BY at_ns, op_id, seq"""
#: How many events the parts of a slice have, and which ops they are about.
_COUNTS = """
    SELECT (at_ns - {first}) // {width}, count(*), min(op_id), max(op_id) FROM (
        SELECT begin_ns AS at_ns, op_id FROM ops SEMI JOIN exported USING (op_id)
        UNION ALL SELECT begin_ns, op_id FROM stages SEMI JOIN exported USING (op_id)
        UNION ALL SELECT end_ns, op_id FROM ops SEMI JOIN exported USING (op_id))
    WHERE at_ns BETWEEN {first} AND {last} GROUP BY ALL ORDER BY ALL"""
_PARTS = 256  # of a slice that has too many events
_MOST = 1 << 16  # events that are sorted at a time, unless more are at one time
_MAGIC = 0xC1FC1FC1
_PACKET_HEADER = struct.Struct("<I16sI")
_PACKET_CONTEXT = struct.Struct("<QQQQQ")  # begin, end, content and packet in bits, events that are missing
_EVENT_HEADER = struct.Struct("<HQ")
_NUMBER = struct.Struct("<q")
_FULL = 1 << 20  # bytes of a packet's events
_BATCH = 4096


def write_folder(run: Run, which: Selection, folder: Path) -> int:
    """Writes the trace of the complete ops among the selected into a folder; gives their number. Raises OSError."""
    complete = which.also("o.complete")
    run.con.execute(f"CREATE OR REPLACE TEMP TABLE exported AS {complete.of('o.op_id')}", list(complete.parameters))
    (ops,) = run.row("SELECT count(*) FROM exported")
    what = repr(sorted((run.manifest.get("checksums") or {}).items())).encode()  # the same run: the same uuid
    own = uuid.UUID(bytes=hashlib.sha256(what).digest()[:16])
    (folder / "metadata").write_text(metadata(run, own))
    with (folder / "ops").open("wb") as out:
        for packet in _packets(run, own):
            out.write(packet)
    return int(ops)


def metadata(run: Run, own: uuid.UUID) -> str:
    """The TSDL text. ``own``: the trace's uuid."""
    clocks: list[dict[str, Any]] = [t["clock"] for t in run.manifest.get("environment") or () if t.get("clock")]
    clock = clocks[0] if clocks else {}
    identity = f'    uuid = "{clock["uuid"]}";\n' if isinstance(clock.get("uuid"), str) else ""
    offset = offset_ns(run)
    seconds, rest = divmod(offset or 0, 10**9)
    absolute = "FALSE" if offset is None else "TRUE"  # as babeltrace2 takes LTTng's clocks to be
    events = "".join(
        f'event {{\n    name = "opline:{name}"; id = {number}; stream_id = 0;\n    fields := struct {{\n'
        f"{''.join(_declared(*field) for field in fields.items())}    }};\n}};\n\n"
        for number, (name, fields) in enumerate(EVENTS.items())
    )
    return f"""/* CTF 1.8 */

typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 64; align = 8; signed = true; }} := int64_t;

trace {{
    major = 1; minor = 8; uuid = "{own}"; byte_order = le;
    packet.header := struct {{ uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; }};
}};

env {{ domain = "ust"; tracer_name = "opline"; tracer_major = 0; tracer_minor = 1; }};

clock {{
    name = "monotonic";
{identity}    description = "the clock of the run"; freq = 1000000000; offset_s = {seconds}; offset = {rest};
    absolute = {absolute};
}};

typealias integer {{ size = 64; align = 8; signed = false; map = clock.monotonic.value; }} := time_t;

stream {{
    id = 0;
    event.header := struct {{ uint16_t id; time_t timestamp; }};
    packet.context := struct {{
        time_t timestamp_begin; time_t timestamp_end; uint64_t content_size; uint64_t packet_size;
        uint64_t events_discarded;
    }};
}};

{events}"""


def _declared(name: str, kind: str) -> str:
    if kind == TEXT:
        return f"        string _{name};\n"
    if kind == NUMBER:
        return f"        int64_t _{name};\n"
    return f"        uint8_t __{name}_length; int64_t _{name}[__{name}_length];\n"


def _packets(run: Run, own: uuid.UUID) -> Iterator[bytes]:
    held, size, first, last = list[bytes](), 0, 0, 0
    for at_ns, event in _events(run):
        if size >= _FULL:
            yield _packet(own, held, size, first, last)
            held, size = [], 0
        first = first if held else at_ns
        last = at_ns
        held.append(event)
        size += len(event)
    if held:
        yield _packet(own, held, size, first, last)


def _packet(own: uuid.UUID, events: list[bytes], size: int, first: int, last: int) -> bytes:
    bits = 8 * (_PACKET_HEADER.size + _PACKET_CONTEXT.size + size)
    header = _PACKET_HEADER.pack(_MAGIC, own.bytes, 0)
    return b"".join((header, _PACKET_CONTEXT.pack(first, last, bits, bits, 0), *events))


class _Slice(NamedTuple):
    """All events from ``first`` to ``last``: so many, of ops from ``low`` to ``high``."""

    first: int
    last: int
    events: int
    low: int
    high: int


def _slices(run: Run, whole: _Slice) -> Iterator[_Slice]:
    """The slice in parts that have at most _MOST events, as far as times differ."""
    for part in _together(_parts(run, whole)):
        if part.events > _MOST and part.last > part.first:
            yield from _slices(run, part)
        else:
            yield part


def _parts(run: Run, whole: _Slice) -> Iterator[_Slice]:
    """Parts of one length that have events."""
    width = -(-(whole.last - whole.first + 1) // _PARTS)
    for number, events, low, high in run.con.execute(_COUNTS.format(width=width, **whole._asdict())).fetchall():
        first = whole.first + number * width
        yield _Slice(first, min(first + width - 1, whole.last), events, low, high)


def _together(parts: Iterable[_Slice]) -> Iterator[_Slice]:
    """Neighbours as one, as long as that has at most _MOST events."""
    held: _Slice | None = None
    for part in parts:
        if held and held.events + part.events <= _MOST:
            ops = min(held.low, part.low), max(held.high, part.high)
            held = _Slice(held.first, part.last, held.events + part.events, *ops)
            continue
        if held:
            yield held
        held = part
    if held:
        yield held


def _events(run: Run) -> Iterator[tuple[int, bytes]]:
    kinds = [tuple(fields.values()) for fields in EVENTS.values()]
    first, last = run.row("SELECT min(begin_ns), max(end_ns) FROM ops SEMI JOIN exported USING (op_id)")
    if first is None:
        return
    slices = _slices(run, _Slice(first, last, 0, 0, 0))
    for part in passing_rows(slices, last - first + 1, lambda part: part.last - part.first + 1):
        found = run.con.execute(_ROWS.format(**part._asdict()))
        while rows := found.fetchmany(_BATCH):
            for at_ns, _, _, event, numbers, texts in rows:
                values = _values(kinds[event], iter(numbers), iter(texts))
                yield at_ns, _EVENT_HEADER.pack(event, at_ns) + b"".join(values)


def _values(kinds: tuple[str, ...], numbers: Iterator[Any], texts: Iterator[Any]) -> Iterator[bytes]:
    for kind in kinds:
        if kind == TEXT:
            yield name_bytes(next(texts) or "").replace(b"\0", b"\\x00") + b"\0"
            continue
        value = next(numbers)
        if kind == NUMBER:
            yield _NUMBER.pack(value)
        else:
            yield b"\0" if value is None else b"\1" + _NUMBER.pack(value)
