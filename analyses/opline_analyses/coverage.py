# SPDX-License-Identifier: MIT
"""Closing the loop: how much of the time that the client itself reports is attributed to stages, and what is left.

Takes a run, a client's report and, where there is one, its log of single ops; gives a `Coverage`. *Attributed* is
latency without stages of kind unknown and without what no stage claims; so a run with a begin and an end and nothing
between has next to none, not all. Means are over complete ops that no discarded event touches.
"""

from __future__ import annotations

from dataclasses import dataclass

from opline.errors import OplineError
from opline_analyses.client import ClientReport
from opline_analyses.run import Run
from opline_analyses.selection import Selection
from opline_analyses.stages import select_counted

KINDS = ("work", "wait", "network", "device", "block")


def ratio(attributed_ns: float, client_ns: float) -> float:
    """Coverage: attributed time of the client's time (1.0: all of it)."""
    return attributed_ns / client_ns


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the client's mean latency, ns per op."""

    name: str
    mean_ns: float
    level: int  # 0: parts that sum to the client's mean; 1: what the part above consists of


@dataclass(frozen=True, slots=True)
class Coverage:
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
    submit_ns: float | None  # client's begin to begin point, of the ops that its log names
    reap_ns: float | None
    logged_ops: int | None
    log_client_ns: float | None  # mean of the logged ops' own latencies

    @property
    def client_ns(self) -> float | None:
        """The client's own mean."""
        return self.client.mean_ns if self.client else None

    @property
    def coverage(self) -> float | None:
        """Attributed part of the client's mean; None without a client's report."""
        return ratio(self.attributed_ns, self.client.mean_ns) if self.client else None

    def parts(self) -> list[Part]:
        """The parts at level 0 sum to the client's mean (to the trace's without a report)."""
        found = [Part("attributed", self.attributed_ns, 0)]
        found += [
            Part(kind, self.by_kind[kind], 1)
            for kind in (*KINDS, *sorted(set(self.by_kind) - {*KINDS}))
            if kind in self.by_kind
        ]
        found.append(Part("unknown (between threads, no evidence)", self.unknown_ns, 0))
        found.append(Part("unattributed", self.unattributed_ns, 0))
        if self.client:
            outside = self.client.mean_ns - self.mean_ns
            found.append(Part("client minus op span", outside, 0))
            if self.submit_ns is not None and self.reap_ns is not None:
                found.append(Part("submit: before the begin point", self.submit_ns, 1))
                found.append(Part("reap: after the end point", self.reap_ns, 1))
        return found


def measure(run: Run, which: Selection, client: ClientReport | None, with_log: bool = False) -> Coverage:
    """The coverage of the selected ops. With ``with_log`` the temporary table client_ops must be there."""
    n, incomplete, touched = select_counted(run, which, tainted=False)
    if n == 0:
        raise OplineError(f"No op to count in {run.given}: {incomplete} incomplete, {touched} tainted.")
    mean, unknown, unattributed = run.row(
        """SELECT avg(latency_ns), avg(unknown_ns), avg(unattributed_ns) FROM ops
           WHERE op_id IN (SELECT op_id FROM counted)"""
    )
    kinds = dict(
        run.rows(
            """SELECT kind, sum(duration_ns)::DOUBLE FROM stages
               WHERE kind <> 'unknown' AND op_id IN (SELECT op_id FROM counted) GROUP BY kind"""
        )
    )
    submit = reap = logged = log_mean = None
    if with_log:
        logged, submit, reap, log_mean = run.row(
            """SELECT count(*), avg(submit_ns), avg(reap_ns), avg(client_ns)
               FROM client_ops SEMI JOIN counted USING (op_id)"""
        )
    return Coverage(
        n, incomplete, touched, mean, mean - unknown - unattributed, unknown, unattributed,
        {kind: total / n for kind, total in kinds.items()}, client, submit, reap, logged, log_mean,
    )  # fmt: skip
