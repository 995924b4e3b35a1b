# SPDX-License-Identifier: MIT
"""The block requests of a run, one row each, with the intervals of their lives and who owns them.

First come the numbers of the requests in their order, then their rows, `columns.RANGE` of them at a time: a query that
joins and sorts all of them would hold them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from opline.talk import passing
from opline_analyses.base.result_table import Column
from opline_analyses.base.text import device_name
from opline_analyses.runs import columns
from opline_analyses.runs.run import Run

if TYPE_CHECKING:
    import numpy as np

    Ids = np.ndarray[Any, np.dtype[np.int64]]

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

_VALUES = """
    SELECT request_id, coalesce(queue_ns, getrq_ns, first_issue_ns, complete_ns) AS at_ns, dev, NULL AS device, op_id,
           op_count, rwbs::VARCHAR AS rwbs, sector, nr_sectors * 512::BIGINT AS bytes, getrq_ns - queue_ns AS q2g_ns,
           insert_ns - getrq_ns AS g2i_ns, issue_ns - insert_ns AS i2d_ns, d2c_ns, q2c_ns, in_flight,
           coalesce(queue_tid, issue_tid) AS tid, coalesce(queue_comm, issue_comm)::VARCHAR AS comm, error,
           requeue_count AS requeues, bio_count AS bios, ambiguous,
           outcome::VARCHAR AS outcome, {owners} AS {name}, coalesce(later, false) AS later, cgroup::VARCHAR AS cgroup,
           place
    FROM (SELECT * FROM requests WHERE {these}) JOIN asked USING (request_id)
    LEFT JOIN (SELECT request_id, {of_all} AS owners, bool_and(later) AS later
               FROM (SELECT request_id, op_id, false AS later FROM links WHERE {these}
                     UNION ALL SELECT request_id, op_id, true FROM deferred WHERE {these})
               SEMI JOIN asked USING (request_id) GROUP BY request_id) USING (request_id)"""


class Wanted(NamedTuple):
    """Which requests, in which order."""

    only: tuple[str, tuple[object, ...]] | None = None  # SQL that gives their request_id, and its parameters
    owned_only: bool = False
    order: str = "time"
    limit: int | None = None


def ids_of(run: Run, wanted: Wanted) -> Ids:
    """The numbers of the requests, in their order."""
    where: list[str] = ["true"]
    parameters: list[object] = []
    if wanted.only is not None:
        where.append(f"request_id IN ({wanted.only[0]})")
        parameters += wanted.only[1]
    if wanted.owned_only:
        where.append("op_count > 0")
    limit = "" if wanted.limit is None else f" LIMIT {wanted.limit}"
    sql = f"SELECT request_id FROM requests WHERE {' AND '.join(where)} ORDER BY {ORDERS[wanted.order]}{limit}"
    found: Ids = columns.queried(run, sql, parameters)["request_id"]
    return found


def in_parts(run: Run, ids: Ids, first_owner: bool = False) -> Iterator[str]:
    """SQL of the rows of some of these requests at a time, with the columns of NAMES and ``place``, their order; with
    ``first_owner`` the least of the ``ops``, as ``owner``. For a query before the next part is asked for.
    """
    import numpy as np

    for at in passing(range(0, len(ids), columns.RANGE)):
        part = ids[at : at + columns.RANGE]
        columns.give(run, "asked", request_id=part, place=np.arange(len(part)))
        these = f"request_id BETWEEN {part.min()} AND {part.max()}"
        if first_owner:
            yield _VALUES.format(these=these, owners="owners", name="owner", of_all="min(op_id)")
        else:
            of_all = "list_sort(list(DISTINCT op_id))"
            yield _VALUES.format(these=these, owners="coalesce(owners, [])", name="ops", of_all=of_all)


def requests(run: Run, wanted: Wanted) -> Iterator[list[Any]]:
    """A row per request, its values as in NAMES; None is unknown. Times are ns; intervals need both their ends.

    ``ops``: those of its ops that are known one by one; ``later``: none of them waited for it (write-back).

    With scheduler none there is no insert: then g2i and i2d are absent, and the wait from G to D is q2c - q2g - d2c.
    """
    names = run.device_names()
    dev, device = NAMES.index("dev"), NAMES.index("device")
    for sql in in_parts(run, ids_of(run, wanted)):
        rows = run.con.execute(f"SELECT * EXCLUDE (place) FROM ({sql}) ORDER BY place")
        for batch in columns.fetched(rows, 4096):
            for values in batch:
                row = [*values]
                row[device] = device_name(names, row[dev])
                yield row
