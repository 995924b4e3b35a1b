# SPDX-License-Identifier: MIT
"""The owners that block requests waited for, as a result: a row per owner and request. Takes the blame of each op."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.talk import talk
from opline_analyses.base.result_table import Column, ResultTable, share, text, time
from opline_analyses.base.text import count_of, device_name, us
from opline_analyses.block import io_filter
from opline_analyses.block.io_sources import requests
from opline_analyses.ops.interference import interference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opline_analyses.base.result_table import Part
    from opline_analyses.block.btt import Chosen
    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.ops.interference import Blame
    from opline_analyses.runs.run import Run

COLUMNS = (
    Column("op_id"), Column("request_id"), text("device"), text("rwbs"), text("owner"), Column("wait_ns"),
    Column("service_ns"),
)  # fmt: skip
SEEN = (text("owner", "    charged to"), time("wait_ns", "Q2D us"), time("service_ns", "D2C us"), share())


SORTS: dict[str, Callable[[Blame], int]] = {
    "request": lambda b: b.request_id,
    "waited": lambda b: b.queue_ns - b.issue_ns,
    "served": lambda b: b.issue_ns - b.complete_ns,
}


def of_ops(
    run: Run, filters: IoFilters, op: int | None, slowest: int | None, sort: str = "request", limit: int | None = None
) -> ResultTable:
    """For one op, or for the ``slowest`` ops with such requests; for each op the first ``limit`` requests in the order
    ``sort``. Raises OplineError for an unknown op.
    """
    rows = io_filter.rows_of(run, filters, requests(parts=True))
    chosen = io_filter.chosen_ids(rows)
    blamed = [
        (op_id, sorted(interference(run, op_id, chosen), key=SORTS[sort])[:limit])
        for op_id in _ops(run, op, slowest or 0, chosen)
    ]
    if chosen is not None and not any(found for _, found in blamed):
        talk("the options select no block request of these ops.")
    return result(run, blamed)


def _ops(run: Run, op: int | None, most: int, chosen: Chosen | None) -> list[int]:
    if op is not None:
        if not run.rows("SELECT 1 FROM ops WHERE op_id = ?", [op]):
            raise OplineError(f"The run has no op {op}.", exit_code=2)
        return [op]
    sql, parameters = chosen or ("SELECT request_id FROM requests", ())
    slowest = f"""SELECT op_id FROM ops
                  WHERE complete AND request_count > 0
                    AND op_id IN (SELECT op_id FROM links WHERE request_id IN ({sql}))
                  ORDER BY latency_ns DESC, op_id LIMIT ?"""
    return [op for (op,) in run.rows(slowest, [*parameters, max(0, most)])]


def result(run: Run, blamed: Sequence[tuple[int, list[Blame]]]) -> ResultTable:
    """``blamed``: the block requests of each op."""
    names = run.device_names()

    def rows() -> Iterator[list[object]]:
        for op, found in blamed:
            for b in found:
                for owner in b.wait + b.service:
                    parts = b.wait.get(owner, 0), b.service.get(owner, 0)
                    yield [op, b.request_id, device_name(names, b.dev), b.rwbs, owner, *parts]

    return ResultTable(
        COLUMNS, rows(),
        text=lambda _: (part for op, found in blamed for part in _lines(run, op, found, names)),
        records=lambda _: ({"op_id": op, "requests": [b.record() for b in found]} for op, found in blamed),
    )  # fmt: skip


def _lines(run: Run, op: int, found: list[Blame], names: dict[int, str]) -> Iterator[Part]:
    (latency,) = run.row("SELECT latency_ns FROM ops WHERE op_id = ?", [op])
    yield f"op {op}  {us(latency) or 'incomplete,'} us, {count_of(len(found), 'block request')} from Q to C"
    for b in found:
        wait, service = b.issue_ns - b.queue_ns, b.complete_ns - b.issue_ns
        ahead = count_of(b.ahead, "request")
        yield f"  request {b.request_id}  {device_name(names, b.dev)} {b.rwbs}: {ahead} ahead of it"
        owners: Counter[str] = b.wait + b.service
        whole = wait + service
        rows: list[list[object]] = [
            [f"    {owner}", b.wait.get(owner), b.service.get(owner), total / whole if whole else None]
            for owner, total in owners.most_common()
        ]
        rows.append(["    = measured" if b.sums else "    IS NOT measured", wait, service, 1.0])
        yield ResultTable(SEEN, rows, totals=1)
