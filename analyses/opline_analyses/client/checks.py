# SPDX-License-Identifier: MIT
"""Sanity of a run: IOPS, bytes, Little's law, stages in order, sums per op, the widest unsplit stage, agreement of
independent links.

Takes a run (and a client's report); gives `Check`s with their numbers, pass or fail, and tables. Needs the temporary
table `counted` of `stages.select_counted`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from opline_analyses.base.text import duration, percent
from opline_analyses.client.client_report import ClientReport
from opline_analyses.client.coverage import PER_OP, per_op
from opline_analyses.ops import stage_sums
from opline_analyses.ops.stages import STAGE_SUMS, counted_flags
from opline_analyses.runs.columns import batches
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

IOPS_LIMIT = 0.02
LITTLE_LIMIT = 0.05
BYTES_LIMIT = 0.001
WIDE = 0.25  # of the mean: a stage worth a tracepoint
UNKNOWN_LIMIT = 0.05
LOG_NEAR_NS, LOG_SHARE, LOG_MEAN, LOG_INTERRUPTED = 20_000, 0.999, 0.005, 0.05
LOG_OWN_NS = 2_000
AGREEMENT = ("agree", "differ", "pointer_only", "thread_only", "sector_only", "neither", "ambiguous")


class Check(NamedTuple):
    """One check: name, result (None: nothing to compare with), and the numbers behind the result."""

    name: str
    passed: bool | None
    text: str
    numbers: dict[str, float | int | str | None]
    is_note: bool = False  # worth a look, and no doubt about the data


def iops(completions: int, client: ClientReport, window_ns: int | None = None) -> Check:
    """Completions counted in the trace over the client's own run time, against the client's own rate (2 %).

    ``window_ns``, from the trace's first begin to its last end, is used for a client with a rate and without a time.
    """
    seconds = client.seconds or (window_ns / 1e9 if window_ns else None)
    if not seconds or not client.iops:
        return Check("IOPS", None, "the client reports no run time and no rate", {})
    counted = completions / seconds
    off = counted / client.iops - 1
    whose = "" if client.seconds else " (the trace's)"
    text = (
        f"{completions} completions / {seconds:.6g} s{whose} = {counted:.1f}, client {client.iops:.1f}:"
        f" {100 * off:+z.2f} % (limit {100 * IOPS_LIMIT:g} %)"
    )
    return Check("IOPS", abs(off) <= IOPS_LIMIT, text, {"counted": counted, "client": client.iops, "difference": off})


def bytes_moved(run: Run, client: ClientReport) -> Check:
    """Bytes of the counted ops against the client's own, per op (so that a run cut short by the trace still agrees).
    For an op without a length, its block I/O's bytes count.
    """
    if client.bytes is None or not client.count:
        return Check("bytes", None, "the client does not say how many", {})
    ops, known, total = run.row(
        "SELECT count(*), count(length_bytes), sum(length_bytes)::DOUBLE FROM ops SEMI JOIN counted USING (op_id)"
    )
    if known < ops:
        ops, known, total = run.row(
            """WITH b AS (SELECT l.op_id, sum(b.nr_sectors) * 512 AS moved FROM links l JOIN bios b USING (bio_id)
                         WHERE NOT l.shared AND b.parent_id IS NULL GROUP BY l.op_id)
               SELECT count(*), count(coalesce(length_bytes, moved)), sum(coalesce(length_bytes, moved))::DOUBLE
               FROM ops SEMI JOIN counted USING (op_id) LEFT JOIN b USING (op_id)"""
        )
    if known < ops:
        return Check("bytes", None, f"{ops - known} of {ops} ops of the trace have no length", {})
    ours, theirs = total / ops, client.bytes / client.count
    off = ours / theirs - 1 if theirs else 0.0
    text = (
        f"{int(total)} bytes in {ops} ops = {ours:.1f} per op, client {client.bytes} in {client.count} = {theirs:.1f}:"
        f" {100 * off:+z.2f} % (limit {100 * BYTES_LIMIT:g} %)"
    )
    return Check("bytes", abs(off) <= BYTES_LIMIT, text, {"counted": total, "client": client.bytes, "difference": off})


def chain(run: Run) -> Check:
    """The stages of each counted op follow each other: none is negative, and each begins at the end of the stage
    before.
    """
    import numpy as np

    stages = ops = bad = 0
    counts = counted_flags(run)
    last_op, last_end = -1, 0  # of the row before: an op's rows come together, in order
    for batch in batches(run, "stages", ("op_id", "begin_ns", "duration_ns")):
        op, begin, duration = (batch.numbers(n).filled(np.int64) for n in ("op_id", "begin_ns", "duration_ns"))
        kept = counts[op] == 1
        op, begin, duration = op[kept], begin[kept], duration[kept]
        if not len(op):
            continue
        follows = np.diff(op, prepend=last_op) == 0
        before = np.concatenate(([last_end], begin[:-1] + duration[:-1]))
        bad += int(np.count_nonzero((duration < 0) | (follows & (begin != before))))
        stages, ops = stages + len(op), ops + int(np.count_nonzero(~follows))
        last_op, last_end = int(op[-1]), int(begin[-1] + duration[-1])
    if not stages:
        return Check("stages in order", None, "no stages", {})
    text = f"{stages} stages of {ops} ops, {bad} negative or not where the one before ends"
    return Check("stages in order", bad == 0, text, {"stages": stages, "ops": ops, "bad": bad})


def sums(run: Run) -> Check:
    """Stages + residual is the client's own figure of each op, in integers. Needs client_ops."""
    parts = " + ".join(f"coalesce({name}, 0)" for name in PER_OP[2:])
    counts = f"count(*), count(*) FILTER ({parts} = client_ns), count(*) FILTER (least(submit_ns, reap_ns) < 0)"
    ops, exact, negative = per_op(run).aggregate(counts).fetchall()[0]
    text = (
        f"stages + residual = the client's figure for {exact} of {ops} ops;"
        f" {negative} have a negative time before or after it"
    )
    if negative:
        text += " (the client's own begin or end lies between the op's points)"
    return Check("sum per op", exact == ops, text, {"ops": ops, "exact": exact, "negative": negative})


