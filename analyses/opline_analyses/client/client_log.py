# SPDX-License-Identifier: MIT
"""Joins a client's own log of its ops with the ops of the trace, to split the time outside of the traced points.

Takes fio's log of single I/Os (fio_log.py), or a CSV with begin_ns and end_ns of the trace's clock (CLOCK_MONOTONIC),
and optionally class and object; makes the temporary table `client_ops` (op_id, client_ns, submit_ns, reap_ns,
interrupted).
An op's line in the CSV is the last line of its class and object that begins at or before the op's begin point and ends
no earlier than the end point minus SLACK_NS; a line claimed by two ops is not used. submit_ns is before the begin
point, reap_ns after the end point (negative: the client's time is before the point).

The log may also have begun_ns and ended_ns: the client's clock once more, right after the first and the last point. If
such a pair of readings is more than INTERRUPTED_NS apart, the client's thread was delayed between clock and point: the
op is `interrupted`, and the line's times are less precise than this.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

from opline.errors import OplineError
from opline.scratch import scratch
from opline_analyses.client.fio_log import Joined, is_fio_log, join_fio_logs, logs_of
from opline_analyses.runs.run import Run

SLACK_NS = 20_000
INTERRUPTED_NS = 20_000
_TIMES = ("begin_ns", "end_ns", "begun_ns", "ended_ns")
_COLUMNS = (*_TIMES, "class", "object")
_SHOWN = 80  # characters of a bad value in a message
_SEPARATORS = (",", ";", "\t", "|")
_LINE_BYTES = 1 << 16
_MOST_COLUMNS = 1000


def _packed(path: Path) -> str:
    """By the end of the name: DuckDB does not detect compression."""
    return {".gz": "gzip", ".zst": "zstd"}.get(path.suffix, "none")


def _layout(run: Run, said: str) -> tuple[str, list[str]]:
    """The separator of a CSV and the names in its first line. Only the first line is read: DuckDB's own search for a
    layout tries many, and takes minutes for a line with many separators. Raises duckdb.Error for a line that is too
    long.
    """
    plain = f"auto_detect = false, header = false, quote = '', escape = '', max_line_size = {_LINE_BYTES}"
    rows = run.rows(
        f"SELECT line FROM read_csv({said}, {plain}, delim = '\x01', columns = {{line: 'VARCHAR'}}) LIMIT 1"
    )
    line = rows[0][0] or "" if rows else ""
    separator = max(_SEPARATORS, key=line.count)
    return separator, [name.strip().strip('"') for name in line.split(separator)]


def _numbers_only(run: Run, path: Path, columns: list[str]) -> None:
    """Makes the times of client_log integers. Raises OplineError for the first bad value."""
    for name in columns:
        bad = run.rows(
            f"""SELECT line, {name} FROM (SELECT row_number() OVER () AS line, {name} FROM client_log)
                WHERE {name} IS NOT NULL AND try_cast({name} AS BIGINT) IS NULL ORDER BY line LIMIT 1"""
        )
        for row, value in bad:
            said = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
            raise OplineError(f"{path}: row {row}: {name} is no number of nanoseconds: {said!r}.")
        run.con.execute(f"ALTER TABLE client_log ALTER {name} TYPE BIGINT")


def _read(run: Run, path: Path, held: ExitStack) -> list[str]:
    """Makes client_log of a CSV; returns the names in the first line. A pipe, readable only once, is copied first.
    Raises OplineError.
    """
    import duckdb

    try:
        source = path if path.is_file() else _copied(path, held)
        said = f"'{run.files.open(source)}', compression = '{_packed(path)}'"
        separator, columns = _layout(run, said)
        if len(columns) > _MOST_COLUMNS:
            raise OplineError(f"{path}: a client's log has at most {_MOST_COLUMNS} columns; it has {len(columns)}.")
        if not {"begin_ns", "end_ns"} <= set(columns):
            shown = ", ".join(sorted(columns))
            shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
            raise OplineError(f"{path}: a client's log needs the columns begin_ns and end_ns; it has {shown}.")
        known = {name: f"c{n}" for n, name in enumerate(columns) if name in _COLUMNS}
        types = ", ".join(f"c{n}: 'VARCHAR'" for n in range(len(columns)))
        texts = f"read_csv({said}, auto_detect = false, header = true, delim = '{separator}', columns = {{{types}}})"
        taken = ", ".join(f"{column} AS {name}" for name, column in known.items())
        run.con.execute(f"CREATE OR REPLACE TEMP TABLE client_log AS SELECT {taken} FROM {texts}")
    except OSError as error:
        raise OplineError(f"Cannot read {path}: {error.strerror}.") from error
    except duckdb.Error as error:
        raise OplineError(f"Cannot read {path}: {run.files.said(error).splitlines()[0]}") from error
    return columns


def _copied(path: Path, held: ExitStack) -> Path:
    copy = Path(held.enter_context(scratch("log"))) / "log"
    with path.open("rb") as lines, copy.open("wb") as to:
        shutil.copyfileobj(lines, to)
    return copy


def join_client_log(run: Run, path: Path) -> Joined:
    """Makes `client_ops`. Raises OplineError with one line."""
    if is_fio_log(path):
        logs = logs_of(path)
        if not logs:
            raise OplineError(f"{path}: no lat log beside it; run fio with write_lat_log and without disable_lat.")
        return join_fio_logs(run, logs)
    with ExitStack() as held:
        columns = _read(run, path, held)
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
