# SPDX-License-Identifier: MIT
"""The names of threads, as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.runs.columns import ABSENT

if TYPE_CHECKING:
    from typing import Any

    from opline_analyses.runs.run import Run

NO_THREAD = "(no thread)"  # a stage that a completion ends


def names_of_threads(run: Run, tids: list[int], host: str | None = None) -> dict[int, str]:
    """The name that a thread had most often at the points that it passed, bios that it queued, or requests that it
    issued; and its number. ``host``: that of the threads, in a joined run.
    """
    wanted: Any = [t for t in tids if t != ABSENT]
    # A bio names no host, its request does: a join that only a joined run needs.
    its_host, of_bios = (
        ("true", "bios") if host is None else ("host = $2", "bios b LEFT JOIN all_requests r USING (request_id)")
    )
    rows = run.rows(
        f"""SELECT tid, comm FROM (SELECT tid, comm, sum(n) AS n FROM
             (SELECT tid, comm, count(*) AS n FROM transitions WHERE {its_host} GROUP BY ALL
              UNION ALL SELECT tid, comm, count(*) FROM {of_bios} WHERE {its_host} GROUP BY ALL
              UNION ALL SELECT issue_tid, issue_comm, count(*) FROM requests WHERE {its_host} GROUP BY ALL)
             WHERE tid IN (SELECT unnest($1::BIGINT[])) AND comm IS NOT NULL GROUP BY ALL)
           QUALIFY row_number() OVER (PARTITION BY tid ORDER BY n DESC, comm) = 1""",
        [wanted] if host is None else [wanted, host],
    )
    names = dict(rows)
    return {t: f"{names[t]} {t}" if t in names else f"thread {t}" for t in wanted} | {ABSENT: NO_THREAD}
