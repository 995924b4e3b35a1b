# SPDX-License-Identifier: MIT
"""What can be counted: block requests, bios, ops and their stages, each as SQL with the same columns.

Columns of every source: id, begin_ns and end_ns (what was measured lies between), seen_ns (a time of it that is known),
dev, host, rwbs, kind, bytes, sector, tid, comm, cgroup, pid, op_id, class, stage, and why (a text where it can't be
counted).
What a source does not know is NULL; ``lacks`` names the filters that it can't serve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

# blkparse's letters are aliases of these. From `issue`: the last one, so that what a requeue took is not the device's;
# to `issue`: the first one. `end`: behind the flush that a write's data may need.
POINTS = {"queue": "Q", "getrq": "G", "insert": "I", "issue": "D", "complete": "C", "end": "E"}
SOURCES = ("requests", "bios", "ops", "stages")
_ALIASES = {letter.lower(): name for name, letter in POINTS.items()} | {"bio_queue": "queue", "rq_issue": "issue"}


class Source(Value):
    """What is counted: its SQL, what one is called, from where to where it is measured, what it knows nothing of."""

    name: str
    sql: str
    one: str
    measured: str
    lacks: tuple[str, ...] = ()


def point(text: str, option: str) -> str:
    """A start or end point by its name or blkparse's letter. Raises UsageError."""
    name = _ALIASES.get(text.lower(), text.lower())
    if name not in POINTS:
        raise UsageError(f"{option} {text}: one of {', '.join(POINTS)} (or {', '.join(POINTS.values())}).")
    return name


def _times(start: str, end: str) -> tuple[str, str]:
    order = list(POINTS)
    if order.index(start) >= order.index(end):
        raise UsageError(f"--from {start} --to {end}: the start point comes before the end point.")
    begin = {"issue": "issue_ns"}.get(start, f"{start}_ns")
    ends = {"issue": "first_issue_ns", "end": "coalesce(end_ns, complete_ns)"}.get(end, f"{end}_ns")
    if start == "insert" and end == "issue":  # an insert after a requeue is not on the way to the first issue
        begin = "CASE WHEN insert_ns <= first_issue_ns THEN insert_ns END"
    return begin, ends


_STEPS = {  # in words for people; JSON has the names
    "queue": "a queue event", "getrq": "an allocation", "insert": "an insert", "issue": "an issue",
    "complete": "a completion", "end": "an end",
}  # fmt: skip


def not_counted(left_out: Mapping[str, int], counted: int, one: str) -> str:
    """Number of uncounted rows, beside the counted rows, with the reasons: a line for people."""
    number = sum(left_out.values())
    verb = "is" if number == 1 else "are"
    why = ", ".join(f"{n} {_in_words(reason)}" for reason, n in left_out.items())
    return f"{number} of {counted + number} {one}s {verb} not counted: {why}."


def _in_words(reason: str) -> str:
    first, _, step = reason.partition(" ")
    return f"without {_STEPS.get(step, step)}" if first == "without" else reason


def _missing(start: str, end: str) -> str:
    return f"""CASE WHEN end_ns IS NULL THEN 'without {end}' WHEN begin_ns IS NULL THEN 'without {start}'
               WHEN end_ns < begin_ns THEN '{end} before {start}' END"""


_REQUESTS = """
    SELECT request_id AS id, {begin} AS begin_ns, {end} AS end_ns, first_issue_ns AS first_ns,
           coalesce(complete_ns, issue_ns, insert_ns, getrq_ns, queue_ns) AS seen_ns, dev, host::VARCHAR AS host,
           rwbs::VARCHAR AS rwbs,
           kind::VARCHAR AS kind, coalesce(nr_sectors, 0)::BIGINT * 512 AS bytes, sector,
           coalesce(queue_tid, issue_tid)::BIGINT AS tid, coalesce(queue_comm, issue_comm)::VARCHAR AS comm,
           cgroup::VARCHAR AS cgroup, NULL::INTEGER AS pid, op_id, NULL::VARCHAR AS class, NULL::VARCHAR AS stage
    FROM requests WHERE {which}"""
