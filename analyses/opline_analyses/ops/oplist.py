# SPDX-License-Identifier: MIT
"""Reads whole ops from a run: each with its transitions, stages and block requests, some thousand at a time.

Takes a run and a selection; yields `OpDetail`s in the selection's order. Memory follows the chunk, not the run.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from opline.steps import STEPS
from opline.store.schema import ATTRIBUTES
from opline.talk import passing
from opline_analyses.ops.locks import HOLDERS, with_holders
from opline_analyses.ops.waited import InWait
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

CHUNK_OPS = 4096
_STEPS = tuple((step.letter, step.column) for step in STEPS)
_PARTS = ("transitions", "stages", "states", "waits", "requests", "deferred")


class Passed(NamedTuple):
    """One transition of an op."""

    ts_ns: int
    point: str
    event: str | None  # None: a completion ended the op
    tid: int | None
    cpu: int | None
    comm: str | None
    late: bool
    aside: bool


class Interval(NamedTuple):
    """One stage of an op's critical path."""

    stage: str
    kind: str
    from_point: str
    to_point: str
    begin_ns: int
    duration_ns: int
    request_id: int | None
    states_tid: int | None  # None where sched events don't cover the stage
    on_cpu_ns: int | None
    runnable_ns: int | None
    blocked_io_ns: int | None
    blocked_ns: int | None
    woken_by_tid: int | None
    woken_by_comm: str | None
    tid: int | None  # the thread at the stage's end; None: a completion ends the stage
    host: str | None = None  # in a joined run: of this thread, or of the device


class InState(NamedTuple):
    """A part of a stage with one state of the thread."""

    seq: int  # of the stage, from 0
    tid: int
    state: str  # as in the table states
    begin_ns: int
    duration_ns: int
    woken_by_tid: int | None  # None: not begun by a wake-up
    woken_by_comm: str | None


class Request(NamedTuple):
    """One block request of an op. If the request has merged bios of others, sector and nr_sectors are of the op's own
    bios; request_sector and request_nr_sectors are of the request.
    """

    request_id: int
    dev: int
    sector: int | None
    nr_sectors: int | None
    request_sector: int | None
    request_nr_sectors: int | None
    rwbs: str | None
    queue_ns: int | None  # of the op's first bio in the request
    merge_ns: int | None  # time of the op's merge into the request
    getrq_ns: int | None
    insert_ns: int | None
    issue_ns: int | None
    complete_ns: int | None
    preflush_ns: int | None
    postflush_ns: int | None
    d2c_ns: int | None
    queue_tid: int | None
    queue_comm: str | None
    queue_cpu: int | None
    issue_tid: int | None
    issue_comm: str | None
    issue_cpu: int | None
    complete_cpu: int | None
    error: int | None
    shared: bool
    ambiguous: bool

    def steps(self) -> list[tuple[str, int]]:
        """The known steps, Q G I D C, with their times."""
        return [(letter, at) for letter, name in _STEPS if (at := getattr(self, name)) is not None]


class Deferred(NamedTuple):
    """Bytes of an op written back by one bio, outside the op's latency."""

    bio_id: int
    request_id: int | None
    dev: int
    sector: int | None
    nr_sectors: int
    file: str
    bytes: int
    written_ns: int
    queue_ns: int | None
    complete_ns: int | None
    tid: int | None
    comm: str | None
    shared: bool
    ambiguous: bool


REQUEST_COLUMNS = Request._fields
#: Fields of a Request, as SQL, different from the columns of the table requests.
_OF_THE_OP = {
    "sector": "if(l.bios >= 1 AND l.bios < r.bio_count, l.sector, r.sector)",
    "nr_sectors": "if(l.bios >= 1 AND l.bios < r.bio_count, l.nr_sectors, r.nr_sectors)",
    "request_sector": "r.sector",
    "request_nr_sectors": "r.nr_sectors",
    "queue_ns": "coalesce(l.queue_ns, r.queue_ns)",
    "merge_ns": "l.merge_ns",
    "postflush_ns": "if(r.end_ns > r.complete_ns, r.end_ns, NULL)",
    "queue_tid": "coalesce(l.tid, r.queue_tid)",
    "queue_comm": "coalesce(l.comm, r.queue_comm)",
    "shared": "l.shared AND r.bio_count > 0",
    "ambiguous": "l.ambiguous",
}


def _document(part: Any) -> dict[str, Any]:
    """A part of an op by its fields; a host only in a joined run."""
    fields: dict[str, Any] = part._asdict()
    return fields if fields.get("host") is not None else {k: v for k, v in fields.items() if k != "host"}


