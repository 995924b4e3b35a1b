# SPDX-License-Identifier: MIT
"""Counts and times of the intervals between two points, for runs with more intervals than fit into memory.

Takes the name of a table of intervals: op_id, seq, from_point, to_point, duration_ns, stage, kind. Needs the temporary
table `counted` of `stages.select_counted`. Rows are read a range of ops at a time, twice. The first reading counts, and
puts each time into a bucket of a width of at most 1 / 2^BITS of the time. The second reading counts the single values
in the buckets of the quantiles: quantiles are measured values, by nearest rank.

A point repeated in an op is one point: recurrence numbers are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opline.talk import passing
from opline_analyses.ops.stages import COUNTED_ROWS, counted_ranges

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

BASE = "regexp_replace({0}, '#[0-9]+$', '')"
OPS = 1 << 16
BITS = 7
PERCENTS = (50, 99)


class Edge(NamedTuple):
    """The intervals between two points: their number, the ops with such an interval, times, stage and kind of the
    longest. ``place``: the median and the mean of the intervals' numbers in their ops.
    """

    source: str
    target: str
    number: int
    ops: int
    total_ns: int
    p50_ns: int
    p99_ns: int
    max_ns: int
    stage: str
    kind: str
    place: tuple[int, float]

    @property
    def mean_ns(self) -> float:
        """The mean."""
        return self.total_ns / self.number


_PAIRS = f"""
CREATE OR REPLACE TEMP TABLE pairs AS
SELECT from_point, to_point, source, target, dense_rank() OVER (ORDER BY source, target)::INTEGER AS edge
FROM (SELECT DISTINCT from_point, to_point, {BASE.format("from_point")} AS source, {BASE.format("to_point")} AS target
      FROM (SELECT DISTINCT from_point, to_point FROM {{table}}))
"""
_SUMS = f"""
SELECT edge, stage, kind, seq, count(*), sum(duration_ns), max(duration_ns)
FROM ({COUNTED_ROWS}) JOIN pairs USING (from_point, to_point) GROUP BY ALL
"""
_OPS = f"""
SELECT edge, count(*)
FROM (SELECT DISTINCT op_id, edge FROM ({COUNTED_ROWS}) JOIN pairs USING (from_point, to_point)) GROUP BY edge
"""
_BUCKET = f"""greatest(0, floor(log2(greatest(duration_ns, 1)))::INTEGER - {BITS}) AS shift,
              duration_ns // (1::BIGINT << shift) AS bucket"""
_BUCKETS = f"""
INSERT INTO buckets
SELECT edge, {_BUCKET}, count(*) FROM ({COUNTED_ROWS}) JOIN pairs USING (from_point, to_point) GROUP BY ALL
"""
_SOUGHT = f"""
CREATE OR REPLACE TEMP TABLE sought AS
WITH b AS (SELECT edge, shift, bucket, sum(n)::BIGINT AS n FROM buckets GROUP BY ALL),
     s AS (SELECT *, sum(n) OVER (PARTITION BY edge) AS whole,
                  sum(n) OVER (PARTITION BY edge ORDER BY shift, bucket) - n AS before FROM b),
     q AS (SELECT s.*, percent, greatest(1, (whole * percent + 99) // 100) - before AS rank
           FROM s, (SELECT unnest({[*PERCENTS]}) AS percent))
SELECT edge, shift, bucket, percent, rank FROM q WHERE rank BETWEEN 1 AND n
"""
_VALUES = f"""
INSERT INTO single
SELECT edge, percent, rank, duration_ns, count(*)
FROM (SELECT edge, duration_ns, {_BUCKET} FROM ({COUNTED_ROWS}) JOIN pairs USING (from_point, to_point))
JOIN sought USING (edge, shift, bucket) GROUP BY ALL
"""
_QUANTILES = """
WITH v AS (SELECT edge, percent, rank, duration_ns, sum(n) AS n FROM single GROUP BY ALL)
SELECT edge, percent, duration_ns
FROM (SELECT *, sum(n) OVER (PARTITION BY edge, percent ORDER BY duration_ns) AS until FROM v)
WHERE rank > until - n AND rank <= until
"""


class _Sums:
    """The counts of an edge, during the reading."""

    def __init__(self) -> None:
        self.count = self.ops = self.total_ns = 0
        self.longest: tuple[int, str, str] | None = None
        self.places: dict[int, int] = {}

    def add(self, stage: str, kind: str, seq: int, count: int, total_ns: int, max_ns: int) -> None:
        """Adds intervals of a stage with this number in their ops."""
        self.count, self.total_ns = self.count + count, self.total_ns + total_ns
        self.places[seq] = self.places.get(seq, 0) + count
        if self.longest is None or (-max_ns, stage, kind) < (-self.longest[0], *self.longest[1:]):
            self.longest = (max_ns, stage, kind)

    def place(self) -> tuple[int, float]:
        """The median of the numbers, and the mean."""
        rank, mean = (self.count + 1) // 2, sum(seq * n for seq, n in self.places.items()) / self.count
        for seq in sorted(self.places):
            rank -= self.places[seq]
            if rank <= 0:
                break
        return seq, mean


