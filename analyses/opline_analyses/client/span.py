# SPDX-License-Identifier: MIT
"""The ops behind a client's figures: without work long before or after the measured time.

Takes a run, the selected ops and the client's report; gives the first and the last begin of these ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opline_analyses.client.client_report import ClientReport
    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

ROUNDING_NS = 1_000_000  # fio's time is in milliseconds
FEW = 0.01  # of the ops: so many may be left out where the client says neither how many nor how long
PAUSE = 0.01  # of the whole: where nothing is in flight for so long the client has done something else


class Span(NamedTuple):
    """The ``inside`` ops begin from ``first_ns`` to ``last_ns``; the ``outside`` ops of the selection do not."""

    first_ns: int
    last_ns: int
    inside: int
    outside: int

    def of(self, which: Selection) -> Selection:
        """The selected ops inside."""
        return which.also("o.begin_ns BETWEEN ? AND ?", self.first_ns, self.last_ns)


def client_span(run: Run, which: Selection, client: ClientReport) -> Span | None:
    """None: all of the selected ops are meant, as far as can be told.

    A client that says how long it ran means the ops of the fullest window of that length, where they are nearer to its
    own count than all are; one that says only how many, so many in a row; one that says neither, what lies between two
    pauses in which it had nothing in flight, if that is all but a few. After a ramp what it counts are its last ops.
    """
    run.con.execute(
        f"""CREATE OR REPLACE TEMP TABLE spanned AS
            SELECT o.begin_ns, coalesce(o.end_ns, o.begin_ns) AS end_ns FROM ops o WHERE {which.where}""",
        which.parameters,
    )
    (total,) = run.row("SELECT count(*) FROM spanned")
    if total == client.count:
        return None
    if client.seconds and client.ramp_seconds:
        found = _widest(
            run,
            f"""SELECT min(begin_ns) AS first, max(begin_ns) AS last, count(*) AS n FROM spanned
                WHERE begin_ns >= (SELECT max(end_ns) FROM spanned) - {round(client.seconds * 1e9)}""",
        )
    elif client.seconds and client.count:
        length_ns = round(client.seconds * 1e9) + ROUNDING_NS
        found = _fullest(run, length_ns)
        if found is None or abs(found[2] - client.count) >= abs(total - client.count):
            return None
    elif client.count and client.count < total <= (1 + FEW) * client.count + 1:
        found = _widest(
            run,
            f"""SELECT begin_ns AS first, lead(begin_ns, {client.count - 1}) OVER (ORDER BY begin_ns) AS last,
                       {client.count} AS n FROM spanned
                QUALIFY last IS NOT NULL ORDER BY last - first, first LIMIT 1""",
        )
    elif not client.count and not client.seconds:
        found = _widest(
            run,
            f"""WITH o AS (SELECT *, begin_ns - max(end_ns) OVER (ORDER BY begin_ns, end_ns
                                         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS pause FROM spanned),
                     whole AS (SELECT max(end_ns) - min(begin_ns) AS ns FROM spanned),
                     p AS (SELECT begin_ns, count(*) FILTER (pause > {PAUSE} * ns) OVER (ORDER BY begin_ns, end_ns)
                                  AS piece FROM o, whole)
                SELECT min(begin_ns) AS first, max(begin_ns) AS last, count(*) AS n FROM p
                GROUP BY piece ORDER BY n DESC, first LIMIT 1""",
        )
        if found is None or found[2] < (1 - FEW) * total:
            return None
    else:
        return None
    return Span(*found, total - found[2]) if found is not None and found[2] < total else None


def _widest(run: Run, sql: str) -> tuple[int, int, int] | None:
    rows = run.rows(sql)
    return (int(rows[0][0]), int(rows[0][1]), int(rows[0][2])) if rows else None


def _fullest(run: Run, length_ns: int) -> tuple[int, int, int] | None:
    """The first window of this length with the most begins: its first and last begin, and their number. Not in SQL: a
    window of ranges takes DuckDB 40 s for 2 million ops.
    """
    import numpy as np

    from opline_analyses.runs.columns import queried

    begins = queried(run, "SELECT begin_ns FROM spanned ORDER BY begin_ns")["begin_ns"]
    if not len(begins):
        return None
    after = np.searchsorted(begins, begins + length_ns, "right")
    numbers = after - np.searchsorted(begins, begins, "left")
    at = int(numbers.argmax())
    return int(begins[at]), int(begins[after[at] - 1]), int(numbers[at])
