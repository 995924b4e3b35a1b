# SPDX-License-Identifier: MIT
"""Joins a client's own log of its ops with the ops of the trace, to split what lies outside the traced points.

Takes fio's log of single I/Os (fio_log.py), or a CSV with begin_ns and end_ns of the trace's clock (CLOCK_MONOTONIC),
and class and object where it has them; makes the temporary table `client_ops` (op_id, client_ns, submit_ns, reap_ns,
interrupted).
An op's line in the CSV is the last of its class and object that begins at or before its begin point and ends no earlier
than its end point minus SLACK_NS; a line that two ops claim is nobody's. submit_ns is before the begin point, reap_ns
after the end point (negative: the client stamped before the point).

The log may have begun_ns and ended_ns besides: the client's clock once more, right after its first and its last point.
Where such a pair of readings is more than INTERRUPTED_NS apart, the client's thread did not get from its clock to its
point at once: the op is `interrupted`, and its line says less about the op than that.
"""

from __future__ import annotations

from pathlib import Path

from opline.errors import OplineError
from opline_analyses.client.fio_log import Joined, is_fio_log, join_fio_logs, logs_of
from opline_analyses.runs.run import Run

SLACK_NS = 20_000
INTERRUPTED_NS = 20_000
_TIMES = ("begin_ns", "end_ns", "begun_ns", "ended_ns")
_SHOWN = 80  # characters of a value that is none


def _packed(path: Path) -> str:
    """By the name's ending: DuckDB does not see it."""
    return {".gz": "gzip", ".zst": "zstd"}.get(path.suffix, "none")


def _numbers_only(run: Run, path: Path, columns: list[str]) -> None:
    """Makes the times of client_log integers. Raises OplineError for the first that is none."""
    for name in columns:
        bad = run.rows(
            f"""SELECT line, {name} FROM (SELECT row_number() OVER () AS line, {name} FROM client_log)
                WHERE {name} IS NOT NULL AND try_cast({name} AS BIGINT) IS NULL ORDER BY line LIMIT 1"""
        )
        for row, value in bad:
            said = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
            raise OplineError(f"{path}: row {row}: {name} is no number of nanoseconds: {said!r}.")
        run.con.execute(f"ALTER TABLE client_log ALTER {name} TYPE BIGINT")


def join_client_log(run: Run, path: Path) -> Joined:
    """Makes `client_ops`. Raises OplineError with one line."""
    import duckdb

    if is_fio_log(path):
        logs = logs_of(path)
        if not logs:
            raise OplineError(f"{path}: no lat log beside it; run fio with write_lat_log and without disable_lat.")
        return join_fio_logs(run, logs)
    try:
        said = f"'{run.files.open(path, regular=False)}', compression = '{_packed(path)}'"
        all_texts = f"SELECT * FROM read_csv({said}, header = true, all_varchar = true)"
        run.con.execute(f"CREATE OR REPLACE TEMP TABLE client_log AS {all_texts}")
        columns = {row[0] for row in run.rows("DESCRIBE client_log")}
    except OSError as error:
        raise OplineError(f"Cannot read {path}: {error.strerror}.") from error
    except duckdb.Error as error:
        raise OplineError(f"Cannot read {path}: {run.files.said(error).splitlines()[0]}") from error
    if not {"begin_ns", "end_ns"} <= columns:
        raise OplineError(
            f"{path}: a client's log needs the columns begin_ns and end_ns; it has {', '.join(sorted(columns))}."
        )
    _numbers_only(run, path, [name for name in _TIMES if name in columns])
    begun = "coalesce(l.begun_ns, l.begin_ns)" if "begun_ns" in columns else "l.begin_ns"
    ended = "coalesce(l.ended_ns, l.end_ns)" if "ended_ns" in columns else "l.end_ns"
    same = "".join(f" AND o.{name} = l.{name}" for name in ("class", "object") if name in columns)
    run.con.execute(
        f"""CREATE OR REPLACE TEMP TABLE client_ops AS
            WITH l AS (SELECT *, row_number() OVER () AS line FROM client_log),
                 j AS (SELECT o.op_id, l.line, l.begin_ns AS b, l.end_ns AS e, {begun} AS begun, {ended} AS ended,
                              o.begin_ns, o.end_ns
                       FROM (SELECT * FROM ops WHERE complete) o ASOF JOIN l ON o.begin_ns >= l.begin_ns{same})
            SELECT op_id, e - b AS client_ns, begin_ns - b AS submit_ns, e - end_ns AS reap_ns,
                   greatest(begun - b, ended - e) > {INTERRUPTED_NS} AS interrupted
            FROM j WHERE ended >= end_ns - {SLACK_NS}
            QUALIFY count(*) OVER (PARTITION BY line) = 1"""
    )
    lines, ops = run.row("SELECT (SELECT count(*) FROM client_log), (SELECT count(*) FROM client_ops)")
    return Joined(int(lines), int(ops), 0)
