# SPDX-License-Identifier: MIT
"""Closing the loop: the part of the client's own reported time that is attributed to stages, and the rest.

Takes a run, a client's report and, if present, the client's log of single ops; gives a `Coverage`. *Attributed* is
latency without stages of kind unknown and without time in no stage. *Explained* is the part of the attributed time in
stages of at most ``UNSPLIT`` of the mean, in the device, in declared waits, or in such small parts of a stage by the
thread's work for other ops meanwhile: a stage with most of the latency in one piece has a name and explains nothing.
Means are over complete ops untouched by lost events. A client's report includes the tainted ops: their share of the
mean is a separate part, and shares are of the mean without this part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opline.errors import OplineError
from opline_analyses.client.client_report import ClientReport
from opline_analyses.ops import behind, stage_sums
from opline_analyses.ops.stages import COUNTED_ROWS, STAGE_SUMS, counted_ranges, none_counts, select_counted
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

if TYPE_CHECKING:
    import duckdb

UNSPLIT = 0.10
KINDS = ("work", "wait", "network out", "network between servers", "network back", "network", "device", "block")


def ratio(attributed_ns: float, client_ns: float) -> float:
    """Coverage: attributed time of the client's time (1.0: all of it)."""
    return attributed_ns / client_ns


class Part(NamedTuple):
    """A part of the client's mean latency, ns per op."""

    name: str
    mean_ns: float
    level: int  # 0: parts that sum to the client's mean; 1: pieces of the part above


class Wide(NamedTuple):
    """A stage with more than ``UNSPLIT`` of the mean, and the thread's meantime work for other ops."""

    stage: str
    from_point: str
    to_point: str
    kind: str
    mean_ns: float
    behind: list[behind.Part]

    def text(self) -> str:
        """The name in `opline stages`, with the two ends."""
        pair = f"{self.from_point} → {self.to_point}"
        return pair if self.stage == pair else f"{self.stage}, {pair}"

    def unexplained_ns(self, limit_ns: float) -> float:
        """The part in larger pieces. A declared wait is explained as a wait."""
        return 0.0 if self.kind == "wait" else sum(p.mean_ns for p in self.behind if p.mean_ns > limit_ns)


class Coverage(NamedTuple):
    """Where the client's mean latency goes."""

    ops: int
    incomplete: int
    tainted: int
    mean_ns: float  # begin point to end point
    attributed_ns: float
    unknown_ns: float
    unattributed_ns: float
    by_kind: dict[str, float]
    client: ClientReport | None
    submit_ns: float | None  # client's begin to begin point, for the ops in the client's log
    reap_ns: float | None
    logged_ops: int | None
    log_client_ns: float | None  # mean of the logged ops' own latencies
    wide: list[Wide]  # stages with much of the mean
    complete_ns: float  # mean of the tainted ops too

    @property
    def client_ns(self) -> float | None:
        """The client's own mean: from the log, if the log has a line for every counted op, else from the report. A log
        of only some of the ops gives no figure of all ops.
        """
        if self._of_log:
            return self.log_client_ns
        return self.client.mean_ns if self.client else None

    @property
    def _of_log(self) -> bool:
        return self.log_client_ns is not None and self.logged_ops == self.ops

    @property
    def tainted_ns(self) -> float:
        """The tainted ops' share of the client's mean: 0 if the client's figure is without these ops."""
        return 0.0 if self._of_log or self.client is None else self.complete_ns - self.mean_ns

    @property
    def whole_ns(self) -> float:
        """The base of shares: the client's mean without the tainted ops' share, else the trace's mean."""
        return (self.client_ns or self.mean_ns) - self.tainted_ns

    @property
    def coverage(self) -> float | None:
        """Attributed part of the client's mean; None without a client's figure."""
        return ratio(self.attributed_ns, self.whole_ns) if self.client_ns else None

    @property
    def explained(self) -> float:
        """Explained part of the client's mean, without its figure of the trace's."""
        unexplained = sum(w.unexplained_ns(UNSPLIT * self.whole_ns) for w in self.wide)
        return ratio(self.attributed_ns - unexplained, self.whole_ns)

    def parts(self) -> list[Part]:
        """The parts at level 0 sum to the client's mean (to the trace's without a client), parts at level 1 to the part
        above.
        """
        found = [Part("attributed", self.attributed_ns, 0)]
        found += [Part(kind, mean, 1) for kind, mean in self.by_kind.items()]
        outside = self.whole_ns - self.mean_ns if self.client_ns is not None else 0.0
        inside = self.unknown_ns + self.unattributed_ns
        found.append(Part("residual", outside + inside, 0))
        if self.client_ns is not None:
            split = 0.0
            if self.submit_ns is not None and self.reap_ns is not None:
                found.append(Part("client: before the begin point", self.submit_ns, 1))
                found.append(Part("client: after the end point", self.reap_ns, 1))
                split = self.submit_ns + self.reap_ns
            # A millionth of a nanosecond is the means' rounding.
            found.append(Part("unknown: outside of the op's points", round(outside - split, 6) + 0.0, 1))
        found.append(Part("unknown: between threads, no evidence", self.unknown_ns, 1))
        found.append(Part("unattributed", self.unattributed_ns, 1))
        if self.tainted_ns:
            found.append(Part("added by tainted ops", self.tainted_ns, 0))
        return found