@dataclass(slots=True)
class OpDetail:
    """One op with everything known to the run."""

    op_id: int
    op_class: str | None
    object: str | None
    key: str | None
    pid: int | None
    begin_ns: int
    end_ns: int | None
    latency_ns: int | None
    complete: bool
    reason: str | None
    tainted: bool
    offset_bytes: int | None
    length_bytes: int | None
    no_request: str | None
    unattributed_ns: int | None
    unknown_ns: int | None
    unsplit: bool = False
    attributes: dict[str, int | None] = field(default_factory=dict)  # as declared in opline.store.schema
    transitions: list[Passed] = field(default_factory=list)
    stages: list[Interval] = field(default_factory=list)
    states: list[InState] = field(default_factory=list)
    waits: list[InWait] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    deferred: list[Deferred] = field(default_factory=list)
    devices: dict[int, str] = field(default_factory=dict)  # names, of the whole run
    start_ns: int = 0  # of the run: origin of the printed times

    def record(self) -> dict[str, Any]:
        """For JSON: the table's names, nanoseconds."""
        plain = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("op_class", "devices", "start_ns", "attributes", *_PARTS)
        }
        parts = {name: [_document(part) for part in getattr(self, name)] for name in _PARTS}
        return {"op_id": plain.pop("op_id"), "class": self.op_class, **plain, **self.attributes, **parts}


_OPS = """SELECT op_id, class, object, key, pid, begin_ns, end_ns, latency_ns, complete, reason, tainted, offset_bytes,
    length_bytes, no_request, unattributed_ns, unknown_ns, coalesce(unsplit, false)"""
_OF_CHUNK = "FROM ops WHERE op_id BETWEEN {low} AND {high} AND op_id IN (SELECT op_id FROM chunk)"
_ATTRIBUTES = tuple(a.column for a in ATTRIBUTES)
_TRANSITIONS = """SELECT op_id, ts_ns, point, event, tid, cpu, comm, late, aside FROM transitions
    WHERE op_id BETWEEN {low} AND {high} AND op_id IN (SELECT op_id FROM chunk) ORDER BY op_id, seq"""
_STAGES = """SELECT op_id, stage, kind, from_point, to_point, begin_ns, duration_ns, request_id,
    states_tid, on_cpu_ns, runnable_ns, blocked_io_ns, blocked_ns, woken_by_tid, woken_by_comm, tid,
    host FROM stages
    WHERE op_id BETWEEN {low} AND {high} AND op_id IN (SELECT op_id FROM chunk) ORDER BY op_id, seq"""
_STATES = """SELECT op_id, seq, tid, state, begin_ns, duration_ns, woken_by_tid, woken_by_comm FROM states
    WHERE op_id BETWEEN {low} AND {high} AND op_id IN (SELECT op_id FROM chunk) ORDER BY op_id, begin_ns"""
_WAITS = """SELECT w.op_id, w.wait_id, w.seq, w.begin_ns, w.duration_ns, w.part_count, w.kind, w.reason, w.depth,
    w.path, w.tid, w.comm, w.request_id, r.kind, r.dev, w.instead_tid, w.instead_comm, w.cause, w.last_cause,
    w.lock_kind, w.lock, w.holder_tid, w.holder_comm, w.certain
    FROM waits w LEFT JOIN all_requests r ON r.request_id = w.request_id
    WHERE w.op_id BETWEEN {low} AND {high} AND w.op_id IN (SELECT op_id FROM chunk)
    ORDER BY w.op_id, w.seq, w.begin_ns"""
# Gives op_id, then REQUEST_COLUMNS. An op has the Q of its own bio; in a merged request this Q is not the request's
# first. A batch's requests cut its members' stages without a link to each member: such requests are shared.
REQUESTS = f"""
    WITH own AS (
        SELECT k.op_id, k.request_id, k.shared, k.ambiguous, b.queue_ns, b.merge_ns, b.sector, b.nr_sectors, b.tid,
               b.comm
        FROM (SELECT * FROM links SEMI JOIN chunk USING (op_id) WHERE op_id BETWEEN {{low}} AND {{high}}) k
        LEFT JOIN bios b USING (bio_id)
        UNION ALL BY NAME SELECT op_id, request_id FROM stages SEMI JOIN chunk USING (op_id)
        WHERE op_id BETWEEN {{low}} AND {{high}}),
    l AS (
        SELECT op_id, request_id, count(shared) AS bios, min(queue_ns) AS queue_ns, min(merge_ns) AS merge_ns,
               min(sector) AS sector, sum(nr_sectors)::BIGINT AS nr_sectors, arg_min(tid, queue_ns) AS tid,
               arg_min(comm, queue_ns) AS comm, coalesce(bool_or(shared), true) AS shared,
               coalesce(bool_or(ambiguous), false) AS ambiguous
        FROM own WHERE request_id IS NOT NULL GROUP BY op_id, request_id)
    SELECT l.op_id, {", ".join(_OF_THE_OP.get(name, f"r.{name}") for name in REQUEST_COLUMNS)}
    FROM l JOIN requests r USING (request_id) ORDER BY l.op_id, coalesce(l.queue_ns, r.queue_ns), r.request_id"""