# What the devices had, each once: an absorbed request is part of another one. So is an empty flush that was served by
# another flush, which alone went to the device: the times that it has from there on are that one's.
AT_DEVICE = "outcome <> 'absorbed' AND flushed_by IS NULL"
_ALLOCATED = """outcome <> 'absorbed'
    AND request_id NOT IN (SELECT flushed_by FROM requests WHERE flushed_by IS NOT NULL)"""


def requests(start: str = "issue", end: str = "complete", parts: bool = False) -> Source:
    """One row per block request; with ``parts`` also for requests that are part of another request."""
    begin, ends = _times(start, end)
    which = AT_DEVICE
    # the flush at the device has neither G nor I: the requests served by the flush have
    if {start, end} & {"getrq", "insert"}:
        which = _ALLOCATED
    if parts:
        which = "true"
    sql = f"SELECT *, {_missing(start, end)} AS why FROM ({_REQUESTS.format(begin=begin, end=ends, which=which)})"
    return Source("requests", sql, "I/O", f"{POINTS[start]}2{POINTS[end]}", ("stage",))


def bios(start: str = "queue", end: str = "complete") -> Source:
    """One row per bio that was queued. Its times after Q are those of its request; of a bio of a stacked device (dm)
    the latest of what it was made into.
    """
    begin, ends = _times(start, end)
    sql = f"""
        WITH RECURSIVE originals AS (
            SELECT bio_id, parent_id AS original_id FROM bios WHERE parent_id IS NOT NULL
            UNION SELECT bio_id, split_from_id FROM bios WHERE split_from_id IS NOT NULL),
        made AS (
            SELECT bio_id AS top, bio_id FROM bios WHERE queue_ns IS NOT NULL
            UNION ALL
            SELECT m.top, b.bio_id FROM made m JOIN originals b ON b.original_id = m.bio_id),
        parts AS (
            SELECT m.top, max(r.insert_ns) AS insert_ns, min(r.first_issue_ns) AS first_issue_ns,
                   max(r.issue_ns) AS issue_ns, min(coalesce(b.getrq_ns, b.merge_ns)) AS getrq_ns,
                   CASE WHEN bool_and(r.complete_ns IS NOT NULL OR r.request_id IS NULL) THEN max(r.complete_ns) END
                     AS complete_ns,
                   CASE WHEN bool_and(r.complete_ns IS NOT NULL OR r.request_id IS NULL)
                     THEN max(coalesce(r.end_ns, r.complete_ns)) END AS end_ns, any_value(r.rwbs) AS rwbs,
                   any_value(r.host)::VARCHAR AS host
            FROM made m JOIN bios b USING (bio_id) LEFT JOIN requests r USING (request_id) GROUP BY m.top)
        SELECT *, {_missing(start, end)} AS why FROM (
            SELECT b.bio_id AS id, {begin.replace("getrq_ns", "p.getrq_ns")} AS begin_ns,
                   {ends.replace("getrq_ns", "p.getrq_ns")} AS end_ns, coalesce(p.complete_ns, b.queue_ns) AS seen_ns,
                   b.dev, p.host, p.rwbs::VARCHAR AS rwbs, b.kind::VARCHAR AS kind, b.nr_sectors::BIGINT * 512 AS bytes,
                   b.sector, b.tid::BIGINT AS tid, b.comm::VARCHAR AS comm, b.cgroup::VARCHAR AS cgroup,
                   NULL::INTEGER AS pid, b.op_id, NULL::VARCHAR AS class, NULL::VARCHAR AS stage
            FROM bios b JOIN parts p ON p.top = b.bio_id)"""
    return Source("bios", sql, "bio", f"{POINTS[start]}2{POINTS[end]}", ("stage",))


