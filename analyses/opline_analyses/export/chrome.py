# SPDX-License-Identifier: MIT
"""Chrome's JSON trace: an op is an asynchronous slice of its process with its stages inside, a block request one of
its device.

The format is that of "Trace Event Format" (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU):
nestable asynchronous events, `b` and `e`, which belong together by category and id. Perfetto, chrome://tracing and
Trace Compass's add-on open it. Its times are microseconds; these have three decimals and count from the run's first
op, so that a reader who keeps them as doubles still has each nanosecond.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, BinaryIO

from opline.steps import STEPS
from opline.talk import shown
from opline_analyses.base.colours import STATES
from opline_analyses.base.text import device_name
from opline_analyses.export.json_list import write_list
from opline_analyses.ops.oplist import OpDetail, read_ops
from opline_analyses.runs.columns import fetched
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

FIRST_DEVICE = 1 << 22  # no process has this number: PID_MAX_LIMIT of the kernel's threads.h
ROWS = 4096
# The requests of the ops in the table `exported`, each once.
_REQUESTS = f"""
    SELECT dev, request_id, rwbs, sector, nr_sectors, {", ".join(step.column for step in STEPS)}
    FROM requests WHERE request_id IN (
        SELECT request_id FROM links SEMI JOIN exported USING (op_id)
        UNION SELECT request_id FROM stages SEMI JOIN exported USING (op_id))
    ORDER BY request_id"""


@lru_cache(1 << 14)
def _text(value: str) -> str:
    """A name of a trace, as JSON."""
    return json.dumps(shown(value))


@lru_cache(1 << 14)
def _stage(name: str, kind: str, tid: int | None) -> str:
    notes = {"kind": kind} | ({"thread": tid} if tid is not None else {})
    return f'"name": {_text(name)}, "args": {json.dumps(notes)}'


def _event(phase: str, of: str, at_ns: int, rest: str) -> str:
    """``of``, ``rest``: members of its object, as JSON. Millions are written: no dictionary is made of each."""
    sign, at = ("-", -at_ns) if at_ns < 0 else ("", at_ns)
    return f'{{"ph": "{phase}", {of}, {rest}, "ts": {sign}{at // 1000}.{at % 1000:03d}}}'


def _known(about: dict[str, Any]) -> str:
    """The arguments that are known, as JSON."""
    return json.dumps({k: v for k, v in about.items() if v is not None})


def _named(pid: int, name: str) -> str:
    return json.dumps({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": shown(name)}})


def _op(op: OpDetail, first: int) -> Iterator[str]:
    assert op.end_ns is not None
    # an op that names no process belongs to none: 0 is the kernel's own
    pid = op.pid or 0
    of = f'"cat": "op", "id2": {{"local": "{op.op_id:#x}"}}, "pid": {pid}, "tid": {pid}'
    about: dict[str, Any] = {"op_id": op.op_id, "tainted": op.tainted, "unattributed_ns": op.unattributed_ns}
    about["object"] = shown(op.object) if op.object is not None else None
    name = f'"name": {_text(op.op_class or "op")}'
    yield _event("b", of, op.begin_ns - first, f'{name}, "args": {_known(about)}')
    states = iter(op.states)
    part = next(states, None)
    for seq, stage in enumerate(op.stages):
        begin = stage.begin_ns - first
        yield _event("b", of, begin, _stage(stage.stage, stage.kind, stage.tid))
        while part is not None and part.seq == seq:
            did = _stage(STATES[f"{part.state}_ns"][0], "state", part.tid)
            yield _event("b", of, part.begin_ns - first, did)
            yield _event("e", of, part.begin_ns - first + part.duration_ns, did)
            part = next(states, None)
        yield _event("e", of, begin + stage.duration_ns, f'"name": {_text(stage.stage)}')
    yield _event("e", of, op.end_ns - first, name)


def _requests(run: Run, first: int) -> Iterator[str]:
    names, pids = run.device_names(), dict[int, int]()
    (whole,) = run.row(f"SELECT count(*) FROM ({_REQUESTS})")
    for rows in fetched(run.con.execute(_REQUESTS), ROWS, whole):
        for dev, request_id, rwbs, sector, nr_sectors, *at in rows:
            steps = [(step.letter, ns - first) for step, ns in zip(STEPS, at, strict=True) if ns is not None]
            if not steps:
                continue
            if dev not in pids:
                pids[dev] = FIRST_DEVICE + len(pids)
                yield _named(pids[dev], f"device {device_name(names, dev)}")
            pid = pids[dev]
            of = f'"cat": "block", "id2": {{"local": "{request_id:#x}"}}, "pid": {pid}, "tid": {pid}'
            about = {"request_id": request_id, "sector": sector}
            about["bytes"] = nr_sectors * 512 if nr_sectors is not None else None
            name = f'"name": {_text(rwbs or "request")}'
            yield _event("b", of, steps[0][1], f'{name}, "args": {_known(about)}')
            for (a, begin), (b, end) in itertools.pairwise(steps):
                if end >= begin:
                    step = f'"name": "{a}2{b}"'
                    yield _event("b", of, begin, step)
                    yield _event("e", of, end, step)
            yield _event("e", of, max(ns for _, ns in steps), name)


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the complete ops among the selected; gives their number."""
    complete = which.also("o.complete")
    run.con.execute(f"CREATE OR REPLACE TEMP TABLE exported AS {complete.of('o.op_id')}", list(complete.parameters))
    (ops,) = run.row("SELECT count(*) FROM exported")
    first = run.start_ns()
    processes = run.rows(
        """SELECT coalesce(pid, 0), any_value(comm ORDER BY op_id) FROM ops SEMI JOIN exported USING (op_id)
           GROUP BY ALL ORDER BY ALL"""
    )
    named = (_named(pid, comm or f"process {pid}") for pid, comm in processes)
    events = itertools.chain.from_iterable(_op(op, first) for op in read_ops(run, complete, with_transitions=False))
    out.write(b'{"displayTimeUnit": "ns", "otherData": {"first_ns": "%d"}, "traceEvents": ' % first)
    write_list(out, itertools.chain(named, events, _requests(run, first)))
    out.write(b"}\n")
    return int(ops)
