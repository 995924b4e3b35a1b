# SPDX-License-Identifier: MIT
"""The time of the recorded programs' I/O: the time base of rates.

A program also reads its libraries and its configuration at the start, and writes a report at the end. The time base is
the time of nearly all of its work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.runs.run import Run

MOST = 0.95  # of the rows


class Ran(Value):
    """From ``begin_ns`` to ``end_ns`` of the run's clock; ``done``: how many of ``rows`` lie within."""

    begin_ns: int
    end_ns: int
    done: int
    rows: int


def time_of_most(run: Run, rows_sql: str, parameters: Sequence[object] = ()) -> Ran | None:
    """From the first begin to the last end of the kinds of rows that make 95 % of all rows, the most frequent kinds
    first; None without rows.

    ``rows_sql`` gives the columns ``who`` and ``what``, together a row's kind, ``begin_ns`` and ``end_ns``.
    """
    begin_ns, end_ns, done, rows = run.row(
        f"""WITH r AS ({rows_sql}),
            kinds AS (SELECT count(*) AS n, min(begin_ns) AS first, max(end_ns) AS last FROM r GROUP BY who, what),
            ranked AS (
              SELECT *, sum(n) OVER (ORDER BY n DESC, first ROWS UNBOUNDED PRECEDING) - n AS before
              FROM kinds),
            w AS (SELECT min(first) AS first, max(last) AS last FROM ranked
                  WHERE before < {MOST} * (SELECT count(*) FROM r))
            SELECT any_value(w.first), any_value(w.last),
                   count(*) FILTER (begin_ns >= w.first AND end_ns <= w.last), count(*) FROM r, w""",
        list(parameters),
    )
    return Ran(int(begin_ns), int(end_ns), int(done), int(rows)) if rows else None
