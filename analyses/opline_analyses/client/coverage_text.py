# SPDX-License-Identifier: MIT
"""The coverage of a client's figures for people and as a document. Takes what `coverage_result` found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline_analyses.base.result_table import Column, ResultTable, label, share, text, time
from opline_analyses.base.text import count_of, duration, percent
from opline_analyses.client import checks
from opline_analyses.client.block_steps import REQUIRED
from opline_analyses.client.coverage import UNSPLIT, Coverage
from opline_analyses.client.schedule import loop_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.base.result_table import Part
    from opline_analyses.client.fio_log import Joined
    from opline_analyses.client.schedule import Corrected

PIECE = 0.005  # of the mean: smaller pieces are not shown
PARTS = (
    label("part", "part of the mean"), Column("level"), time("mean_ns", "us"), share("share", digits=2),
)  # fmt: skip


def coverage_lines(
    c: Coverage, parts: ResultTable, joined: Joined | None, loop: int | None, schedule: Corrected | None
) -> Iterator[Part]:
    if c.client:
        count = f", {c.client.count} ops" if c.client.count is not None else ""
        rate = f" in {c.client.seconds:.6g} s, {c.client.iops:.1f} IOPS" if c.client.seconds and c.client.iops else ""
        yield f"client  mean {duration(c.client.mean_ns)}{count}{rate}  ({c.client.tool}, {c.client.source})"
    else:
        yield "client  no report found: --client FILE names one; shares are of the trace's mean"
    yield f"trace   mean {duration(c.mean_ns)}, {c.ops} complete ops, {c.incomplete} incomplete, {c.tainted} tainted"
    yield from loop_lines(loop, schedule)
    yield ""
    whole = c.whole_ns
    rows = [["  " * row[1] + row[0], *row[1:]] for row in parts.rows]
    total = c.client_ns or c.mean_ns
    rows.append(["= client's mean" if c.client_ns else "= trace's mean", 0, total, total / whole if whole else None])
    yield parts.with_rows(rows, 1)
    if joined is not None:
        exactly = (
            "" if not joined.uncertainty_ns else f"; before and after the op it is exact to {joined.uncertainty_ns} ns"
        )
        if joined.uncertainty_ns is None:
            exactly = "; it has no issue times (log_issue_time=1), so what is before and after an op is not split"
        yield f"the client's log has a line for {c.logged_ops} of {c.ops} ops ({joined.lines} lines){exactly}"
        for reason, lines in joined.left_out.items():
            yield f"  {count_of(lines, 'line')} {reason}"
    if c.tainted_ns:
        yield "tainted ops are in the client's mean and not in the stages: shares are of the mean without what they add"
    yield ""
    accounted = c.attributed_ns / whole
    yield f"explained {100 * c.explained:z.1f} %, accounted for {100 * accounted:z.1f} %"
    for w in c.wide:
        unsplit = "unsplit" if w.unexplained_ns(UNSPLIT * whole) else "wait" if w.kind == "wait" else "split"
        yield f"  {unsplit}: {w.text()} {100 * w.mean_ns / whole:.1f} %"
        if len(w.behind) > 1:
            shown = [f"{p.what} {100 * p.mean_ns / whole:.1f} %" for p in w.behind if p.mean_ns > PIECE * whole]
            yield f"    {', '.join(shown)}"
    yield ""


def hop_lines(hops: list[dict[str, Any]], steps: dict[str, Any]) -> Iterator[Part]:
    if not hops:
        seen = f"{steps['bios']} bios and {steps['requests']} requests"
        none = not (steps["bios"] or steps["requests"])
        yield "hops: no bio and no request in the trace" if none else f"hops: {seen}, none of which two rules name"
        return
    kinds = [k for k in checks.AGREEMENT if any(h.get(k) for h in hops)]
    rows = []
    for h in hops:
        agree = h.get("agree", 0)
        both = agree + h.get("differ", 0)
        rows.append([h["hop"].replace("_", " "), *(h.get(k) for k in kinds), agree / both if both else None])
    columns = [text("hop", "hop, by two rules"), *(Column(k, k.replace("_", " ")) for k in kinds)]
    yield ResultTable([*columns, share("agree", "agree%", 2)], rows)


def step_lines(s: dict[str, Any]) -> Iterator[str]:
    if not s["with_q"] and set(s["no_request"]) == {"no_block_events"}:
        yield "block steps: the trace has no block events"
        return
    yield (
        f"block steps: of {s['ops']} complete ops {s['with_q']} ({percent(s['with_q'], s['ops'], 2)} %) have Q,"
        f" {s['with_q_to_c']} ({percent(s['with_q_to_c'], s['ops'], 2)} %) have {' '.join(REQUIRED)} of every request"
    )
    missing = [f"{n} without {step}" for step, n in s["missing"].items() if n]
    missing += [f"{n} {reason}" for reason, n in s["no_request"].items()]
    if missing:
        yield f"  missing: {', '.join(missing)}"


def part_rows(c: Coverage) -> Iterator[tuple[object, ...]]:
    """The parts of level 0 sum to the whole, parts of level 1 to the part above."""
    for part in c.parts():
        yield part.name, part.level, part.mean_ns, part.mean_ns / c.whole_ns if c.whole_ns else None


def document(
    c: Coverage,
    joined: Joined | None,
    classes: list[str],
    results: list[checks.Check],
    hops: list[dict[str, Any]],
    steps: dict[str, Any],
) -> dict[str, Any]:
    client = None
    if c.client:
        client = {
            "tool": c.client.tool, "source": c.client.source, "mean_ns": c.client.mean_ns, "count": c.client.count,
            "seconds": c.client.seconds, "iops": c.client.iops, "queue_depth": c.client.queue_depth,
            "bytes": c.client.bytes, "numbers": c.client.numbers,
        }  # fmt: skip
    return {
        "schema": "opline coverage 1",
        "client": client,
        "ops": c.ops,
        "incomplete": c.incomplete,
        "tainted": c.tainted,
        "tainted_ns": c.tainted_ns,
        "mean_ns": c.mean_ns,
        "coverage": c.coverage,
        "explained": c.explained,
        "wide": [
            {
                "stage": w.stage,
                "from": w.from_point,
                "to": w.to_point,
                "kind": w.kind,
                "mean_ns": w.mean_ns,
                "behind": [{"what": p.what, "mean_ns": p.mean_ns} for p in w.behind],
            }
            for w in c.wide
        ],
        "classes": classes or None,
        "client_log": None
        if joined is None
        else {
            "lines": joined.lines,
            "ops": c.logged_ops,
            "mean_ns": c.log_client_ns,
            "uncertainty_ns": joined.uncertainty_ns,
            "left_out": dict(joined.left_out),
        },
        "parts": [{"part": p.name, "mean_ns": p.mean_ns, "level": p.level} for p in c.parts()],
        "checks": [{"check": r.name, "passed": r.passed, **r.numbers} for r in results],
        "hops": hops,
        "block_steps": steps,
    }
