# SPDX-License-Identifier: MIT
"""The block requests of a run, one row each, with the intervals of their lives and who owns them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from opline_analyses.base.result_table import Column
from opline_analyses.base.text import device_name
from opline_analyses.runs.run import Run

ORDERS = {
    "time": "coalesce(first_issue_ns, queue_ns, getrq_ns, complete_ns), request_id",
    "q2c": "q2c_ns DESC NULLS LAST, request_id",
    "d2c": "d2c_ns DESC NULLS LAST, request_id",
    "size": "nr_sectors DESC NULLS LAST, request_id",
}

NAMES = (
    "request_id", "at_ns", "dev", "device", "op_id", "op_count", "rwbs", "sector", "bytes", "q2g_ns", "g2i_ns",
    "i2d_ns", "d2c_ns", "q2c_ns", "in_flight", "tid", "comm", "error", "requeues", "bios", "ambiguous", "outcome",
    "ops", "later", "cgroup",
)  # fmt: skip
TYPES = dict.fromkeys(("device", "rwbs", "comm", "outcome", "cgroup"), "text") | dict.fromkeys(
    ("ambiguous", "later"), "bool"
)
TYPES["ops"] = "list"
COLUMNS = tuple(Column(name, type=TYPES.get(name, "i64")) for name in NAMES)


class Wanted(NamedTuple):
    """Which requests, in which order."""

    only: tuple[str, tuple[object, ...]] | None = None  # SQL that gives their request_id, and its parameters
    owned_only: bool = False
    order: str = "time"
    limit: int | None = None


def requests(run: Run, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """One dict per request, keys as in NAMES; None is unknown. Times are ns; intervals need both their ends.

    ``ops``: those of its ops that are known one by one; ``later``: none of them waited for it (write-back).

    With scheduler none there is no insert: then g2i and i2d are absent, and the wait from G to D is q2c - q2g - d2c.
    """
    where: list[str] = ["true"]
    parameters: list[object] = []
    if wanted.only is not None:
        where.append(f"request_id IN ({wanted.only[0]})")
        parameters += wanted.only[1]
    if wanted.owned_only:
        where.append("op_count > 0")
    limit = "" if wanted.limit is None else f" LIMIT {wanted.limit}"
    names = run.device_names()
    rows = run.con.execute(
        f"""WITH served AS (SELECT request_id, op_id, false AS later FROM links
                           UNION ALL SELECT request_id, op_id, true FROM deferred),
                 owners AS (SELECT request_id, list_sort(list(DISTINCT op_id)) AS ops, bool_and(later) AS later
                            FROM served WHERE request_id IS NOT NULL GROUP BY request_id)
            SELECT request_id, coalesce(queue_ns, getrq_ns, first_issue_ns, complete_ns), dev, NULL, op_id, op_count,
                   rwbs, sector, nr_sectors * 512::BIGINT, getrq_ns - queue_ns, insert_ns - getrq_ns,
                   issue_ns - insert_ns, d2c_ns, q2c_ns, in_flight, queue_tid, queue_comm, error,
                   requeue_count, bio_count, ambiguous, outcome, coalesce(ops, []), coalesce(later, false),
                   cgroup::VARCHAR
            FROM requests LEFT JOIN owners USING (request_id)
            WHERE {" AND ".join(where)} ORDER BY {ORDERS[wanted.order]}{limit}""",
        parameters,
    )
    while batch := rows.fetchmany(4096):
        for values in batch:
            row = dict(zip(NAMES, values, strict=True))
            row["device"] = device_name(names, row["dev"])
            yield row
