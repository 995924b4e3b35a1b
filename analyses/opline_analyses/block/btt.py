# SPDX-License-Identifier: MIT
"""btt's figures per device, from opline's requests and bios: intervals, merges, seeks, queue depth.

Terms and layout after btt (blktrace 1.3.0, btt/doc/btt.tex). Exact: every interval belongs to one bio or request with
both ends, nothing is averaged over merges.
"""

from __future__ import annotations

from collections.abc import Sequence

from opline.values import Value
from opline_analyses.runs.run import Run

Chosen = tuple[str, Sequence[object]]  # SQL of the selected request_ids, and its parameters


class Interval(Value):
    """Least, mean and greatest of one interval, ns, and over how many."""

    name: str
    min_ns: int
    avg_ns: float
    max_ns: int
    total_ns: int
    count: int


class Plugs(Value):
    """How often and how long a device was plugged (feed/plugs.hpp of the core), in the whole trace."""

    plugs: int
    timers: int
    ios: int  # released by the plugs, without those released by timers
    timer_ios: int
    plugged_ns: int
    observed_ns: int  # from the first to the last event of the device's I/Os


class Device(Value):
    """One device: intervals by name, and the figures of btt's other tables."""

    dev: int
    intervals: dict[str, Interval]
    queued: int  # bios
    issued: int  # requests
    blk_min: int | None  # sectors of an issued request
    blk_avg: float | None
    blk_max: int | None
    blk_total: int
    seeks: int  # issues that do not begin at the end of the issue before
    seek_mean: float | None  # sectors, over all issues except the first, 0 for sequential issues
    seek_median: float | None
    depth_avg: float | None  # bios of the device queued and not completed, at Q, without the new bio
    depth_max: int | None
    plugs: Plugs | None  # None where the trace does not tell
    share: dict[str, float]  # of Q2C, 0 to 1: disjoint parts of each bio's way

    def record(self) -> dict[str, object]:
        """As plain JSON types."""
        parts = {name: vars(part) for name, part in self.intervals.items()}
        return {**vars(self), "intervals": parts, "plugs": self.plugs and vars(self.plugs)}


# name → SQL over the view `q` (requests of one device) or `b` (its bios with their request's times)
_REQUEST = {
    "G2I": ("getrq_ns", "insert_ns"),
    "I2D": ("insert_ns", "first_issue_ns"),
    "G2D": ("getrq_ns", "first_issue_ns"),
    "D2C": ("issue_ns", "complete_ns"),
}
# An insert after a requeue is not on the way to the first issue.
_ALSO = {
    "G2I": " AND coalesce(insert_ns <= first_issue_ns, true)",
    "I2D": " AND insert_ns <= first_issue_ns",
    "G2D": " AND coalesce(insert_ns > first_issue_ns, true)",
    "D2C": " AND flushed_by IS NULL",
}
_BIO = {
    "Q2G": ("queue_ns", "getrq_ns"),
    "Q2M": ("queue_ns", "merge_ns"),
    "M2D": ("merge_ns", "next_issue_ns"),
    "Q2C": ("queue_ns", "complete_ns"),
}
ORDER = ("Q2Q", "Q2G", "G2I", "Q2M", "I2D", "G2D", "M2D", "D2C", "Q2C")


def _interval(run: Run, name: str, values: str, parameters: list[object]) -> Interval | None:
    low, mean, high, total, count = run.row(
        f"SELECT min(v), avg(v), max(v), sum(v), count(v) FROM ({values})", parameters
    )
    return None if not count else Interval(name, int(low), float(mean), int(high), int(total), int(count))


def _float(value: object) -> float | None:
    return None if value is None else float(str(value))


def _bios() -> str:
    # A requeued request can get a merged bio after its first issue.
    return """SELECT b.*, r.insert_ns, r.first_issue_ns, r.issue_ns, r.complete_ns, r.flushed_by,
                     r.getrq_ns AS request_ns,
                     if(merge_ns > first_issue_ns, issue_ns, first_issue_ns) AS next_issue_ns
              FROM btt_bios b LEFT JOIN btt_requests r USING (request_id)"""


def _shares(run: Run, dev: int) -> dict[str, float]:
    """For the bios with a known Q and C: each bio's own way, cut at the known steps."""
    whole, *parts = run.row(
        f"""WITH b AS (SELECT *, coalesce(getrq_ns, merge_ns) AS joined_ns,
                       getrq_ns = request_ns AND insert_ns <= first_issue_ns AS inserted FROM ({_bios()}))
            SELECT sum(complete_ns - queue_ns), sum(getrq_ns - queue_ns),
                   sum(insert_ns - getrq_ns) FILTER (WHERE inserted),
                   sum(merge_ns - queue_ns) FILTER (WHERE getrq_ns IS NULL),
                   sum(first_issue_ns - insert_ns) FILTER (WHERE inserted),
                   sum(first_issue_ns - getrq_ns)
                     FILTER (WHERE coalesce(NOT inserted, true) AND first_issue_ns >= getrq_ns),
                   sum(next_issue_ns - merge_ns) FILTER (WHERE getrq_ns IS NULL),
                   sum(complete_ns - issue_ns)
                     FILTER (WHERE issue_ns >= coalesce(joined_ns, queue_ns))
            FROM b WHERE dev = ? AND queue_ns IS NOT NULL AND complete_ns IS NOT NULL""",
        [dev],
    )
    names = ("Q2G", "G2I", "Q2M", "I2D", "G2D", "M2D", "D2C")
    return {n: int(part) / int(whole) for n, part in zip(names, parts, strict=True) if whole and part is not None}


