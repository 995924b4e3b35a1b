# SPDX-License-Identifier: MIT
"""A trace's facts against an op model: missing events and fields, ops without block requests."""

from __future__ import annotations

from pathlib import Path

from opline.errors import OplineError
from opline.model import Model, Problem, asked_fields, check_trace
from opline_analyses.infer.fields import fields_of
from opline_analyses.runs.run import Run, open_run


def problems_with(model: Model, name_or_path: str, trace: str | Path) -> list[Problem]:
    """Problems of a model without an error by ``check_text``, by a trace, a recording or a run. Raises OplineError."""
    with open_run(trace, model=name_or_path, all_programs=True) as opened:
        events = {str(event): int(n) for event, n in opened.rows("SELECT event, sum(count) FROM fates GROUP BY event")}
        problems = check_trace(model, opened.manifest["core"], events, _fields(model, opened, events))
        return problems + _without_links(model, opened)


def _fields(model: Model, run: Run, events: dict[str, int]) -> dict[str, frozenset[str]]:
    """The fields of the trace's events; none if the run's trace is gone."""
    try:
        return fields_of(Path(run.manifest["trace"]), asked_fields(model, events))
    except OplineError:
        return {}


def _without_links(model: Model, run: Run) -> list[Problem]:
    """Why no op has a block request, where the trace has both."""
    ops, bios, linked = run.row(
        "SELECT (SELECT count(*) FROM ops), (SELECT count(*) FROM bios), (SELECT count(*) FROM links)"
    )
    if not ops or not bios or linked:
        return []
    queued = run.rows("SELECT coalesce(comm, '?') AS c, count(*) AS n FROM bios GROUP BY c ORDER BY n DESC, c LIMIT 3")
    who = ", ".join(f"{comm} ({n})" for comm, n in queued)
    passed = "SELECT tid FROM transitions WHERE tid IS NOT NULL"
    (known,) = run.row(f"SELECT count(*) FROM bios WHERE tid IN ({passed})")
    entering = [rule for rule in model.rules if rule.thread in ("enter", "switch")]
    if not entering:
        why = 'no thread ever works for an op: give the point where one begins to, thread = "enter"'
    elif not known:
        why = (
            "none of these threads passes a point: name the events of the threads that do the I/O, or its bytes (`io`)"
        )
    else:
        why = "they do so while they work for no op: a point where one begins to is missing, or one leaves too early"
    line = min((rule.line for rule in model.rules if rule.role in ("begin", "soft_begin")), default=0)
    what = f"no op has a block request, though {bios} bios were queued, by {who}: {why}"
    return [Problem(line, "warning", what)]