def littles_law(run: Run, which: Selection, client: ClientReport | None) -> Check:
    """Mean ops in flight against rate * mean latency. Integrated over the client's run time, if told (the rate excludes
    work before and after), else over the trace; the rate is the client's, if known.

    An op without an end is in flight until the last end. If older by then than the slowest complete op, the op's end
    was lost rather than late: the time in flight is unknown, and the op is left out on both sides.
    """
    window_ns = round(client.seconds * 1e9) if client and client.seconds else "NULL"
    first, last, integral, complete, mean, lost, ops = run.row(
        f"""WITH s AS (SELECT * FROM ops o WHERE {which.where}),
                e AS (SELECT min(begin_ns) AS first, greatest(max(end_ns), max(begin_ns)) AS last,
                             max(latency_ns) AS slowest FROM s),
                a AS (SELECT s.*, end_ns IS NULL AND last - begin_ns > slowest AS lost FROM s, e),
                w AS (SELECT first, least(last, coalesce(first + {window_ns}, last)) AS last FROM e)
           SELECT any_value(first), any_value(last),
                  sum(greatest(0, least(coalesce(end_ns, last), last) - begin_ns)) FILTER (NOT lost)::DOUBLE,
                  count(*) FILTER (complete), avg(latency_ns), count(*) FILTER (lost), count(*) FROM a, w""",
        which.parameters,
    )
    window = last - first if first is not None else 0
    if not window or not complete:
        return Check("Little's law", None, "no complete op", {})
    in_flight = integral / window
    rate = client.iops * (ops - lost) / ops if client and client.iops else complete * 1e9 / window
    expected = rate * mean / 1e9
    off = in_flight / expected - 1
    whose = "client's" if client and client.iops else "trace's"
    text = (
        f"{in_flight:.3f} ops in flight, {whose} {rate:.1f}/s * {duration(mean)} = {expected:.3f}:"
        f" {100 * off:+z.2f} % (limit {100 * LITTLE_LIMIT:g} %)"
    )
    if lost:
        text += f"; left out: {lost} of {ops} whose end was lost"
    return Check(
        "Little's law",
        abs(off) <= LITTLE_LIMIT,
        text,
        {"in_flight": in_flight, "expected": expected, "difference": off, "lost": lost},
    )


def widest_unsplit(run: Run) -> Check:
    """The interval between two neighbouring points with the largest share of the mean latency. Not counted: the
    device's intervals (D2C, kind device), and waits in a queue between enqueue and dequeue.
    """
    stage_sums.make(run)
    rows = run.rows(
        f"""WITH w AS (SELECT count(*) AS n, sum(latency_ns) AS latency FROM ops SEMI JOIN counted USING (op_id))
           SELECT stage, from_point, to_point, min(kind), sum(total_ns)::DOUBLE / any_value(n) AS mean,
                  sum(total_ns)::DOUBLE / any_value(latency)
           FROM w, {STAGE_SUMS} WHERE kind NOT IN ('device', 'wait') AND stage <> 'D2C'
           GROUP BY stage, from_point, to_point ORDER BY mean DESC, stage, from_point, to_point LIMIT 1"""
    )
    if not rows:
        return Check("widest unsplit stage", None, "no stage but the device's and waits", {})
    stage, source, target, kind, mean, share = rows[0]
    pair = f"{source} → {target}"
    named = pair if stage in (pair, f"unknown: {pair}") else f"{stage}, {pair}"
    advice = "; a tracepoint inside would say more" if share >= WIDE else ""
    text = f"{named} ({kind}): {duration(mean)} per op, {100 * share:.1f} % of the mean{advice}"
    numbers: dict[str, float | int | str | None] = {
        "stage": stage, "from": source, "to": target, "mean_ns": mean, "share": share,
    }  # fmt: skip
    return Check("widest unsplit stage", None, text, numbers, is_note=True)


