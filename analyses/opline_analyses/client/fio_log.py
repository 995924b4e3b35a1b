# SPDX-License-Identifier: MIT
"""Joins fio's logs of single I/Os with the ops of the trace.

Takes fio's ``PREFIX_lat.N.log`` and ``PREFIX_clat.N.log`` (``write_lat_log=PREFIX log_offset=1``, best with
``log_issue_time=1``); makes the temporary table `client_ops` as client_log.py.

Format (fio, HOWTO "Log File Formats", iolog.c:flush_samples, stat.c:add_clat_sample, add_lat_sample): a line per I/O in
the order of completion, ``time ms, value ns, direction 0 1 2, bytes[, offset], priority[, issue ns]``. The issue time
counts from the job's own begin, which the log does not say, and is 0 in the lat log. Line n of both logs is the same
I/O. lat is from fio's start of the I/O to its completion, clat from the issue; so the I/O began at issue + clat - lat.

An I/O is the op of the same direction, offset and length, the k-th with them in time; the offset of an op that has none
of its own is that of its first sector where it can be (fio_places.py). A job of whose lines few have an op, or whose
I/Os were shorter than the ops at their sectors, is not joined: places are alike by chance, too. The job's begin on the
trace's clock follows from causality: no op begins before fio started its I/O, nor ends after fio saw it complete. Those
bounds leave an interval of some 0.1 us; its middle is taken, in windows of WINDOW_NS, because fio counts by the CPU's
clock, which drifts. Half the interval is the uncertainty of submit and reap; their sum with the op's latency is fio's
figure to the nanosecond.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.values import Value
from opline_analyses.client.fio_places import DISK, OWN, PART, make_places
from opline_analyses.runs.columns import give_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opline_analyses.runs.run import Run

WINDOW_NS = 100_000_000
FEW = 0.01  # of a job's ops may have taken longer than fio's I/O (clocks)
MOST = 0.8  # of a job's lines have an op, at least, or of the thread's ops a line
DIRECTIONS = ("read", "write", "trim")
_BEYOND = 1 << 63
_SHOWN = 80  # characters of a bad line in a message
NAME = re.compile(r"^(?P<prefix>.+)_(?P<kind>lat|clat|slat)(?P<job>\.\d+)?\.log$")


class Joined(Value):
    """The result for the lines."""

    lines: int
    ops: int
    uncertainty_ns: int | None  # of submit and reap; None: fio did not log the issue times
    left_out: Mapping[str, int] = {}  # lines without an op, by reason


def is_fio_log(path: Path) -> bool:
    """By its name: PREFIX_lat.1.log, PREFIX_clat.1.log, PREFIX_slat.1.log."""
    return NAME.match(path.name) is not None


def logs_of(path: Path) -> list[Path]:
    """The lat logs of all jobs of the run that one of its logs (or its PREFIX) belongs to, sorted by name."""
    match = NAME.match(path.name)
    prefix = match["prefix"] if match else path.name
    found = (p for p in path.parent.iterdir() if (m := NAME.match(p.name)) and m["prefix"] == prefix)
    return sorted(p for p in found if "_lat" in p.name)


def _lines(path: Path) -> Iterator[list[int]]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            try:
                values = [int(word, 0) for word in line.split(",")]
            except ValueError:
                values = []
            if len(values) < 2 or not all(0 <= v < _BEYOND for v in values):
                said = line.strip()
                said = said if len(said) <= _SHOWN else said[:_SHOWN] + "…"
                raise OplineError(f"{path}:{number}: not a line of a fio log: {said!r}.")
            yield values


def _read(lat: Path, job: int) -> Iterator[tuple[int, int, str, int, int, int, int | None, int | None]]:
    """(job, line, direction, bytes, offset, lat, clat, issue) of one job. Raises OplineError."""
    clat = lat.with_name(lat.name.replace("_lat", "_clat"))
    completions = list(_lines(clat)) if clat.is_file() else []
    starts = list(_lines(lat))
    if starts and len(starts[0]) not in (6, 7):
        raise OplineError(f"{lat}: no offsets in it; run fio with log_offset=1 (and log_issue_time=1 if it has that).")
    if completions and len(completions) != len(starts):
        raise OplineError(f"{clat} has {len(completions)} lines, {lat.name} {len(starts)}: not of one run.")
    for n, row in enumerate(starts):
        if len(row) not in (6, 7) or row[2] >= len(DIRECTIONS):
            raise OplineError(f"{lat}:{n + 1}: not a line of fio's log of single I/Os (log_avg_msec must be 0).")
        clat_ns = completions[n][1] if completions else None
        issue_ns = completions[n][6] if completions and len(completions[n]) == 7 else None
        yield job, n, DIRECTIONS[row[2]], row[3], row[4], row[1], clat_ns, issue_ns


def join_fio_logs(run: Run, paths: Sequence[Path]) -> Joined:
    """Makes `client_ops` of the lat logs ``paths``, one per job. Raises OplineError with one line."""
    rows = [row for job, path in enumerate(paths) for row in _read(path, job)]
    numbers = ("bytes", "offset_bytes", "lat_ns", "clat_ns", "issue_ns")
    columns = {"job": "BIGINT", "line": "BIGINT", "direction": "VARCHAR", **dict.fromkeys(numbers, "BIGINT")}
    give_rows(run, "fio_log", columns, rows)
    make_places(run)
    run.con.execute(_PAIRS)
    refused = _refuse_coincidences(run)
    run.con.execute(_CLIENT_OPS)
    (joined,) = run.row("SELECT count(*) FROM client_ops")
    (uncertainty,) = run.row("SELECT max(abs(high - low) + 1) // 2 FROM fio_begin")
    exact = None if uncertainty is None else int(uncertainty)
    return Joined(len(rows), int(joined), exact, _left_out(run, len(rows) - int(joined), refused))


def _refuse_coincidences(run: Run) -> dict[str, int]:
    """Of jobs whose ops those of the trace can't be the pairs go; how many lines they have, by reason."""
    refused = {}
    for reason, wrong in _COINCIDENCES.items():
        (lines,) = run.row(f"SELECT count(*) FROM fio_log WHERE job IN ({wrong})")
        run.con.execute(f"DELETE FROM fio_pairs WHERE job IN ({wrong})")
        refused[reason] = int(lines)
    return refused