_OP_WHY = """CASE WHEN NOT complete THEN 'incomplete' WHEN tainted AND NOT {tainted}
             THEN 'overlapping discarded events (--tainted counts them)' END"""


def ops(tainted: bool = False) -> Source:
    """One row per op, from its begin to its end."""
    sql = f"""
        SELECT op_id AS id, begin_ns, end_ns, coalesce(end_ns, begin_ns) AS seen_ns, dev, host::VARCHAR AS host,
               NULL::VARCHAR AS rwbs,
               NULL::VARCHAR AS kind, length_bytes AS bytes, sector, begin_tid AS tid,
               comm::VARCHAR AS comm, cgroup::VARCHAR AS cgroup, pid, op_id,
               class::VARCHAR AS class, NULL::VARCHAR AS stage,
               {_OP_WHY.format(tainted=str(tainted).lower())} AS why
        FROM ops"""
    return Source("ops", sql, "op", "begin to end", ("io", "stage"))


def stages(tainted: bool = False) -> Source:
    """One row per stage of an op."""
    sql = f"""
        SELECT op_id * 65536 + seq AS id, s.begin_ns, s.begin_ns + s.duration_ns AS end_ns,
               s.begin_ns + s.duration_ns AS seen_ns, o.dev, coalesce(s.host, o.host)::VARCHAR AS host,
               NULL::VARCHAR AS rwbs, NULL::VARCHAR AS kind,
               o.length_bytes AS bytes, o.sector, s.tid, o.comm::VARCHAR AS comm, o.cgroup::VARCHAR AS cgroup, o.pid,
               op_id,
               o.class::VARCHAR AS class, s.stage::VARCHAR AS stage,
               {_OP_WHY.format(tainted=str(tainted).lower())} AS why
        FROM stages s JOIN ops o USING (op_id)"""
    return Source("stages", sql, "stage", "begin to end", ("io",))


def source_of(name: str, start: str | None, end: str | None, tainted: bool, parts: bool = False) -> Source:
    """The options' source; ``parts`` as in `requests`. Raises UsageError."""
    if name in ("ops", "stages"):
        if start is not None or end is not None:
            raise UsageError(f"--from and --to are points of block I/O: {name} have a begin and an end of their own.")
        return ops(tainted) if name == "ops" else stages(tainted)
    last = point(end, "--to") if end is not None else "complete"
    if name == "bios":
        return bios(point(start, "--from") if start is not None else "queue", last)
    first = "queue" if last in ("getrq", "insert", "issue") else "issue"
    return requests(point(start, "--from") if start is not None else first, last, parts)


def beside(one: Source, other: Source) -> Source:
    """The same I/Os measured in two ways, told apart by ``stage``: each is there twice."""
    if one.measured == other.measured:
        raise UsageError(f"--beside: {one.measured} is measured already.")
    both = " UNION ALL ".join(
        f"SELECT * REPLACE ('{source.measured}' AS stage) FROM ({source.sql})" for source in (one, other)
    )
    return Source(one.name, both, one.one, "latency", one.lacks)


def needing(source: Source, column: str, what: str) -> Source:
    """The same rows, of which those whose ``column`` is unknown can't be counted: they are without ``what``."""
    why = f"CASE WHEN why IS NULL AND {column} IS NULL THEN 'without {what}' ELSE why END"
    return Source(**vars(source) | {"sql": f"SELECT * REPLACE ({why} AS why) FROM ({source.sql})"})


def issued() -> Source:
    """One row per block request that was issued, at its first issue: nothing is measured."""
    sql = f"""SELECT * REPLACE (first_ns AS begin_ns, first_ns AS end_ns),
                     CASE WHEN first_ns IS NULL THEN 'without issue' END AS why
              FROM ({_REQUESTS.format(begin="issue_ns", end="complete_ns", which=AT_DEVICE)})"""
    return Source("requests", sql, "I/O", "", ("stage",))
