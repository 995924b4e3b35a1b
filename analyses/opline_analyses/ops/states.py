# SPDX-License-Identifier: MIT
"""What threads did in each stage: on CPU, waiting for a CPU, blocked; and who woke them.

Takes a run and a selection; gives rows. Of each stage the thread at its end counts: of a stage between two threads the
one that arrives; at a completion the one that it lets go on. Only where the sched events cover all of it; there the
four parts sum to the stage, to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from opline.errors import OplineError
from opline_analyses.base.text import WIDTH, count_of, percent, shortened, table, table_digits, us, wrapped
from opline_analyses.ops.stages import select_counted, stages_in_order
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

PARTS = ("on_cpu_ns", "runnable_ns", "blocked_io_ns", "blocked_ns")


class StateRow(NamedTuple):
    """One stage: sums over the ops whose stage is covered. ``known_ns`` is the sum of the four parts."""

    stage: str
    count: int  # type: ignore[assignment]  # ops that have the stage; not the tuple's method
    covered: int  # of them, those in which all of it is covered
    known_ns: int
    on_cpu_ns: int
    runnable_ns: int
    blocked_io_ns: int
    blocked_ns: int
    woken_by: str | None  # the name that woke most often; of kernel threads and idle CPUs without the CPU's number
    woken_by_share: float | None  # of the wake-ups in the stage


class StateTable(NamedTuple):
    """The stages in the order in which an op meets them, and all of them together."""

    ops: int
    incomplete: int
    tainted: int
    stages: list[StateRow]
    covered: StateRow  # the sum over stages; its count is that of the ops
    latency_ns: int  # of all ops

    @property
    def sums(self) -> bool:
        """The four parts are the whole, in every row."""
        return all(sum(getattr(r, p) for p in PARTS) == r.known_ns for r in (*self.stages, self.covered))


_ROWS = f"""
    WITH s AS (SELECT stage, op_id, on_cpu_ns IS NOT NULL AS known, sum(duration_ns) AS duration_ns,
                      {", ".join(f"sum({p}) AS {p}" for p in PARTS)}
               FROM stages SEMI JOIN counted USING (op_id) GROUP BY ALL),
    per_op AS (SELECT stage, op_id, bool_and(known) AS known, sum(duration_ns) AS duration_ns,
                      {", ".join(f"sum({p}) AS {p}" for p in PARTS)}
               FROM s GROUP BY ALL)
    SELECT stage, count(*), count(*) FILTER (known), coalesce(sum(duration_ns) FILTER (known), 0)::BIGINT,
           {", ".join(f"coalesce(sum({p}) FILTER (known), 0)::BIGINT" for p in PARTS)}
    FROM per_op GROUP BY stage"""
_WAKERS = r"""
    WITH w AS (SELECT stage, regexp_replace(woken_by_comm, '^(swapper|kworker|ksoftirqd|migration)/.*', '\1') AS comm,
                      count(*) AS n
               FROM stages SEMI JOIN counted USING (op_id) WHERE woken_by_tid IS NOT NULL GROUP BY ALL)
    SELECT stage, arg_max(comm, (n, comm)) FILTER (comm IS NOT NULL), max(n) FILTER (comm IS NOT NULL) / sum(n) FROM w
    GROUP BY stage"""


def state_table(run: Run, which: Selection, tainted: bool = False) -> StateTable:
    """The states of the selected ops' stages. Raises OplineError where no op counts, or no stage is covered."""
    ops, incomplete, touched = select_counted(run, which, tainted)
    found = {row[0]: row[1:] for row in run.rows(_ROWS)}
    if not any(row[1] for row in found.values()):
        raise OplineError(
            f"No thread's states in {run.given}: they need sched_switch and sched_waking (or sched_wakeup), as "
            "`opline record` takes them as root, without --no-states."
        )
    wakers = {stage: (comm, share) for stage, comm, share in run.rows(_WAKERS)}
    rows = []
    for stage, _ in stages_in_order(run):
        if stage in found:
            count, covered, known, on_cpu, runnable, blocked_io, blocked = map(int, found[stage])
            waker, share = wakers.get(stage, (None, None))
            rows.append(StateRow(stage, count, covered, known, on_cpu, runnable, blocked_io, blocked, waker, share))
    known, on_cpu, runnable, blocked_io, blocked = (
        sum(getattr(r, name) for r in rows) for name in ("known_ns", *PARTS)
    )
    whole = StateRow("covered", ops, ops, known, on_cpu, runnable, blocked_io, blocked, None, None)
    (latency,) = run.row("SELECT coalesce(sum(latency_ns), 0)::BIGINT FROM ops SEMI JOIN counted USING (op_id)")
    return StateTable(ops, incomplete, touched, rows, whole, latency)


def _cells(r: StateRow, digits: int) -> list[str]:
    times = [us(getattr(r, name) / r.covered, digits) if r.covered else "" for name in ("known_ns", *PARTS)]
    return [r.stage, str(r.count) if r.covered == r.count else f"{r.covered}/{r.count}", *times]


def _waker(r: StateRow, room: int) -> str:
    """Whose name ended most sleeps, cut to the room that there is, and its share."""
    if r.woken_by is None or r.woken_by_share is None:
        return ""
    share = f" {r.woken_by_share:.0%}"
    return shortened(r.woken_by, room - len(share)) + share


def state_lines(t: StateTable) -> Iterator[str]:
    """The table for people: means over the ops that are covered."""
    digits = table_digits(t.latency_ns / t.ops if t.ops else 0)
    header = ["stage (us)", "count", "mean", "on CPU", "runnable", "blk I/O", "blocked"]
    rows = [_cells(r, digits) for r in t.stages]
    rows.append(["covered", str(t.ops), *_cells(t.covered, digits)[2:]])
    room = WIDTH - sum(max(map(len, column)) + 1 for column in zip(header, *rows, strict=True))
    wakers = [*(_waker(r, room) for r in t.stages), ""]
    rows = [[*row, waker] for row, waker in zip(rows, wakers, strict=True)]
    header.append("woken by")
    yield from table(header, rows, gap=" ", right=[h not in ("stage (us)", "woken by") for h in header], names=(0,))
    known, whole = us(t.covered.known_ns / t.ops, 3), us(t.latency_ns / t.ops, 3)
    share = percent(t.covered.known_ns, t.latency_ns)
    yield from wrapped(f"mean of {count_of(t.ops, 'op')}: covered {known} of latency {whole} us ({share} %)")
