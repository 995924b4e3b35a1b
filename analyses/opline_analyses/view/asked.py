# SPDX-License-Identifier: MIT
"""The data for the page of a large run: the head with the cells of the whole run, and an answer to each question.

Answers are JSON of plain types. Sums are texts: a sum may exceed 2^53.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from opline_analyses.client.checks import Check, littles_law
from opline_analyses.ops.rows import Column
from opline_analyses.ops.thread_names import NO_THREAD
from opline_analyses.report.columns import Columns
from opline_analyses.report.devices import add_devices
from opline_analyses.report.head import common_head, short_name, stage_head
from opline_analyses.report.one import ops_data
from opline_analyses.view.kinds import FAST, KINDS, SLOW, labels

if TYPE_CHECKING:
    from opline_analyses.view.tables import Region, StageSums, Tables

COLUMNS = 700  # of the first picture
MOST_COLUMNS = 4000
LISTED = 500
MOST_OPS = 2000  # in detail, per answer
MOST_VALUES = 60  # of a kind, in an answer


def cells(tables: Tables, region: Region, columns: int) -> tuple[dict[str, Any], Columns]:
    """The ops of an interval as cells."""
    found = tables.cells(region, max(1, min(columns, MOST_COLUMNS)))
    written = Columns()
    written.add("cell.at", found.at, delta=True)
    written.add("cell.count", found.count)
    written.add("cell.tainted", found.tainted)
    written.add("code_edges", tables.edges_ns, delta=True)
    low, high, usual, total = tables.extent(region)
    said = {
        "low_ns": low, "high_ns": high, "usual_ns": usual, "total": total,
        "from_ns": region.t0, "to_ns": region.t1, "width_ns": found.width_ns, "codes": found.codes,
        "most_ns": found.most_ns, "without": found.without,
    }  # fmt: skip
    return said, written


def sent(head: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """A head with its columns, in JSON."""
    return {"head": {**head, "columns": columns.directory}, "columns": base64.b64encode(columns.blob()).decode()}


def page_head(tables: Tables, whole: Region) -> tuple[dict[str, Any], Columns]:
    """The head of the page, and the cells of the whole run."""
    said, columns = cells(tables, whole, COLUMNS)
    run = tables.run
    (without_end,) = run.row("SELECT count(*) FROM ops WHERE NOT complete")
    begins = run.rows(
        "SELECT begin_ns - ? FROM ops WHERE NOT complete ORDER BY begin_ns LIMIT 10000", [tables.start_ns]
    )
    head = common_head(run, tables.start_ns)
    counted = int(np.count_nonzero(tables.counts))
    head.update(
        {
            "asked": True,
            "full": False,
            "ops": len(tables),
            "tainted": int(tables.tainted.sum()),
            "counts_tainted": bool(tables.counts.all()) and bool(tables.tainted.any()),
            "counted": counted,
            "first_ns": tables.first_ns,
            "span_ns": tables.span_ns,
            "stages": [stage_head(name, kind) for name, kind in tables.stages],
            "no_thread": NO_THREAD,
            "latency": {"count": counted, "total_ns": str(tables.total_ns)},
            "incomplete_ns": [t for (t,) in begins],
            "incomplete": without_end,
            "checks": [],  # asked for
            "cells": said,
            "detailed": len(tables),
        }
    )
    return head, columns


def region_answer(tables: Tables, region: Region) -> dict[str, Any]:
    """The sums of a region, and the region's slowest ops."""
    places = tables.marked(region)
    sums = tables.sums(places)
    slowest = tables.slowest(region, places, LISTED)
    return {
        "marked": len(places),
        **_said(sums),
        "all": _said(tables.all()),
        "list": _listed(tables, slowest, region),
    }


def _said(sums: StageSums) -> dict[str, Any]:
    return {"ops": sums.ops, "latency": str(sums.latency_ns), "stages": [str(v) for v in sums.stages_ns]}