# A stage that ends in another process than it began in is on the network, and so are those of kind network within a
# process: with the next one that crosses, else with the one before. The pieces of a wait that is cut at other ops'
# points are all between the two processes at its ends. What a batch does for its members it does where it is: no way to
# another process begins or ends there. An op whose points are all in one process has stages of their own kinds alone.
_ABROAD = """
INSERT INTO abroad SELECT op_id FROM transitions WHERE op_id BETWEEN {first} AND {last}
GROUP BY op_id HAVING min(pid) <> max(pid)
"""
_PARTS = """
WITH counted_stages AS (SELECT op_id, seq, kind, from_point, to_point, begin_ns, duration_ns FROM ({rows})),
     theirs AS (SELECT * FROM counted_stages SEMI JOIN abroad USING (op_id)),
     o AS (SELECT op_id, pid FROM ops SEMI JOIN abroad USING (op_id) WHERE op_id BETWEEN {first} AND {last}),
     passed AS (SELECT op_id, point, ts_ns, pid, batch_id FROM transitions SEMI JOIN abroad USING (op_id)
                WHERE op_id BETWEEN {first} AND {last}),
     ends AS (SELECT s.op_id, s.seq, s.kind, s.duration_ns, o.pid AS mine,
                     CASE WHEN f.batch_id IS NULL AND t.batch_id IS NULL THEN f.pid END AS f,
                     CASE WHEN f.batch_id IS NULL AND t.batch_id IS NULL THEN t.pid END AS t
              FROM theirs s JOIN o USING (op_id)
              LEFT JOIN passed f ON f.op_id = s.op_id AND f.point = s.from_point AND f.ts_ns = s.begin_ns
              LEFT JOIN passed t ON t.op_id = s.op_id AND t.point = s.to_point
                  AND t.ts_ns = s.begin_ns + s.duration_ns),
     whole AS (SELECT op_id, seq, kind, duration_ns, mine,
                      coalesce(f, CASE WHEN kind = 'network' THEN last_value(f IGNORE NULLS) OVER before END) AS f,
                      coalesce(t, CASE WHEN kind = 'network' THEN first_value(t IGNORE NULLS) OVER after END) AS t
               FROM ends
               WINDOW after AS (PARTITION BY op_id ORDER BY seq ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING),
                      before AS (PARTITION BY op_id ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
     s AS (SELECT op_id, seq, kind, duration_ns,
                  CASE WHEN kind = 'unknown' OR f = t THEN NULL
                       WHEN t = mine THEN 'network back'
                       WHEN f = mine THEN 'network out'
                       ELSE 'network between servers' END AS way
           FROM whole WHERE f IS NOT NULL AND t IS NOT NULL),
     w AS (SELECT op_id, seq,
                  CASE WHEN kind <> 'network' THEN way
                       ELSE coalesce(way, first_value(way IGNORE NULLS) OVER after,
                                     last_value(way IGNORE NULLS) OVER before) END AS way
           FROM s WINDOW after AS (PARTITION BY op_id ORDER BY seq ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING),
                         before AS (PARTITION BY op_id ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT s.op_id, coalesce(w.way, s.kind) AS part, sum(s.duration_ns)::BIGINT AS ns
FROM theirs s LEFT JOIN w ON w.op_id = s.op_id AND w.seq = s.seq
GROUP BY s.op_id, part
UNION ALL SELECT op_id, kind, sum(duration_ns)::BIGINT FROM counted_stages ANTI JOIN abroad USING (op_id)
GROUP BY op_id, kind
"""


def wide_stages(run: Run, mean_ns: float) -> list[Wide]:
    """The widest first. Without the device's stages and without unknown time, which is not attributed either."""
    stage_sums.make(run)
    found = run.rows(
        f"""WITH n AS (SELECT count(*) AS n FROM counted)
            SELECT stage, from_point, to_point, min(kind), sum(total_ns)::DOUBLE / any_value(n) AS mean
            FROM n, {STAGE_SUMS}
            WHERE kind NOT IN ('device', 'unknown') AND stage <> 'D2C'
            GROUP BY stage, from_point, to_point HAVING mean > {UNSPLIT} * {mean_ns}
            ORDER BY mean DESC, stage, from_point, to_point"""
    )
    parts = behind.parts_of(run, [((stage, begin, end), mean) for stage, begin, end, _, mean in found])
    return [
        Wide(stage, begin, end, kind, mean, its)
        for (stage, begin, end, kind, mean), its in zip(found, parts, strict=True)
    ]


