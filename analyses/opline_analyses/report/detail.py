# SPDX-License-Identifier: MIT
"""Ops in detail: every stage of an op with its thread, to the nanosecond, and its block requests.

Takes stage rows; adds columns. The list of an op's stages is one of few, its *path*; so is the list of its threads. The
durations are written path by path, and in a path stage by stage: what lies together resembles each other.

    durations, gaps, states, parts: for path p with n ops and L stages, L times n numbers; of op number r in p, stage
    j, at j * n + r
    part.state, part.duration: of each stage so many as `parts` says, in that order and of time
"""

from __future__ import annotations

import numpy as np

from opline.steps import STEPS
from opline.store.arrays import gathered
from opline.values import Value
from opline_analyses.ops.oplist import REQUEST_COLUMNS, REQUESTS
from opline_analyses.ops.rows import Column, StageRows, fingerprints
from opline_analyses.report.columns import Columns, zigzag
from opline_analyses.report.ops import listed
from opline_analyses.runs.run import Run

ABSENT_TIME = -1
_REQUEST_STEPS = {step.letter.lower(): step.column for step in STEPS}
_KNOWN = ("sector", "nr_sectors", "in_flight")
STATE_COLUMNS = ("on_cpu", "runnable", "blocked_io")  # blocked otherwise: the rest of the stage
_STATE_NUMBERS = "list_position(['on_cpu', 'runnable', 'blocked_io', 'blocked'], state) - 1"


class StageStates(Value):
    """What the threads of some stages did, a row per stage: the sums of STATE_COLUMNS, the first one and one more, 0
    where they are unknown; and of stages with more than one state when: how many ``parts``, their states and durations.
    """

    sums: list[Column]
    parts: Column
    state: Column
    duration_ns: Column

    def taken(self, order: Column) -> StageStates:
        """These of the stages, in this order."""
        begins = np.cumsum(self.parts) - self.parts
        many = self.parts[order]
        first = np.repeat(begins[order] - (np.cumsum(many) - many), many)
        places = first + np.arange(len(first))
        return StageStates([s[order] for s in self.sums], many, self.state[places], self.duration_ns[places])


def group(rows: StageRows, items: Column, ops: int) -> tuple[Column, list[list[int]]]:
    """The distinct lists of ``items`` in the order of the first op that has each; and of each op, which it has."""
    marks = fingerprints(rows.op, rows.seq, items, ops)
    _, firsts, inverse = np.unique(marks, return_index=True, return_inverse=True)
    rank = np.empty(len(firsts), np.int64)
    rank[np.argsort(firsts)] = np.arange(len(firsts))
    which = rank[inverse]
    edges = np.searchsorted(rows.op, np.arange(ops + 1))
    lists = [items[edges[op] : edges[op + 1]].tolist() for op in np.sort(firsts)]
    flat = np.array([item for one in lists for item in one], items.dtype)
    begins = np.cumsum([0, *(len(one) for one in lists)])[:-1]
    if len(rows.op) and not np.array_equal(flat[begins[which[rows.op]] + rows.seq], items):
        raise AssertionError("two lists of stages have one fingerprint")
    return which, lists


def states_of(run: Run, op_ids: Column) -> StageStates | None:
    """Of the stages of these ops, in the ops' order and by seq. None: the run has no thread's states."""
    if not run.rows("SELECT 1 FROM stages WHERE on_cpu_ns IS NOT NULL LIMIT 1"):
        return None
    run.con.execute("CREATE OR REPLACE TEMP TABLE chunk AS SELECT unnest(?::BIGINT[]) AS op_id", [op_ids.tolist()])
    timed = gathered(
        run.con.sql(
            f"""SELECT op_id, seq, {_STATE_NUMBERS} AS state, duration_ns FROM states SEMI JOIN chunk USING (op_id)
                QUALIFY count(*) OVER (PARTITION BY op_id, seq) > 1 ORDER BY op_id, seq, begin_ns"""
        )
    )
    found = gathered(
        run.con.sql(
            """WITH timed AS (
                   SELECT op_id, seq, count(*) AS parts FROM states SEMI JOIN chunk USING (op_id)
                   GROUP BY ALL HAVING parts > 1)
               SELECT op_id, seq, coalesce(on_cpu_ns + 1, 0) AS on_cpu, coalesce(runnable_ns, 0) AS runnable,
                      coalesce(blocked_io_ns, 0) AS blocked_io, coalesce(parts, 0) AS parts
               FROM stages SEMI JOIN chunk USING (op_id) LEFT JOIN timed USING (op_id, seq) ORDER BY op_id, seq"""
        )
    )
    whole = {name: found.numbers(name).filled(np.int64) for name in ("op_id", "seq", "parts", *STATE_COLUMNS)}
    flat = [timed.numbers(name).filled(np.int64) for name in ("state", "duration_ns")]
    by_id = np.argsort(op_ids)
    place = by_id[np.searchsorted(op_ids[by_id], whole["op_id"])] if len(op_ids) else whole["op_id"]
    states = StageStates([whole[name] for name in STATE_COLUMNS], whole["parts"], *flat)
    return states.taken(np.lexsort((whole["seq"], place)))


