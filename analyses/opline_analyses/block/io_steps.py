# SPDX-License-Identifier: MIT
"""One block request in full: its steps with the time between them, and what else is known of it.

Takes rows of `io_log`; times are ns of the run's clock, absent where a step was not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.steps import STEPS
from opline_analyses.base.result_table import Column, ResultTable, lapse, text
from opline_analyses.base.text import count_of, device_name, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.base.result_table import Part
    from opline_analyses.runs.run import Run

_WORDS = {"Q": "queued", "I": "given to the scheduler"}  # of an I/O, where a request has others
_ABOUT = (
    *(step.column for step in STEPS), "first_issue_ns", "queue_cpu", "issue_cpu",
    "complete_cpu", "issue_comm", "issue_tid", "in_flight", "merge_count", "requeue_count", "error", "bio_count",
)  # fmt: skip


def with_steps(run: Run, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same I/Os, each with the columns of its request."""
    if not found:
        return found
    ids = [io["id"] for io in found]
    sql = f"SELECT request_id, {', '.join(_ABOUT)} FROM requests WHERE request_id IN ({', '.join('?' * len(ids))})"
    about = {row[0]: dict(zip(_ABOUT, row[1:], strict=True)) for row in run.rows(sql, ids)}
    return [io | about.get(io["id"], {}) for io in found]


def who(io: dict[str, Any]) -> str:
    """The queueing thread."""
    return f"{io['comm'] or '?'}:{'?' if io['tid'] is None else io['tid']}"


def _steps(io: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """The known steps: step, time, and thread or CPU."""
    issuer = f"{io.get('issue_comm') or '?'}:{'?' if io.get('issue_tid') is None else io['issue_tid']}"
    by_letter = {"Q": (who(io), "queue_cpu"), "D": (issuer, "issue_cpu"), STEPS[-1].letter: ("", "complete_cpu")}
    steps = []
    for step in STEPS:
        by, cpu = by_letter.get(step.letter, ("", None))
        column = "first_issue_ns" if step.letter == "D" else step.column
        steps.append((f"{step.letter} {_WORDS.get(step.letter, step.meaning)}", column, by, cpu))
        if step.letter == "D":
            steps.append(("D issued again", "issue_ns", "", None))
    for what, column, by, cpu in steps:
        at = io.get(column)
        if at is None or (column == "issue_ns" and at == io.get("first_issue_ns")):
            continue
        where = "" if cpu is None or io.get(cpu) is None else f"CPU {io[cpu]}"
        yield what, at, " ".join(filter(None, (by, where)))


_STEPS = (text("step", "step"), Column("after_ns", "after", lapse), text("by", "by"))


def lines(io: dict[str, Any], names: dict[int, str]) -> Iterator[Part]:
    """For people."""
    device = "?" if io["dev"] is None else device_name(names, io["dev"])
    where = "" if io["sector"] is None else f", sector {io['sector']}"
    yield f"{who(io)}  {io['rwbs']}  {device}{where}, {io['bytes']} bytes: {duration(io['latency_ns'])}"
    rows: list[list[object]] = []
    before = None
    for what, at, by in _steps(io):
        rows.append([what, None if before is None else at - before, by])
        before = at
    yield ResultTable(_STEPS, rows)
    others = io.get("in_flight")
    about = [] if others is None else [f"{count_of(others, 'other')} at the device when it was issued"]
    about += [f"{count_of(io[name], one)}" for name, one in (("merge_count", "merge"), ("requeue_count", "requeue"))
              if io.get(name)]  # fmt: skip
    about += [f"error {io['error']}"] if io.get("error") else []
    yield "; ".join(about)