def _parts(run: Run, keep: bool) -> dict[str, int]:
    """Sums over the counted ops by part, a range of them at a time: a part is of one op. With ``keep`` the temporary
    table `parts` has the parts of each op.
    """
    found: dict[str, int] = {}
    run.con.execute("CREATE OR REPLACE TEMP TABLE parts (op_id BIGINT, part VARCHAR, ns BIGINT)")
    run.con.execute("CREATE OR REPLACE TEMP TABLE abroad (op_id BIGINT)")
    for first, last in counted_ranges(run, table="transitions"):
        run.con.execute(_ABROAD.format(first=first, last=last))
    if not keep and run.row("SELECT count(*) FROM abroad") == (0,):
        stage_sums.make(run)
        return {kind: int(ns) for kind, ns in run.rows(f"SELECT kind, sum(total_ns) FROM {STAGE_SUMS} GROUP BY kind")}
    for first, last in counted_ranges(run):
        rows = COUNTED_ROWS.format(table="stages", first=first, last=last)
        sql = _PARTS.format(rows=rows, first=first, last=last)
        if keep:
            run.con.execute(f"INSERT INTO parts {sql}")
            sql = f"SELECT part, ns FROM parts WHERE op_id BETWEEN {first} AND {last}"
        for part, ns in run.rows(f"SELECT part, sum(ns) FROM ({sql}) GROUP BY part"):
            found[part] = found.get(part, 0) + int(ns)
    return found


def measure(run: Run, which: Selection, client: ClientReport | None, with_log: bool = False) -> Coverage:
    """The coverage of the selected ops. With ``with_log`` the temporary table client_ops must be there."""
    n, incomplete, touched = select_counted(run, which, tainted=False)
    if n == 0:
        raise OplineError(none_counts(f" in {run.given}", incomplete, touched, hint=""))
    mean, unknown, unattributed, complete = run.row(
        """SELECT avg(latency_ns) FILTER (NOT tainted), avg(unknown_ns) FILTER (NOT tainted),
                  avg(unattributed_ns) FILTER (NOT tainted), avg(latency_ns)
           FROM ops WHERE op_id IN (SELECT op_id FROM chosen WHERE complete)"""
    )
    kinds = _parts(run, keep=with_log)
    kinds.pop("unknown", None)
    order = (*KINDS, *sorted(set(kinds) - {*KINDS}))
    submit = reap = log_mean = None
    logged = None
    if with_log:
        logged, submit, reap, log_mean = run.row(
            """SELECT count(*), avg(submit_ns), avg(reap_ns), avg(client_ns)
               FROM client_ops SEMI JOIN counted USING (op_id)"""
        )
    found = Coverage(
        n, incomplete, touched, mean, mean - unknown - unattributed, unknown, unattributed,
        {kind: kinds[kind] / n for kind in order if kind in kinds}, client, submit, reap, logged, log_mean,
        [], complete,
    )  # fmt: skip
    return found._replace(wide=wide_stages(run, found.whole_ns))


PER_OP = (
    "op_id", "client_ns", "attributed_ns", "network_out_ns", "network_back_ns", "submit_ns", "reap_ns", "unknown_ns",
)  # fmt: skip


def per_op(run: Run) -> duckdb.DuckDBPyRelation:
    """A row per counted op with a line in the client's log, columns PER_OP: in integers, attributed (without network
    out and back) + network out + back + submit + reap + unknown is the client's own figure. Where fio did not log the
    issue times submit and reap are absent, and in unknown. Needs client_ops, and ``measure`` before.
    """
    return run.con.sql(
        """WITH p AS (SELECT op_id,
                             sum(ns) FILTER (part NOT IN ('unknown', 'network out', 'network back')) AS known,
                             sum(ns) FILTER (part = 'network out') AS away,
                             sum(ns) FILTER (part = 'network back') AS back,
                             sum(ns) FILTER (part = 'unknown') AS unknown
                      FROM parts GROUP BY op_id)
           SELECT c.op_id, c.client_ns, coalesce(p.known, 0)::BIGINT AS attributed_ns,
                  p.away::BIGINT AS network_out_ns, p.back::BIGINT AS network_back_ns, c.submit_ns, c.reap_ns,
                  (coalesce(p.unknown, 0) + o.unattributed_ns + CASE WHEN c.submit_ns IS NULL OR c.reap_ns IS NULL
                      THEN c.client_ns - o.latency_ns ELSE 0 END)::BIGINT AS unknown_ns
           FROM client_ops c SEMI JOIN counted USING (op_id) JOIN ops o USING (op_id) LEFT JOIN p USING (op_id)
           ORDER BY c.op_id"""
    )
