# SPDX-License-Identifier: MIT
"""Which I/Os are meant, on every command: device, kind, size, process, thread, class, latency, time.

Takes `IoFilters`, in the command line's texts; gives the SQL of the rows that they mean, batches of them for the engine
(`intervals`), and how many rows could not be counted, by reason. Times count from the run's first event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline.talk import talk
from opline.values import Value
from opline_analyses.base.filters import window_instants
from opline_analyses.base.given import Given
from opline_analyses.base.quantities import Limits, limits, seconds, size_bytes
from opline_analyses.base.text import count_of, device_name
from opline_analyses.block.io_owners import TABLES, with_owner
from opline_analyses.block.io_sources import Source, needing, source_of
from opline_analyses.runs.cgroups import meant, names
from opline_analyses.runs.devices import devices_condition
from opline_analyses.runs.selection import (
    NO_CLASS,
    any_glob,
    classes_meant,
    latency_limits,
    refuse_host,
    refuse_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opline_analyses.intervals.intervals import Batch
    from opline_analyses.runs.run import Run

KINDS = {
    "reads": "kind = 'read'",
    "writes": "kind = 'write'",
    "flushes": "kind = 'flush'",
    "discards": "kind IN ('discard', 'write_zeroes')",
}
PER = {
    "device": "dev", "io": "kind", "rwbs": "rwbs", "comm": "comm", "tid": "tid", "class": "class", "stage": "stage",
    "thread": "concat(coalesce(comm, '?'), ':', coalesce(tid::VARCHAR, '?'))", "cgroup": "cgroup", "host": "host",
    "object": "object", "process": "process",
}  # fmt: skip


class IoFilters(Given):
    """Which I/Os are meant, as the options of commands say it; None: all. ``of``: what is counted."""

    device: Sequence[str] | None = None
    host: Sequence[str] | None = None
    io: Sequence[str] | None = None
    size: str | None = None
    comm: Sequence[str] | None = None
    pid: Sequence[int] | None = None
    tid: Sequence[int] | None = None
    cgroup: Sequence[str] | None = None
    object: Sequence[str] | None = None
    op_class: Sequence[str] | None = None
    latency: str | None = None
    since: str | None = None
    until: str | None = None
    window: str | None = None
    at: str | None = None
    of: str = "requests"
    stage: Sequence[str] | None = None
    start: str | None = None
    end: str | None = None
    tainted: bool = False


class Window(Value):
    """[since_ns, until_ns) of the run's clock; None is open."""

    since_ns: int | None = None
    until_ns: int | None = None


class Rows(Value):
    """Rows of a source that pass the filters."""

    source: Source
    where: str
    parameters: tuple[object, ...]
    latency: Limits
    window: Window
    zero_ns: int
    last_ns: int

    def also(self, condition: str) -> Rows:
        """The same with one more condition."""
        return self.replaced(where=f"{self.where} AND {condition}")

    def placed_by(self, value: str) -> Rows:
        """The same on an axis of a heat map (latency, size, offset): what is not known to be anywhere on it can't be
        counted.
        """
        column = {"size": "bytes", "offset": "sector"}.get(value)
        return self if column is None else self.replaced(source=needing(self.source, column, value))


def bounds(run: Run) -> tuple[int, int]:
    """The first and the last time of the run, ns: every output counts from the first."""
    first, last = run.core("first_ns"), run.core("last_ns")
    if first is None or last is None:
        first, last = run.row(
            """SELECT min(t), max(t) FROM (
                   SELECT unnest([queue_ns, getrq_ns, issue_ns, complete_ns]) AS t FROM requests
                   UNION ALL SELECT unnest([begin_ns, end_ns]) FROM ops)"""
        )
    return int(first or 0), int(last or 0)


def window(filters: IoFilters, zero_ns: int) -> Window:
    """The window that --since and --until, or --window and --at mean. Raises UsageError."""
    instants = window_instants(filters.window, filters.at, filters.since, filters.until)
    since, until = (None if t is None else t.after(zero_ns) for t in instants)
    if since is not None and until is not None and since >= until:
        option = f"--window {filters.window}" if filters.window else f"--since {filters.since} --until {filters.until}"
        raise UsageError(f"{option}: it ends before it begins.")
    return Window(since, until)


def _kinds(texts: Sequence[str]) -> tuple[str, list[object]]:
    globs = [t for t in texts if t not in KINDS]
    for text in globs:
        if text != text.upper():  # no kernel writes small letters
            raise UsageError(f"-i {text}: one of {', '.join(KINDS)}, or a pattern of rwbs flags like '*R*'.")
    parts = [KINDS[t] for t in texts if t in KINDS] + ["rwbs GLOB ?"] * len(globs)
    return f"({' OR '.join(parts)})", list(globs)