def add_stages(
    columns: Columns, rows: StageRows, begin_ns: Column, ops: int, states: StageStates | None
) -> list[list[int]]:
    """Adds paths, durations and states of ``ops`` ops. ``begin_ns``: of each op, of the run's clock; ``states``: as
    states_of gives them. Gives the paths.
    """
    which, paths = group(rows, rows.stage.astype(np.int64), ops)
    before = np.concatenate(([0], (rows.begin_ns + rows.duration_ns)[:-1])) if len(rows.op) else rows.begin_ns
    before = np.where(rows.seq == 0, begin_ns[rows.op], before) if len(rows.op) else before
    order = np.lexsort((rows.op, rows.seq, which[rows.op])) if len(rows.op) else np.zeros(0, np.int64)
    columns.add("detail.path", which)
    columns.add("detail.durations", rows.duration_ns[order])
    columns.add("detail.gaps", zigzag((rows.begin_ns - before)[order]))
    if states is not None:
        ordered = states.taken(order)
        for name, values in zip(STATE_COLUMNS, ordered.sums, strict=True):
            columns.add(f"detail.{name}", values)
        columns.add("detail.parts", ordered.parts)
        columns.add("part.state", ordered.state)
        columns.add("part.duration", ordered.duration_ns)
    return paths


def requests_of(run: Run, op_ids: Column) -> dict[str, Column]:
    """The block requests of these ops as columns, in the ops' order and of Q: ``op`` is the number of the op, from 0;
    ABSENT_TIME: not known.
    """
    run.con.execute("CREATE OR REPLACE TEMP TABLE chunk AS SELECT unnest(?::BIGINT[]) AS op_id", [op_ids.tolist()])
    span = {"low": int(op_ids.min()), "high": int(op_ids.max())} if len(op_ids) else {"low": 0, "high": -1}
    named = f"l({', '.join(('op_id', *REQUEST_COLUMNS))})"
    # a table of its own: a join knows then that it is the small side
    run.con.execute(f"CREATE OR REPLACE TEMP TABLE theirs AS SELECT * FROM ({REQUESTS.format(**span)}) AS {named}")
    found = run.con.execute(
        """SELECT l.*, r.op_count, r.in_flight FROM theirs l JOIN requests r USING (request_id)
           ORDER BY l.op_id, l.queue_ns, l.request_id"""
    ).fetchnumpy()

    def whole(name: str, absent: int = ABSENT_TIME) -> Column:
        return np.asarray(np.ma.filled(np.ma.asarray(found[name]).astype(np.int64), absent))

    by_id = np.argsort(op_ids)
    op = by_id[np.searchsorted(op_ids[by_id], whole("op_id"))] if len(op_ids) else whole("op_id")
    order = np.argsort(op, kind="stable")
    columns = {name: whole(name)[order] for name in (*_REQUEST_STEPS.values(), *_KNOWN)}
    columns |= {name: whole(name, 0)[order] for name in ("op_count", "shared", "ambiguous", "dev")}
    flags = [str(f) if isinstance(f, str) else "?" for f in np.ma.filled(np.ma.asarray(found["rwbs"], object), "?")]
    return {"op": op[order], "rwbs": np.array(flags, object)[order], **columns}


def add_requests(
    columns: Columns, found: dict[str, Column], ops: int, start_ns: int, begin_ns: Column
) -> dict[str, list[str]]:
    """Adds the block requests of ``ops`` ops, as requests_of gives them. ``begin_ns``: of each op, from ``start_ns``.

    A step's time is written as its distance from the step before that was seen (the first one's: from the op's begin),
    zigzag and one more; 0: not seen. Gives the names of flags.
    """
    op = found["op"]
    columns.add("requests.per_op", np.bincount(op, minlength=ops))
    last = begin_ns[op] + start_ns if len(op) else op
    for letter, name in _REQUEST_STEPS.items():
        at = found[name]
        seen = at != ABSENT_TIME
        columns.add(f"requests.{letter}", np.where(seen, zigzag(at - last) + np.uint64(1), np.uint64(0)))
        last = np.where(seen, at, last)
    for name in _KNOWN:
        columns.add(f"requests.{name}", (found[name] + 1).view(np.uint64))
    columns.add("requests.op_count", found["op_count"])
    columns.add("requests.shared", found["shared"] + 2 * found["ambiguous"])
    columns.add("requests.dev", found["dev"])
    flags = found["rwbs"].tolist()
    names = sorted(set(flags))
    number = {name: n for n, name in enumerate(names)}
    columns.add("requests.rwbs", np.array([number[f] for f in flags], np.int64))
    return {"rwbs": names}


class Details(Value):
    """All of some ops: ``rows`` of their stages, ``states`` as states_of gives them, ``requests`` as requests_of."""

    rows: StageRows
    states: StageStates | None
    requests: dict[str, Column]

    def only(self, wanted: Column, ops: int) -> Details:
        """Those of some of the ops, numbered anew: ``wanted`` are their numbers, rising, of ``ops``."""
        new = np.full(ops, -1, np.int64)
        new[wanted] = np.arange(len(wanted))
        kept = new[self.rows.op] >= 0
        of_requests = new[self.requests["op"]] >= 0
        requests = {name: column[of_requests] for name, column in self.requests.items()}
        requests["op"] = new[requests["op"]]
        states = None if self.states is None else self.states.taken(np.flatnonzero(kept))
        return Details(rows_of(self.rows, wanted, ops), states, requests)


def rows_of(rows: StageRows, wanted: Column, ops: int) -> StageRows:
    """The rows of these of the ops, numbered anew."""
    new = np.full(ops, -1, np.int64)
    new[wanted] = np.arange(len(wanted))
    kept = new[rows.op] >= 0
    columns = (rows.seq, rows.stage, rows.begin_ns, rows.duration_ns, rows.tid)
    return StageRows(new[rows.op[kept]], *(column[kept] for column in columns))


def add_lists(columns: Columns, name: str, lists: list[list[int]]) -> None:
    """Lists of numbers: their lengths, and the items."""
    lengths, items = listed(lists)
    columns.add(f"{name}.lengths", lengths)
    columns.add(f"{name}.items", items)
