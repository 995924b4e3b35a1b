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
from opline_analyses.fio_log import Joined, is_fio_log, join_fio_logs, logs_of
from opline_analyses.run import Run

SLACK_NS = 20_000
INTERRUPTED_NS = 20_000


def join_client_log(run: Run, path: Path) -> Joined:
    """Makes `client_ops`. Raises OplineError with one line."""
    import duckdb

    if is_fio_log(path):
        logs = logs_of(path)
        if not logs:
            raise OplineError(f"{path}: no lat log beside it; run fio with write_lat_log and without disable_lat.")
        return join_fio_logs(run, logs)
    quoted = str(path).replace("'", "''")
    try:
        run.con.execute(f"CREATE OR REPLACE TEMP TABLE client_log AS SELECT * FROM read_csv('{quoted}', header = true)")
        columns = {row[0] for row in run.rows("DESCRIBE client_log")}
    except duckdb.Error as error:
        raise OplineError(f"Cannot read {path}: {str(error).splitlines()[0]}") from error
    if not {"begin_ns", "end_ns"} <= columns:
        raise OplineError(
            f"{path}: a client's log needs the columns begin_ns and end_ns; it has {', '.join(sorted(columns))}."
        )
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