def _owned(source: Source, condition: str) -> str:
    """The condition on the table ops (alias o), as one on the source."""
    if source.name in ("ops", "stages"):
        return f"op_id IN (SELECT o.op_id FROM ops o WHERE {condition})"
    column = {"requests": "request_id", "bios": "bio_id"}[source.name]
    return f"""(op_id IN (SELECT o.op_id FROM ops o WHERE {condition}) OR id IN (
                   SELECT {column} FROM links l JOIN ops o USING (op_id) WHERE {condition}))"""


def _conditions(run: Run, source: Source, filters: IoFilters) -> Iterator[tuple[str, Sequence[object]]]:
    if filters.device:
        yield devices_condition(run, filters.device)
    if filters.host:
        if not run.grows:
            refuse_host(run, filters.host)
        if run.is_cluster:
            yield f"host IN ({', '.join('?' * len(filters.host))})", list(filters.host)
    if filters.io:
        if "io" in source.lacks:
            raise UsageError(f"-i {filters.io[0]}: {source.name} have no rwbs flags; --of requests has.")
        yield _kinds(filters.io)
    if filters.size:
        sql, values = limits(filters.size, "--size", size_bytes).condition("bytes")
        yield sql, list(values)
    if filters.comm:
        yield any_glob("comm", filters.comm), list(filters.comm)
    if filters.tid:
        yield f"tid IN ({', '.join('?' * len(filters.tid))})", list(filters.tid)
    if filters.pid:
        marks = ", ".join("?" * len(filters.pid))
        if source.name in ("ops", "stages"):
            yield f"pid IN ({marks})", list(filters.pid)
        else:  # block events name a thread; which process it is of is known from the application's points
            threads = f"SELECT DISTINCT tid FROM transitions WHERE pid IN ({marks})"
            yield f"(tid IN ({marks}) OR tid IN ({threads}))", [*filters.pid, *filters.pid]
    if filters.cgroup:
        yield meant("cgroup", filters.cgroup)
    if filters.object:
        condition = _owned(source, any_glob("o.object", filters.object))
        yield condition, list(filters.object) * (condition.count("?") // len(filters.object))
    if op_class := classes_meant(filters.op_class):
        if not run.grows:
            refuse_unknown(run, "class", op_class, NO_CLASS)
        condition = _owned(source, f"o.class IN ({', '.join('?' * len(op_class))})")
        yield condition, list(op_class) * condition.count(" IN (?")
    stage = filters.stage
    if stage:
        if "stage" in source.lacks:
            raise UsageError(f"--stage {stage[0]}: only with --of stages.")
        names = [s for (s,) in run.rows("SELECT DISTINCT stage FROM stages WHERE stage IS NOT NULL ORDER BY stage")]
        for name in stage:
            if name not in names and not run.grows:
                raise UsageError(f"--stage {name}: the run has no such stage. It has: {', '.join(names) or 'none'}.")
        yield f"stage IN ({', '.join('?' * len(stage))})", list(stage)


def rows_of(run: Run, filters: IoFilters, source: Source | None = None) -> Rows:
    """The rows that are meant. Raises UsageError."""
    if source is None:
        source = source_of(filters.of, filters.start, filters.end, filters.tainted)
    found = list(_conditions(run, source, filters))
    zero_ns, last_ns = bounds(run)
    text = filters.latency
    return Rows(
        source,
        " AND ".join(sql for sql, _ in found) or "true",
        tuple(value for _, values in found for value in values),
        latency_limits(text) if text else Limits(),
        window(filters, zero_ns),
        zero_ns,
        last_ns,
    )


def _timed(rows: Rows, column: str) -> tuple[str, list[object]]:
    parts = [(">=", rows.window.since_ns), ("<", rows.window.until_ns)]
    given = [(sign, value) for sign, value in parts if value is not None]
    return " AND ".join(["true", *(f"{column} {sign} ?" for sign, _ in given)]), [value for _, value in given]


def counted_sql(rows: Rows, columns: str) -> tuple[str, list[object]]:
    """``SELECT columns`` of the rows that are counted, and the parameters."""
    slow, limits_given = rows.latency.condition("(end_ns - begin_ns)")
    timed, times = _timed(rows, "end_ns")
    sql = f"SELECT {columns} FROM ({rows.source.sql}) WHERE why IS NULL AND {rows.where} AND {slow} AND {timed}"
    return sql, [*rows.parameters, *limits_given, *times]


def all_ids(rows: Rows) -> tuple[str, tuple[object, ...]]:
    """SQL of the ids of all rows in the window, those that can't be measured too, and its parameters."""
    timed, times = _timed(rows, "seen_ns")
    return f"SELECT id FROM ({rows.source.sql}) WHERE {rows.where} AND {timed}", (*rows.parameters, *times)


def chosen_ids(rows: Rows) -> tuple[str, tuple[object, ...]] | None:
    """SQL of the ids that the options mean, as of ``all_ids``; with --latency of those that can be measured. None where
    no option chooses.
    """
    if rows.where == "true" and rows.latency == Limits() and rows.window == Window():
        return None
    if rows.latency != Limits():
        sql, parameters = counted_sql(rows, "id")
        return sql, tuple(parameters)
    return all_ids(rows)


def tell_nothing(run: Run, rows: Rows) -> None:
    """On stderr, that the options mean nothing of what there is."""
    (whole,) = run.row(f"SELECT count(*) FROM {rows.source.name}")
    length = seconds(rows.last_ns - rows.zero_ns, 6)
    one = rows.source.one
    if not whole and rows.source.name == "requests":
        talk("nothing to count: the run has no block request (`opline hist RUN --of ops` counts its ops).")
        return
    talk(f"nothing to count: the options select no {one} of the run's {count_of(whole, one)} (0 to {length} s).")


def left_out(run: Run, rows: Rows) -> dict[str, int]:
    """How many of the rows can't be counted, by reason: with those that are counted they are all there are."""
    timed, times = _timed(rows, "seen_ns")
    sql = f"""SELECT why, count(*) AS n FROM ({rows.source.sql}) WHERE why IS NOT NULL AND {rows.where} AND {timed}
              GROUP BY why ORDER BY n DESC, why"""
    return dict(run.rows(sql, [*rows.parameters, *times]))


def batches(
    run: Run, rows: Rows, per: str | None = None, value: str = "end_ns - begin_ns", with_kind: bool = False,
    size: str = "bytes",
) -> Iterator[Batch]:  # fmt: skip
    """The counted rows for the engine. ``value``, ``size``: what is measured and what is summed, as SQL; ``per``: the
    group, a key of PER. ``with_kind``: a group for each kind of I/O in it, named "sda read".
    """
    import numpy as np

    from opline.store.arrays import read
    from opline_analyses.intervals.intervals import Batch

    column = PER[per] if per is not None else "''"
    rows = rows.replaced(source=with_owner(rows.source, per))
    place = f"concat(kind, ' ', {column})" if with_kind else column
    columns = f"end_ns, begin_ns, {value} AS value, coalesce({size}, 0) AS size, {place} AS place"
    sql, parameters = counted_sql(rows, columns)
    whose = names_of_groups(run, rows, per)

    def named(key: Any) -> str:
        if with_kind:
            kind, _, place = key.partition(" ")
            return f"{'' if per is None else whose(place or None)} {kind}"
        return whose(key)

    for found in read(run.con.sql(sql, parameters)):
        end_ns, begin_ns, values, sizes = (
            found.numbers(name).filled(np.int64) for name in ("end_ns", "begin_ns", "value", "size")
        )
        codes, keys = found.codes("place")
        texts = [named(key) for key in keys]
        indices = np.where(codes < 0, len(texts), codes).astype(np.int64)
        yield Batch(end_ns, values, sizes, indices, [*texts, "unknown"], begin_ns)


def names_of_groups(run: Run, rows: Rows, per: str | None) -> Callable[[Any], str]:
    """What people call a group, from its value in the column of PER."""
    devices = run.device_names()
    cgroups = _cgroups_in(run, rows) if per == "cgroup" else {}

    def whose(key: Any) -> str:
        if key is None:
            return "unknown"
        return device_name(devices, int(key)) if per == "device" else str(cgroups.get(key, key))

    return whose


def _cgroups_in(run: Run, rows: Rows) -> dict[str, str]:
    """The names of the cgroups that have counted rows, by path."""
    sql, parameters = counted_sql(rows, "DISTINCT cgroup")
    return names(run, [path for (path,) in run.rows(sql, parameters) if path is not None])


def devices_in(run: Run, rows: Rows) -> list[tuple[int, str]]:
    """Numbers and names of the devices that have counted rows, by number."""
    sql, parameters = counted_sql(rows, "DISTINCT dev")
    names = run.device_names()
    return [(dev, device_name(names, dev)) for (dev,) in run.rows(f"{sql} ORDER BY dev", parameters) if dev is not None]


def count_of_rows(run: Run, rows: Rows) -> int:
    """How many rows are counted."""
    sql, parameters = counted_sql(rows, "count(*)")
    return int(run.row(sql, parameters)[0])


def tables_needed(filters: IoFilters, per: str | None = None) -> tuple[str, ...]:
    """The tables that the filters and the groups (a key of PER) ask for: a trace's temporary run has rows of these
    only.
    """
    needed = {"requests", "bios"} if filters.of == "bios" else {filters.of}
    needed.update(TABLES.get(per or "", ()))
    if filters.op_class or filters.object or filters.of == "stages":
        needed |= {"ops", "links"}
    if filters.pid:
        needed.add("transitions")
    return tuple(sorted(needed))
