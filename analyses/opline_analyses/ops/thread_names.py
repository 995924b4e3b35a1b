# SPDX-License-Identifier: MIT
"""The names of threads for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opline.store.arrays import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from opline_analyses.ops.rows import Column
    from opline_analyses.runs.run import Run

NO_THREAD = "(no thread)"  # a stage ended by a completion
_HOST_BIT = 40  # a thread of a joined run is one negative number: the host's number is above this bit


def thread_keys(tid: Column, host: Column) -> Column:
    """One number for each thread of a joined run. ``tid``: ABSENT if unknown; ``host``: -1 likewise."""
    own = np.where(tid == ABSENT, 0, tid + 1)
    return np.where(host < 0, tid, -((host.astype(np.int64) + 1 << _HOST_BIT) + own))


def host_of_key(key: int) -> int:
    """The host's number; -1: unknown, or a run of one host."""
    return -1 if key == ABSENT or key >= 0 else (-key >> _HOST_BIT) - 1


def names_of_keys(run: Run, keys: Iterable[int]) -> dict[int, str]:
    """The names of threads by their keys: HOST:NAME in a joined run, as for devices."""
    by_host: dict[int, dict[int, int]] = {}
    for key in keys:
        own = key if host_of_key(key) < 0 else ((-key & (1 << _HOST_BIT) - 1) - 1)
        by_host.setdefault(host_of_key(key), {})[key] = ABSENT if own == -1 else own
    hosts = run.hosts() if any(host >= 0 for host in by_host) else []
    found = {}
    for number, tids in by_host.items():
        host = None if number < 0 else hosts[number]
        names = names_of_threads(run, list(tids.values()), host)
        found.update({key: names[tid] if host is None else f"{host}:{names[tid]}" for key, tid in tids.items()})
    return found


def names_of_threads(run: Run, tids: list[int], host: str | None = None) -> dict[int, str]:
    """The most frequent name of a thread at its points, queued bios, or issued requests; and the thread's number.
    ``host``: of the threads, in a joined run.
    """
    wanted: Any = [t for t in tids if t != ABSENT]
    # A bio names no host, but the bio's request does: only a joined run needs this join.
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
