# SPDX-License-Identifier: MIT
"""Who an op's block requests waited for: the requests ahead of them in the queue and at the device, by owner.

For one request, each nanosecond from Q to D (the wait) and from D to C (the service) is shared out:

* wait: equally among the requests of the same device that were between D and C at that moment; none: ``no request``
  (the scheduler, the submitter, or a queue that was plugged);
* service: equally among the requests that had been issued to the device before this one and were not completed; none:
  ``itself``.

Integers: what a division leaves over goes to the request that was issued first, so that the blame sums to Q2C exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from opline_analyses.runs.run import Run

NOBODY, ITSELF = "no request", "itself"


class Ahead(NamedTuple):
    """A request that was at the device at the same time."""

    request_id: int
    issue_ns: int
    complete_ns: int
    owner: str


@dataclass(slots=True)
class Blame:
    """One request of the op, and whom its time is charged to, ns by owner."""

    request_id: int
    dev: int
    rwbs: str
    queue_ns: int
    issue_ns: int
    complete_ns: int
    wait: Counter[str] = field(default_factory=Counter)
    service: Counter[str] = field(default_factory=Counter)
    ahead: int = 0  # different requests that were charged

    def record(self) -> dict[str, object]:
        """As plain JSON types."""
        plain = {
            f: getattr(self, f) for f in ("request_id", "dev", "rwbs", "queue_ns", "issue_ns", "complete_ns", "ahead")
        }
        return {**plain, "wait": dict(self.wait), "service": dict(self.service), "sums": self.sums}

    @property
    def sums(self) -> bool:
        """The blame is the measured time, exactly."""
        waited, served = sum(self.wait.values()), sum(self.service.values())
        return waited == self.issue_ns - self.queue_ns and served == self.complete_ns - self.issue_ns


def share_out(begin_ns: int, end_ns: int, others: list[Ahead], otherwise: str) -> Counter[str]:
    """Share [begin_ns, end_ns) among those of ``others`` that are between D and C at each moment."""
    blame: Counter[str] = Counter()
    cuts = sorted(
        {begin_ns, end_ns, *(t for o in others for t in (o.issue_ns, o.complete_ns) if begin_ns < t < end_ns)}
    )
    for start, stop in pairwise(cuts):
        there = [o for o in others if o.issue_ns <= start and o.complete_ns >= stop]
        if not there:
            blame[otherwise] += stop - start
            continue
        each, rest = divmod(stop - start, len(there))
        for o in there:
            blame[o.owner] += each
        blame[min(there, key=lambda o: (o.issue_ns, o.request_id)).owner] += rest
    return +blame


def interference(run: Run, op_id: int, chosen: tuple[str, Sequence[object]] | None = None) -> list[Blame]:
    """The blame for each completed request that serves the op, in order of Q. ``chosen``: SQL of the requests that are
    meant, and its parameters; who they waited for is whoever was there.
    """
    which, parameters = ("", ()) if chosen is None else (f"AND r.request_id IN ({chosen[0]})", chosen[1])
    found = run.rows(
        f"""SELECT DISTINCT r.request_id, r.dev, r.rwbs, r.queue_ns, r.first_issue_ns, r.complete_ns
           FROM links l JOIN all_requests r USING (request_id)
           WHERE l.op_id = ? AND r.queue_ns IS NOT NULL AND r.first_issue_ns IS NOT NULL AND r.complete_ns IS NOT NULL
             {which}
           ORDER BY r.queue_ns, r.request_id""",
        [op_id, *parameters],
    )
    return [_blame(run, op_id, *row) for row in found]


def _blame(run: Run, op_id: int, request: int, dev: int, rwbs: str, queue: int, issue: int, complete: int) -> Blame:
    rows = run.rows(
        """SELECT r.request_id, r.first_issue_ns, r.complete_ns, r.op_id, o.class, r.queue_comm, r.op_count
           FROM all_requests r LEFT JOIN all_ops o USING (op_id)
           WHERE r.dev = ? AND r.request_id != ? AND r.first_issue_ns < ? AND r.complete_ns > ?""",
        [dev, request, complete, queue],
    )
    others = [Ahead(r, d, c, _owner(op_id, op, op_class, comm, ops)) for r, d, c, op, op_class, comm, ops in rows]
    blame = Blame(request, dev, rwbs, queue, issue, complete)
    blame.wait = share_out(queue, issue, others, NOBODY)
    before = [o for o in others if (o.issue_ns, o.request_id) < (issue, request)]
    blame.service = share_out(issue, complete, before, ITSELF)
    in_wait = {o.request_id for o in others if o.issue_ns < issue and o.complete_ns > queue}
    blame.ahead = len(in_wait | {o.request_id for o in before if o.complete_ns > issue})
    return blame


def _owner(op_id: int, other: int | None, op_class: str | None, comm: str | None, ops: int) -> str:
    if other == op_id:
        return "this op"
    if other is not None:
        return f"{op_class or 'op'} ops"
    return f"{ops} ops' shared work" if ops else f"background: {comm or '?'}"
