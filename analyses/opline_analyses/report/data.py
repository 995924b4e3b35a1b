# SPDX-License-Identifier: MIT
"""What a page of one run holds: a head of plain JSON types, and a blob of columns (columns.py).

Takes an open run and a selection. Small runs are kept in full, every stage of every op; of larger ones each op is kept
rounded, the time of stages is summed per cell (cells.py), and as many ops are in detail as the page has room for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opline import memory
from opline.errors import OplineError
from opline.talk import shown
from opline.values import Value
from opline_analyses.base.colours import STATES, STATES_UNKNOWN
from opline_analyses.client import checks
from opline_analyses.ops.rows import (
    Column,
    StageRows,
    Sums,
    exact_sums,
    fingerprints,
    stage_rows,
    sums,
)
from opline_analyses.ops.stages import StageRow, StageTable, select_counted, stage_table
from opline_analyses.ops.thread_names import NO_THREAD
from opline_analyses.report.cells import CODES_PER_ROW, TICK_NS, cells_of, coarse_tick, sample_order
from opline_analyses.report.columns import Columns
from opline_analyses.report.detail import (
    Details,
    add_lists,
    add_requests,
    add_stages,
    group,
    requests_of,
    rows_of,
    states_of,
)
from opline_analyses.report.devices import add_devices
from opline_analyses.report.head import common_head, short_name, stage_head
from opline_analyses.report.kinds import add_kind, add_ops, add_threads, ids, with_kinds
from opline_analyses.report.ops import Ops, read_ops
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection
from opline_analyses.why.answer import answer
from opline_analyses.why.sets import choose, slowest_rule
from opline_analyses.why.tail import tail_blame
from opline_analyses.why.waits import waits_of
from opline_analyses.why.why import compare_sets

BLOB_LIMIT = 3_600_000  # bytes; base64 makes 4.8 MB of them
FULL_ROWS = 4_000_000  # rows of stages: more are not tried in full
FULL_OP_BYTES = 25  # of an op in full, at least: more ops than fit so are not tried
DETAIL, SLOWEST, FEWEST = 12_000, 2_000, 50
OPS_SHARE = 0.8  # of a page, at most, for what each op has
DETAIL_BYTES = 110  # of an op in detail, about


class PageData(Value):
    """The head, the blob, and the table of stages for who has no script (None: there is none)."""

    head: dict[str, Any]
    blob: bytes
    table: StageTable | None


def page_data(
    run: Run, which: Selection, tainted: bool = False, limit: int = BLOB_LIMIT, from_first_op: bool = False
) -> PageData:
    """The page of the selected ops. Raises OplineError where no op counts. ``limit``: bytes of the blob. Times count
    from the run's first event, as everywhere; ``from_first_op``: of a run that is laid beside another.
    """
    table = stage_table(run, which, tainted)
    (rows,) = run.row("SELECT count(*) FROM stages")
    memory.give_back()
    tested = _checks(run, which, table, rows)
    total = rows  # of the ops that are chosen
    if rows > FULL_ROWS:
        chosen = f"SELECT count(*) FROM stages WHERE op_id IN ({which.of('o.op_id')})"
        (total,) = run.row(chosen, which.parameters)
    memory.give_back()
    why = _why(run, which, tainted) if total <= FULL_ROWS else None
    select_counted(run, which, True)
    memory.give_back()
    ops = read_ops(run, run.first_op_ns() if from_first_op else run.start_ns())
    stages = _stages(run, table)
    number = {name: n for n, (name, _) in enumerate(stages)}
    memory.give_back()
    head = _head(run, ops, table, stages, tested, tainted)
    head["why"] = why
    lanes = Columns()
    whole = which == Selection()
    window = (head["first_ns"], head["span_ns"])
    head["devices"] = add_devices(lanes, run, ops.start_ns, window, whole)
    memory.give_back()
    columns: Columns | None = None
    if total <= FULL_ROWS and len(ops) * FULL_OP_BYTES <= limit:
        columns, parts = _full(run, ops, number, lanes.copy())
        if columns.size > limit:
            columns = None
    if columns is None:
        columns, parts = _rounded(run, ops, number, tainted, limit, lanes)
    head.update(parts)
    head["columns"] = columns.directory
    return PageData(head, columns.blob(), table)


def _stages(run: Run, table: StageTable) -> list[tuple[str, str]]:
    """The stages of all ops with their kinds: those that count in their order, then those of others only."""
    counted = [row.stage for row in table.stages]
    kinds = dict(run.rows("SELECT stage, min(kind) FROM stages GROUP BY stage ORDER BY stage"))
    others = [name for name in kinds if name not in set(counted)]
    if run.alone and others:  # those of the run's own ops; few rows, unlike the join of all
        theirs = "stages SEMI JOIN ops USING (op_id) WHERE list_contains(?, stage)"
        own = {name for (name,) in run.rows(f"SELECT DISTINCT stage FROM {theirs}", (others,))}
        others = [name for name in others if name in own]
    return [(name, kinds[name]) for name in (*counted, *others)]


def _checks(run: Run, which: Selection, table: StageTable, rows: int) -> list[checks.Check]:
    """Those that need nothing but the run: `opline coverage` has more."""
    law = checks.Check(
        "stages sum to latency",
        table.sums,
        f"of {table.ops} ops: {sum(s.total_ns for s in table.stages)} + {table.unattributed.total_ns} unattributed"
        f" = {table.latency.total_ns} ns",
        {},
    )
    mean = table.latency.mean_ns
    unknown = checks.unknown_share(table.unknown.total_ns / table.ops, mean)
    found = [law, checks.littles_law(run, which, None), unknown]
    if rows > FULL_ROWS:
        left_out = checks.Check("stages in order, widest unsplit stage", None, "`opline coverage` checks so many", {})
        return [*found, left_out]
    return [*found, checks.chain(run), checks.widest_unsplit(run)]


def _why(run: Run, which: Selection, tainted: bool) -> dict[str, Any] | None:
    """What `opline why` says of the slowest 1 %, and the latency from which on an op is one; None: too few ops."""
    try:
        sets = choose(run, which, slowest_rule("1%"), tainted)
        found = compare_sets(run, sets)
    except OplineError:
        return None
    said = answer(found, waits_of(run, sets), tail_blame(run, sets))
    return {"sentence": shown(said), "slow_from_ns": sets.slow_from_ns}


def _row(row: StageRow) -> dict[str, Any]:
    """A sum may be beyond 2^53: a text."""
    return {
        "count": row.count, "total_ns": str(row.total_ns), "p50_ns": row.p50_ns, "p90_ns": row.p90_ns,
        "p99_ns": row.p99_ns, "p999_ns": row.p999_ns, "max_ns": row.max_ns,
    }  # fmt: skip


def _head(
    run: Run, ops: Ops, table: StageTable, stages: list[tuple[str, str]], tested: list[checks.Check], tainted: bool
) -> dict[str, Any]:
    by_name = {row.stage: row for row in table.stages}
    last = int((ops.begin_ns + ops.latency_ns).max(initial=0))
    common = common_head(run, ops.start_ns)
    return {
        **common,
        "ops": len(ops),
        "tainted": int(ops.tainted.sum()),
        "counts_tainted": tainted,
        "counted": table.ops,
        "first_ns": int(ops.begin_ns[0]) if len(ops) else 0,
        "span_ns": last,
        "exact": table.exact,
        "stages": [
            {**stage_head(name, kind), **({"all": _row(by_name[name])} if name in by_name else {})}
            for name, kind in stages
        ],
        "no_thread": NO_THREAD,
        "unattributed": {**common["unattributed"], "all": _row(table.unattributed)},
        "latency": _row(table.latency),
        "incomplete_ns": ops.incomplete_ns.tolist(),
        "checks": [[c.name, c.passed, c.text] for c in tested],
    }


def _read_details(run: Run, ops: Ops, rows: StageRows, chosen: Column) -> Details:
    ids = ops.op_id[chosen]
    return Details(rows, states_of(run, ids), requests_of(run, ids))


def _details(columns: Columns, run: Run, ops: Ops, found: Details, chosen: Column) -> dict[str, Any]:
    begin = ops.begin_ns[chosen]
    paths = add_stages(columns, found.rows, begin + ops.start_ns, len(chosen), found.states)
    add_lists(columns, "paths", paths)
    names = add_requests(columns, found.requests, len(chosen), ops.start_ns, begin)
    devs = run.rows("SELECT DISTINCT dev FROM all_requests ORDER BY dev")
    known = run.device_names()
    return {
        **names,
        "states": list(STATES.values()) if found.states is not None else None,
        "states_unknown": STATES_UNKNOWN,
        "device_names": {str(dev): short_name(known.get(dev) or f"{dev >> 20}:{dev & 0xFFFFF}") for (dev,) in devs},
    }


def _full(run: Run, ops: Ops, number: dict[str, int], columns: Columns) -> tuple[Columns, dict[str, Any]]:
    add_ops(columns, ops)
    dimensions = [add_kind(columns, n, d) for n, d in enumerate(ops.dimensions)]
    columns.add("begin", ops.begin_ns, delta=True)
    columns.add("latency", ops.latency_ns)
    rows = stage_rows(run, ops.place, number)
    which, lists = group(rows, rows.tid, len(ops))
    columns.add("threads", which)
    threads = add_threads(columns, run, lists)
    every = np.arange(len(ops))
    parts = _details(columns, run, ops, _read_details(run, ops, rows, every), every)
    return columns, {"full": True, "dimensions": dimensions, **threads, "detailed": len(ops), **parts}


def _tick(ops: Ops, limit: int) -> int:
    """In which ticks a page has the begins of its ops, ns: where there is no room for all of them at TICK_NS with their
    numbers, and for what else a page has, so coarse ones that in many lie many ops.
    """
    cells = cells_of(ops.begin_ns, ops.latency_ns)
    columns = Columns()
    columns.add("tick", cells.tick, delta=True)
    columns.add("code", cells.code)
    add_ops(columns, ops)
    return TICK_NS if columns.size <= OPS_SHARE * limit else coarse_tick(ops.begin_ns)


def _rounded(
    run: Run, ops: Ops, number: dict[str, int], tainted: bool, limit: int, columns: Columns
) -> tuple[Columns, dict[str, Any]]:
    tick_ns = _tick(ops, limit)
    numbers = tick_ns == TICK_NS
    if not numbers:  # of one tick the shortest first: then codes, too, are small differences
        ops = ops.ordered(np.lexsort((ops.latency_ns, ops.begin_ns // tick_ns)))
    cells = cells_of(ops.begin_ns, ops.latency_ns, tick_ns)
    counts = np.ones(len(ops), bool) if tainted else ~ops.tainted
    order = sample_order(cells, ops.latency_ns, SLOWEST)[:DETAIL].copy()
    chosen = np.sort(order)
    counted = np.where(counts, cells.cell, -1)
    found = sums(run, ops.place, counted, len(cells.row), number, len(ops), chosen)
    rows = found.rows
    columns.add("tick", cells.tick, delta=True)
    columns.add("code", cells.code)
    columns.add("code_edges", cells.edges_ns, delta=True)
    columns.add("cell.column", cells.column, delta=True)
    columns.add("cell.row", cells.row)
    columns.add("cell.latency", exact_sums(cells.cell[counts], ops.latency_ns[counts], len(cells.row)))
    columns.add("cell.count", np.bincount(cells.cell[counts], minlength=len(cells.row)))
    columns.add("cell.stages", found.by_cell.T.ravel())
    which, lists = _thread_lists(run, ops, number, found)
    del found, counted
    memory.give_back()
    columns, said = with_kinds(columns, run, ops, cells, which, lists, limit - len(chosen) * DETAIL_BYTES, numbers)
    first = chosen
    memory.give_back()
    details = _read_details(run, ops, rows_of(rows, chosen, len(ops)), chosen)
    while True:
        page = columns.copy()
        page.add("detail.op", chosen, delta=True)
        if not numbers:
            page.add("detail.op_id", ids(ops.op_id[chosen]))
        page.add("detail.begin", ops.begin_ns[chosen] - cells.tick[chosen] * tick_ns)
        page.add("detail.latency", ops.latency_ns[chosen])
        page.add("detail.threads", which[chosen])
        places = np.searchsorted(first, chosen)
        parts = _details(page, run, ops, details.only(places, len(first)), chosen)
        if page.size <= limit or len(chosen) <= FEWEST:
            break
        room, taken = max(0, limit - columns.size), page.size - columns.size
        chosen = np.sort(order[: max(FEWEST, min(len(chosen) * 9 // 10, int(0.97 * len(chosen) * room / taken)))])
    return page, {
        "full": False, "detailed": len(chosen), "tick_ns": tick_ns, "codes_per_row": CODES_PER_ROW,
        "cell_ns": cells.width_ns, **said, **parts,
    }  # fmt: skip


def _thread_lists(run: Run, ops: Ops, number: dict[str, int], found: Sums) -> tuple[Column, list[list[int]]]:
    """Of each op which list of threads it has, and the lists, numbered by the first op that has each."""
    marks, firsts, inverse = np.unique(found.threads, return_index=True, return_inverse=True)
    lists: dict[int, list[int]] = {}
    rows = found.rows
    whole = fingerprints(rows.op, rows.seq, rows.tid, len(ops)) == found.threads
    known = np.unique(rows.op)
    known = known[whole[known]]
    _, at = np.unique(found.threads[known], return_index=True)
    for source, some in ((rows, known[at]), (None, firsts)):
        missing = [op for op in some.tolist() if int(found.threads[op]) not in lists]
        if missing and source is None:  # its rows lie far apart in the table
            place = np.full(len(ops.place), -1, np.int64)
            place[ops.op_id[missing]] = missing
            source = stage_rows(run, place, number)
        for op in missing:
            assert source is not None
            low, high = np.searchsorted(source.op, (op, op + 1))
            lists[int(found.threads[op])] = source.tid[low:high].tolist()
    rank = np.argsort(np.argsort(firsts))
    return rank[inverse], [lists[int(mark)] for mark in marks[np.argsort(firsts)]]
