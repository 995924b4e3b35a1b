# SPDX-License-Identifier: MIT
"""The states of threads in each stage: on CPU, waiting for a CPU, blocked; and the waker.

Takes a run and a selection; gives rows. For each stage the thread at its end counts: between two threads the arriving
thread; at a completion the resuming thread. Only for stages covered by sched events completely; there the four parts
sum to the stage, to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from opline.errors import OplineError
from opline_analyses.base.result_table import Column, ResultTable, label, text, time
from opline_analyses.base.screen import WIDTH
from opline_analyses.base.text import count_of, percent, shortened, table_digits, us, wrapped
from opline_analyses.ops.stages import left_out, select_counted, stages_in_order
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

if TYPE_CHECKING:
    from opline_analyses.base.result_table import Part, Row

PARTS = ("on_cpu_ns", "runnable_ns", "blocked_io_ns", "blocked_ns")


class StateRow(NamedTuple):
    """One stage: sums over the ops with a covered stage. ``known_ns`` is the sum of the four parts."""

    stage: str
    count: int  # type: ignore[assignment]  # ops with the stage; not the tuple's method
    covered: int  # of these, ops with the whole stage covered
    known_ns: int
    on_cpu_ns: int
    runnable_ns: int
    blocked_io_ns: int
    blocked_ns: int
    woken_by: str | None  # the most frequent waker's name; kernel threads and idle CPUs without the CPU's number
    woken_by_share: float | None  # of the wake-ups in the stage


class StateTable(NamedTuple):
    """The stages in the order in which an op meets the stages, and all stages together."""

    ops: int
    incomplete: int
    tainted: int
    stages: list[StateRow]
    covered: StateRow  # the sum over stages; its count is the number of ops
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


def _cells(r: StateRow) -> list[object]:
    times = [getattr(r, name) / r.covered if r.covered else None for name in ("known_ns", *PARTS)]
    return [r.stage, str(r.count) if r.covered == r.count else f"{r.covered}/{r.count}", *times]


def _waker(r: StateRow, room: int) -> str:
    """The name that ended most sleeps, cut to the available room, and its share."""
    if r.woken_by is None or r.woken_by_share is None:
        return ""
    share = f" {r.woken_by_share:.0%}"
    return shortened(r.woken_by, room - len(share)) + share


def result(t: StateTable, tainted: bool = False) -> ResultTable:
    """For each stage the sums; the text has means over the covered ops."""
    notes = left_out(t.incomplete, t.tainted, tainted)
    notes += [] if t.sums else ["the states do not sum to the stages: the run is damaged."]
    texts = ("stage", "woken_by")
    columns = [text(name) if name in texts else Column(name) for name in StateRow._fields]
    head = {"schema": "opline states 1", "ops": t.ops, "latency_ns": t.latency_ns}
    return ResultTable(
        columns, [*t.stages, t.covered], totals=1, found=t, notes=notes, text=lambda found: _text(t, found.rows),
        document=lambda found: {**head, "stages": list(found.items())},
    )  # fmt: skip


def _text(t: StateTable, found: Sequence[Row]) -> Iterator[Part]:
    digits = table_digits(t.latency_ns / t.ops if t.ops else 0)
    means = [time("mean_ns", "mean", digits), time("on_cpu_ns", "on CPU", digits)]
    means += [time("runnable_ns", "runnable", digits), time("blocked_io_ns", "blk I/O", digits)]
    columns = [label("stage", "stage (us)"), Column("count", "count"), *means, time("blocked_ns", "blocked", digits)]
    of = [StateRow(*row) for row in found]
    rows = [_cells(r) for r in of[:-1]]
    rows.append(["covered", str(t.ops), *_cells(t.covered)[2:]])
    room = WIDTH - sum(width + 1 for width in ResultTable(columns, rows).widths())
    wakers = [*(_waker(r, room) for r in of[:-1]), ""]
    rows = [[*row, waker] for row, waker in zip(rows, wakers, strict=True)]
    yield ResultTable([*columns, text("woken_by", "woken by")], rows, totals=1, gap=" ")
    known, whole = us(t.covered.known_ns / t.ops, 3), us(t.latency_ns / t.ops, 3)
    share = percent(t.covered.known_ns, t.latency_ns)
    yield from wrapped(f"mean of {count_of(t.ops, 'op')}: covered {known} of latency {whole} us ({share} %)")