def _left_out(run: Run, lines: int, refused: Mapping[str, int]) -> dict[str, int]:
    (placeless,) = run.row(
        """SELECT count(*) FROM (SELECT * FROM ops WHERE complete) o ANTI JOIN fio_places USING (op_id)
           WHERE sector IS NOT NULL AND EXISTS (FROM fio_log l WHERE contains(lower(o.class), l.direction))"""
    )
    why = "without an op of their place and length"
    if placeless:
        why += f" ({placeless} ops have no offset, and a sector among files, in none whose place is known)"
    return {reason: n for reason, n in ({**refused, why: lines - sum(refused.values())}).items() if n}


_COINCIDENCES = {
    "of jobs most of whose places no op has: what has one has it by chance": f"""
        SELECT job FROM fio_pairs JOIN (SELECT job, count(*) AS lines FROM fio_log GROUP BY job) USING (job)
        GROUP BY job HAVING count(*) < {MOST} * least(any_value(lines), any_value(ops))""",
    "of jobs whose I/Os were shorter than the ops at their sectors: these are others": f"""
        SELECT job FROM fio_pairs WHERE basis <> '{OWN}'
        GROUP BY job HAVING count(*) FILTER (lat_ns < latency_ns) > {FEW} * count(*)""",
}
# Jobs on one file have equal offsets: a job is the thread that has most of its places, each thread one job's at most.
# Whether a device's name was the disk's or the partition's is seen by the same. Line order is completion order.
_PAIRS = f"""
CREATE OR REPLACE TEMP TABLE fio_pairs AS
WITH o AS (SELECT op_id, begin_ns, end_ns, latency_ns, begin_tid AS tid, class,
                  place, basis, CASE WHEN basis IN ('{DISK}', '{PART}') THEN basis ELSE '' END AS of, length_bytes
           FROM ops JOIN fio_places USING (op_id)),
     d AS (SELECT o.*, l.direction FROM o JOIN (SELECT DISTINCT direction FROM fio_log) l
           ON contains(lower(o.class), l.direction)),
     hits AS (SELECT job, tid, of, count(*) AS n
              FROM (SELECT DISTINCT job, direction, offset_bytes FROM fio_log) l
              JOIN (SELECT DISTINCT tid, of, direction, place FROM d) p
                ON p.direction = l.direction AND p.place = l.offset_bytes
              GROUP BY job, tid, of),
     best AS (SELECT job, tid, of FROM hits
              QUALIFY row_number() OVER (PARTITION BY job ORDER BY n DESC, tid, of) = 1
                  AND row_number() OVER (PARTITION BY tid ORDER BY n DESC, job, of) = 1),
     l AS (SELECT *, row_number() OVER (PARTITION BY job, direction, offset_bytes, bytes ORDER BY line) AS k
           FROM fio_log),
     p AS (SELECT d.*, b.job, row_number() OVER (PARTITION BY b.job, d.direction, place, length_bytes
                                                ORDER BY end_ns, op_id) AS k,
                  count(*) OVER (PARTITION BY b.job, d.tid) AS ops
           FROM d JOIN best b USING (tid, of))
SELECT p.op_id, p.basis, p.ops, p.begin_ns, p.end_ns, p.latency_ns, l.job, l.lat_ns,
       l.issue_ns + l.clat_ns - l.lat_ns AS start_ns, l.issue_ns + l.clat_ns AS complete_ns
FROM p JOIN l ON l.job = p.job AND l.direction = p.direction AND l.offset_bytes = p.place
    AND (p.length_bytes IS NULL OR l.bytes = p.length_bytes) AND l.k = p.k
"""
_CLIENT_OPS = f"""
CREATE OR REPLACE TEMP TABLE fio_begin AS
SELECT job, begin_ns // {WINDOW_NS} AS part, max(end_ns - complete_ns) AS low, min(begin_ns - start_ns) AS high
FROM fio_pairs WHERE start_ns IS NOT NULL GROUP BY ALL;
CREATE OR REPLACE TEMP TABLE client_ops AS
SELECT op_id, lat_ns AS client_ns, begin_ns - start_ns - (low + high) // 2 AS submit_ns,
       complete_ns + (low + high) // 2 - end_ns AS reap_ns, false AS interrupted
FROM fio_pairs p LEFT JOIN fio_begin b ON b.job = p.job AND b.part = p.begin_ns // {WINDOW_NS};
"""