def edges_of(run: Run, table: str) -> list[Edge]:
    """Of the counted ops, in the order of the points' names."""
    con = run.con
    con.execute(_PAIRS.format(table=table))
    con.execute("CREATE OR REPLACE TEMP TABLE buckets (edge INTEGER, shift INTEGER, bucket BIGINT, n BIGINT)")
    con.execute(
        """CREATE OR REPLACE TEMP TABLE single (edge INTEGER, percent INTEGER, rank BIGINT, duration_ns BIGINT,
                                                n BIGINT)"""
    )
    ranges = [{"table": table, "first": first, "last": last} for first, last in counted_ranges(run, OPS)]
    sums: dict[int, _Sums] = {}
    for these in passing(ranges):
        for edge, stage, kind, seq, count, total, longest in run.rows(_SUMS.format(**these)):
            sums.setdefault(edge, _Sums()).add(stage, kind, seq, count, int(total), longest)
        for edge, ops in run.rows(_OPS.format(**these)):
            sums[edge].ops += ops
        con.execute(_BUCKETS.format(**these))
    con.execute(_SOUGHT)
    for these in passing(ranges):
        con.execute(_VALUES.format(**these))
    quantiles = {(edge, percent): ns for edge, percent, ns in run.rows(_QUANTILES)}
    found = []
    for edge, source, target in run.rows("SELECT DISTINCT edge, source, target FROM pairs ORDER BY edge"):
        its = sums.get(edge)
        if its is not None and its.longest is not None:
            p50, p99 = (quantiles[edge, percent] for percent in PERCENTS)
            found.append(Edge(source, target, its.count, its.ops, its.total_ns, p50, p99, *its.longest, its.place()))
    return found


_PASSED = f"""
SELECT node, count(*)
FROM (SELECT DISTINCT op_id, node
      FROM ({COUNTED_ROWS}) JOIN (SELECT point, {BASE.format("point")} AS node FROM points) USING (point)
      WHERE NOT late)
GROUP BY node
"""
_STEPS = f"""
SELECT p, count(*)
FROM (SELECT DISTINCT op_id, p FROM (SELECT op_id, unnest([from_point, to_point]) AS p FROM ({COUNTED_ROWS})
                                     WHERE request_id IS NOT NULL)
      WHERE p IN ('Q', 'G', 'I', 'D', 'C'))
GROUP BY p
"""


def passed(run: Run) -> dict[str, int]:
    """The number of counted ops that pass each point; for block steps, of ops with a request."""
    found: dict[str, int] = {}
    of_steps: dict[str, int] = {}
    run.con.execute("CREATE OR REPLACE TEMP TABLE points AS SELECT DISTINCT point FROM transitions")
    for first, last in counted_ranges(run, OPS):
        for node, n in run.rows(_PASSED.format(table="transitions", first=first, last=last)):
            found[node] = found.get(node, 0) + n
        for node, n in run.rows(_STEPS.format(table="stages", first=first, last=last)):
            of_steps[node] = of_steps.get(node, 0) + n
    return found | of_steps


_ASIDE = f"""
INSERT INTO aside_steps
SELECT op_id, 0, before, point, v, '', 'aside'
FROM (SELECT op_id, {BASE.format("point")} AS point, aside, ts_ns - lag(ts_ns) OVER w AS v,
             lag({BASE.format("point")}) OVER w AS before
      FROM ({COUNTED_ROWS}) WHERE NOT late WINDOW w AS (PARTITION BY op_id ORDER BY seq))
WHERE aside AND before IS NOT NULL
"""


def asides(run: Run) -> list[Edge]:
    """For each point aside of the critical path: the interval since the point before in the same op."""
    if not run.rows("SELECT 1 FROM transitions WHERE aside AND NOT late LIMIT 1"):
        return []
    run.con.execute(
        """CREATE OR REPLACE TEMP TABLE aside_steps (op_id BIGINT, seq INTEGER, from_point TEXT, to_point TEXT,
                                                     duration_ns BIGINT, stage TEXT, kind TEXT)"""
    )
    for first, last in counted_ranges(run, OPS):
        run.con.execute(_ASIDE.format(table="transitions", first=first, last=last))
    return edges_of(run, "aside_steps")