_DEFERRED = """SELECT d.op_id, d.bio_id, d.request_id, b.dev, b.sector, b.nr_sectors, d.file, d.bytes, d.written_ns,
    d.queue_ns, d.complete_ns, d.tid, d.comm, d.shared, d.ambiguous
    FROM deferred d JOIN bios b USING (bio_id)
    WHERE d.op_id BETWEEN {low} AND {high} AND d.op_id IN (SELECT op_id FROM chunk) ORDER BY d.op_id, d.bio_id"""


def read_ops(
    run: Run, which: Selection, with_blocks: bool = True, with_transitions: bool = True, with_states: bool = True
) -> Iterator[OpDetail]:
    """The selected ops, whole, in the selection's order; without the parts not asked for."""
    ids = array("q", (i for (i,) in run.rows(which.sql(), which.parameters)))
    for chunk in read_chunks(run, ids, with_blocks, with_transitions, with_states):
        yield from chunk


def read_chunks(
    run: Run, ids: Sequence[int], with_blocks: bool = True, with_transitions: bool = True, with_states: bool = True
) -> Iterator[list[OpDetail]]:
    """The ops with these numbers, in order, CHUNK_OPS at a time."""
    for start in passing(range(0, len(ids), CHUNK_OPS)):
        yield list(_chunk(run, list(ids[start : start + CHUNK_OPS]), with_blocks, with_transitions, with_states))


def _name_holders(run: Run, ops: dict[int, OpDetail], span: dict[str, int]) -> None:
    """The op of each lock holder's work. Most ops wait for no lock."""
    if not any(w.holder_tid is not None for op in ops.values() for w in op.waits):
        return
    held: defaultdict[int, dict[tuple[int, int], int]] = defaultdict(dict)
    for op_id, lock, holder_tid, holder_op_id in run.rows(HOLDERS.format(**span)):
        held[op_id][lock, holder_tid] = holder_op_id
    for op_id, of in held.items():
        ops[op_id].waits = with_holders(ops[op_id].waits, of)


def _chunk(
    run: Run, ids: list[int], with_blocks: bool, with_transitions: bool, with_states: bool
) -> Iterator[OpDetail]:
    # The range lets DuckDB skip row groups: op_ids and rows are nearly in the same order.
    span = {"low": min(ids), "high": max(ids)}
    run.con.execute("CREATE OR REPLACE TEMP TABLE chunk AS SELECT unnest(?::BIGINT[]) AS op_id", [ids])
    ops = {}
    for row in run.rows(f"{', '.join((_OPS, *_ATTRIBUTES))} {_OF_CHUNK}".format(**span)):
        known = len(row) - len(_ATTRIBUTES)
        ops[row[0]] = OpDetail(*row[:known])
        ops[row[0]].attributes = dict(zip(_ATTRIBUTES, row[known:], strict=True))
    names, start_ns = run.device_names(), run.start_ns()
    for op in ops.values():
        op.devices, op.start_ns = names, start_ns
    if with_transitions:
        for row in run.rows(_TRANSITIONS.format(**span)):
            ops[row[0]].transitions.append(Passed(*row[1:]))
    if with_blocks:
        for row in run.rows(_STAGES.format(**span)):
            ops[row[0]].stages.append(Interval(*row[1:]))
        if with_states:
            for row in run.rows(_STATES.format(**span)):
                ops[row[0]].states.append(InState(*row[1:]))
            for row in run.rows(_WAITS.format(**span)):
                ops[row[0]].waits.append(InWait(*row[1:]))
            _name_holders(run, ops, span)
        requests: defaultdict[int, list[Request]] = defaultdict(list)
        for row in run.rows(REQUESTS.format(**span)):
            requests[row[0]].append(Request(*row[1:]))
        for op_id, found in requests.items():
            ops[op_id].requests = found
        for row in run.rows(_DEFERRED.format(**span)):
            ops[row[0]].deferred.append(Deferred(*row[1:]))
    for op_id in ids:
        yield ops[op_id]