def unknown_share(unknown_ns: float, whole_ns: float) -> Check:
    """Time between threads without evidence on both sides."""
    share = unknown_ns / whole_ns if whole_ns else 0.0
    text = f"{duration(unknown_ns)} per op, {100 * share:.1f} % of the mean (limit {100 * UNKNOWN_LIMIT:g} %)"
    return Check("unknown", share <= UNKNOWN_LIMIT, text, {"mean_ns": unknown_ns, "share": share})


def client_log(run: Run) -> Check:
    """Each op's latency against the op's line in the client's log: LOG_SHARE of the ops have a line and lie within
    LOG_NEAR_NS of the line, the mean within LOG_MEAN of the log's, or LOG_OWN_NS if larger: a client reads its clock
    and does accounting beside each op (fio beside a pread of 26 us: 0.9 us), a large part of a short op. Ops whose
    client was interrupted beside a point (client_log.py) are left out, at most LOG_INTERRUPTED of all. Needs the
    temporary table client_ops.
    """
    ops, logged, interrupted, near, mean, client = run.row(
        f"""SELECT count(*), count(client_ns), count(*) FILTER (interrupted),
                   count(*) FILTER (NOT interrupted AND abs(client_ns - latency_ns) <= {LOG_NEAR_NS}),
                   avg(latency_ns) FILTER (NOT interrupted), avg(client_ns) FILTER (NOT interrupted)
            FROM ops SEMI JOIN counted USING (op_id) LEFT JOIN client_ops USING (op_id)"""
    )
    if not logged:
        return Check("client's log", None, "no op of the trace has a line in it", {})
    compared = ops - interrupted
    off = mean / client - 1 if compared and client else 1.0
    mean_holds = bool(compared and client and abs(mean - client) <= max(LOG_MEAN * client, LOG_OWN_NS))
    limits = f"{100 * LOG_MEAN:g} % or {duration(LOG_OWN_NS)}, the client's own work beside an op"
    text = (
        f"{logged} of {ops} ops have a line, {near} ({percent(near, compared, 2)} %) within {duration(LOG_NEAR_NS)}"
        f" of it (limit {100 * LOG_SHARE:g} %); mean {100 * off:+z.2f} % (limit {limits})"
    )
    if interrupted:
        text += (
            f"; left out: {interrupted} whose client was interrupted between its clock and its tracepoint"
            f" (limit {100 * LOG_INTERRUPTED:g} %)"
        )
    passed = near >= LOG_SHARE * compared > 0 and mean_holds and interrupted <= LOG_INTERRUPTED * ops
    numbers = {"ops": ops, "logged": logged, "interrupted": interrupted, "near": near, "mean_difference": off}
    return Check("client's log", passed, text, numbers)


def hop_agreement(run: Run) -> list[dict[str, Any]]:
    """Each hop of the way to the device, linked by two independent rules, with the rate of agreement. First op to bio,
    by thread and by sector (for a file through its extents); then bio to request to issue to completion, by pointer and
    by (dev, sector), as counted by the core.
    """
    agree, differ, thread_only, sector_only, neither, ambiguous = run.row(
        """SELECT count(*) FILTER (op_by_thread = placed), count(*) FILTER (op_by_thread <> placed),
                  count(*) FILTER (op_by_thread IS NOT NULL AND placed IS NULL),
                  count(*) FILTER (op_by_thread IS NULL AND placed IS NOT NULL),
                  count(*) FILTER (op_by_thread IS NULL AND placed IS NULL),
                  count(*) FILTER (sector_candidates > 1)
           FROM (SELECT *, coalesce(op_by_extent, op_by_sector) AS placed FROM bios)
           WHERE op_id IS NOT NULL OR op_by_thread IS NOT NULL OR placed IS NOT NULL"""
    )
    hops: list[dict[str, Any]] = [
        {
            "hop": "op_to_bio", "agree": agree, "differ": differ, "thread_only": thread_only,
            "sector_only": sector_only, "neither": neither, "ambiguous": ambiguous,
        }
    ]  # fmt: skip
    counted = run.core("hops") or {}
    for name in ("bio_to_request", "request_to_issue", "request_to_complete"):
        if isinstance(counted.get(name), dict):
            hops.append({"hop": name, **counted[name]})
    return [h for h in hops if any(h.get(k) for k in AGREEMENT)]