def devices(run: Run, chosen: Chosen | None = None) -> list[Device]:
    """Every device with a request or a bio, by number; only with the ``chosen`` requests and their bios."""
    for kind, name in (("VIEW", "btt_requests"), ("VIEW", "btt_bios"), ("TABLE", "btt_chosen_requests")):
        run.con.execute(f"DROP {kind} IF EXISTS {name}")
    if chosen is None:
        which = ""
    else:
        run.con.execute(f"CREATE TEMP TABLE btt_chosen_requests AS {chosen[0]}", chosen[1])
        which = "WHERE request_id IN (FROM btt_chosen_requests)"
    for table in ("requests", "bios"):
        run.con.execute(f"CREATE TEMP VIEW btt_{table} AS SELECT * FROM {table} {which}")
    numbers = [d for (d,) in run.rows("SELECT dev FROM btt_requests UNION SELECT dev FROM btt_bios ORDER BY dev")]
    return [_device(run, dev) for dev in numbers]


def _plugs(run: Run, dev: int) -> Plugs | None:
    told = next((one for one in run.manifest.get("plugs") or () if one["dev"] == dev), None)
    return None if told is None else Plugs(**{name: int(told[name]) for name in Plugs.__annotations__})


def _device(run: Run, dev: int) -> Device:
    between = """SELECT queue_ns - lag(queue_ns) OVER (ORDER BY queue_ns, bio_id) v
                 FROM btt_bios WHERE dev = ? AND queue_ns IS NOT NULL"""
    found: dict[str, Interval | None] = {"Q2Q": _interval(run, "Q2Q", between, [dev])}
    for name, (begin, end) in _REQUEST.items():
        select = f"SELECT {end} - {begin} v FROM btt_requests WHERE dev = ?{_ALSO[name]}"
        found[name] = _interval(run, name, select, [dev])
    for name, (begin, end) in _BIO.items():
        found[name] = _interval(run, name, f"SELECT {end} - {begin} v FROM ({_bios()}) WHERE dev = ?", [dev])
    (queued,) = run.row("SELECT count(*) FROM btt_bios WHERE dev = ? AND queue_ns IS NOT NULL", [dev])
    issued, low, mean, high, total = run.row(
        """SELECT count(*), min(nr_sectors), avg(nr_sectors), max(nr_sectors), coalesce(sum(nr_sectors), 0)
           FROM btt_requests WHERE dev = ? AND first_issue_ns IS NOT NULL AND nr_sectors > 0""",
        [dev],
    )
    seeks, seek_mean, seek_median = run.row(
        """SELECT count(*) FILTER (WHERE distance != 0), avg(distance), median(distance) FROM (
             SELECT abs(sector::HUGEINT - lag(sector + nr_sectors) OVER (ORDER BY first_issue_ns, request_id)) distance
             FROM btt_requests WHERE dev = ? AND first_issue_ns IS NOT NULL AND sector IS NOT NULL AND nr_sectors > 0)
           WHERE distance IS NOT NULL""",
        [dev],
    )
    depth_avg, depth_max = run.row(
        """SELECT avg(depth - 1), max(depth - 1) FROM (
             SELECT step, sum(step) OVER (ORDER BY ts, step ROWS UNBOUNDED PRECEDING) depth FROM (
               SELECT queue_ns ts, 1 step FROM btt_bios WHERE dev = $1 AND queue_ns IS NOT NULL AND request_id IN
                 (SELECT request_id FROM btt_requests WHERE complete_ns IS NOT NULL)
               UNION ALL
               SELECT r.complete_ns, -1 FROM btt_bios b JOIN btt_requests r USING (request_id)
                 WHERE b.dev = $1 AND b.queue_ns IS NOT NULL AND r.complete_ns IS NOT NULL))
           WHERE step = 1""",
        [dev],
    )
    (unknown,) = run.row(
        """SELECT count(*) FROM btt_requests
           WHERE dev = ? AND first_issue_ns IS NOT NULL AND in_flight IS NULL AND flushed_by IS NULL""",
        [dev],
    )
    if unknown:  # completions are missing: the number in flight is unknown
        depth_avg = depth_max = None
    return Device(
        dev=dev,
        intervals={name: i for name in ORDER if (i := found.get(name)) is not None},
        queued=queued,
        issued=issued,
        blk_min=low,
        blk_avg=mean,
        blk_max=high,
        blk_total=int(total),
        seeks=seeks,
        seek_mean=_float(seek_mean),
        seek_median=_float(seek_median),
        depth_avg=_float(depth_avg),
        depth_max=None if depth_max is None else int(depth_max),
        plugs=_plugs(run, dev),
        share=_shares(run, dev),
    )