def _listed(tables: Tables, places: Column, region: Region) -> list[list[Any]]:
    """For each op: op_id, begin, latency, drawn value, class, number and time of the widest stage, tainted."""
    if not len(places):
        return []
    classes = dict(tables.ask("SELECT op_id, class FROM ops SEMI JOIN marked USING (op_id)", marked=places).fetchall())
    widest = {
        op: (stage, ns)
        for op, stage, ns in tables.ask(
            """SELECT op_id, arg_max(stage, duration_ns), max(duration_ns) FROM stages SEMI JOIN marked USING (op_id)
               GROUP BY op_id""",
            marked=places,
        ).fetchall()
    }
    number = {name: n for n, (name, _) in enumerate(tables.stages)}
    values = tables.values(region.stage)[0]
    found = []
    for place in places.tolist():
        op = int(tables.op_id[place])
        stage, ns = widest.get(op, (None, None))
        found.append(
            [
                op, int(tables.begin_ns[place]), int(tables.latency_ns[place]), int(values[place]),
                short_name(classes.get(op) or ""), None if stage is None else number[stage], ns,
                bool(tables.tainted[place]),
            ]
        )  # fmt: skip
    return found


def one_op(tables: Tables, region: Region, linear: bool) -> dict[str, Any]:
    """The op nearest to the middle of a region, as a list; an empty region has none."""
    op = tables.nearest(region, linear)
    places = np.zeros(0, np.int64) if op is None else tables.place[[op]]
    return {"list": _listed(tables, places, region)}


def of_id(tables: Tables, op: int, region: Region) -> dict[str, Any]:
    """An op by its op_id, as a list; empty without such a complete op."""
    known = 0 <= op < len(tables.place) and tables.place[op] >= 0
    places = tables.place[[op]] if known else np.zeros(0, np.int64)
    return {"list": _listed(tables, places, region)}


def window_answer(tables: Tables, region: Region, most: int) -> dict[str, Any]:
    """The ops in flight in the region's time as data of a page, at most ``most`` (and MOST_OPS) of them, evenly chosen;
    and the total number.
    """
    places = tables.during(region)
    most = max(1, min(most, MOST_OPS))
    some = places if len(places) <= most else places[np.arange(most) * len(places) // most]
    return {"total": len(places), **sent(*ops_data(tables.run, tables.op_id[some], tables.start_ns))}


def who_answer(tables: Tables, region: Region, slow: bool) -> dict[str, Any]:
    """The difference between a region's ops and all ops. Per kind: name, whether an op may have several values, and by
    value: the label, ops of the region, all ops, and the value's number (None: unknown value).
    """
    places = tables.marked(region)
    kinds = []
    for kind in SLOW if slow else FAST:
        known = tables.known(kind)
        number = {value: n for n, value in enumerate(known)}
        of_region = dict(tables.who(kind, places, MOST_VALUES))
        values = list(dict.fromkeys((*of_region, *list(known)[:MOST_VALUES])))[: 2 * MOST_VALUES]
        missing = [v for v in values if v not in of_region]
        if missing and len(of_region) >= MOST_VALUES:  # values below the most frequent ones have a count as well
            whole = dict(tables.who(kind, places, len(known) + MOST_VALUES))
            of_region.update({v: whole[v] for v in missing if v in whole})
        rows = [
            [label, of_region.get(v, 0), known.get(v, of_region.get(v, 0)), number.get(v)]
            for v, label in zip(values, labels(tables.run, kind, values), strict=True)
        ]
        if [r[0] for r in rows] == [None]:
            continue
        kinds.append({"name": kind.name, "kind": KINDS.index(kind), "several": kind.several, "values": rows,
                      "distinct": len(known)})  # fmt: skip
    return {"marked": len(places), "ops": len(tables), "kinds": kinds}


def checks_answer(tables: Tables) -> dict[str, Any]:
    """The checks that need only the run: the checks of a page without the two that read every stage of every op."""
    sums = tables.all()
    stages = sum(sums.stages_ns)
    rest = tables.unattributed_ns
    law = Check(
        "stages sum to latency",
        stages + rest == sums.latency_ns,
        f"of {sums.ops} ops: {stages} + {rest} unattributed = {sums.latency_ns} ns",
        {},
    )
    found = [law, littles_law(tables.run, tables.chosen, None)]
    return {"checks": [[c.name, c.passed, c.text] for c in found]}


def devices_answer(tables: Tables, region: Region) -> dict[str, Any]:
    """The block devices in the region's time."""
    columns = Columns()
    found = add_devices(columns, tables.run, tables.start_ns, (region.t0, region.t1))
    return sent({"devices": found}, columns)
