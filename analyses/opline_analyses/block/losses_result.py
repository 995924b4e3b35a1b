# SPDX-License-Identifier: MIT
"""The ledger of a run as a result: a row per loss; for people also fates, completions and discarded intervals."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from typing import TYPE_CHECKING

from opline.values import Value
from opline_analyses.base.result_table import Column, ResultTable, label, of_items, text
from opline_analyses.base.text import count_of, wrapped
from opline_analyses.block import io_filter
from opline_analyses.runs import ledger
from opline_analyses.runs.completions import completions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.base.result_table import Part
    from opline_analyses.runs.run import Run

_SHOWN = 40  # intervals
FATES = (label("event", "event"), text("fate", "fate"), Column("count", "count"), Column("input", "input"))
DISCARDED = (
    text("stream", "stream"), Column("", "from"), Column("", "to"), Column("count", "count"), Column("", "unit"),
    Column("ops", "ops touched"),
)  # fmt: skip
COMPLETIONS = (
    text("device", "device"), Column("recorded", "recorded"), Column("unseen", "unseen"),
    Column("share", "unseen share", lambda part: f"{100 * part:.3g} %" if part else "0", "f64"),
    Column("kernel", "kernel"), Column("others", "others"),
)  # fmt: skip
LOSSES = (text("loss"), Column("count"), text("severity"), text("origin"), text("advice"))


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, 76, initial_indent="    ", subsequent_indent="    ")


class Chosen(Value):
    """The filters' result: number of measurable rows, and of the others by reason."""

    what: str  # name of one
    counted: int
    left_out: dict[str, int]
    window: io_filter.Window


def chosen_of(run: Run, filters: io_filter.IoFilters) -> Chosen | None:
    """None where no option chooses."""
    rows = io_filter.rows_of(run, filters)
    if io_filter.chosen_ids(rows) is None:
        return None
    found = Chosen(rows.source.one, io_filter.count_of_rows(run, rows), io_filter.left_out(run, rows), rows.window)
    if not found.counted and not found.left_out:
        io_filter.tell_nothing(run, rows)
    return found


def discarded_in(run: Run, chosen: Chosen | None) -> list[ledger.Discarded]:
    """Discarded or missing events in the window; without a window, all."""
    window = chosen.window if chosen is not None else io_filter.Window()
    since, until = window.since_ns, window.until_ns
    return [
        row
        for row in ledger.discarded(run)
        if (since is None or row[2] is None or row[2] >= since) and (until is None or row[1] is None or row[1] < until)
    ]


def _chosen_lines(chosen: Chosen) -> Iterator[str]:
    """How many of the I/Os that are meant can be measured, and why the others can't."""
    whole = chosen.counted + sum(chosen.left_out.values())
    yield f"selected: {count_of(whole, chosen.what)}; opline can measure {chosen.counted}"
    for reason, number in chosen.left_out.items():
        yield f"  {number} {reason}"
    yield ""


def text_lines(run: Run, chosen: Chosen | None = None) -> Iterator[Part]:
    """The ledger for people: fates, losses with advice, discarded intervals."""
    if chosen is not None:
        yield from _chosen_lines(chosen)
    per_class: defaultdict[str, list[ledger.Fate]] = defaultdict(list)
    fates = ledger.fates(run)
    for f in fates:
        per_class[f.event].append(f)
    total = sum(f.count for f in fates)
    yield f"fates of {count_of(total, 'event')} of {count_of(len(per_class), 'class', 'classes')}"
    rows = []
    for event, of_class in per_class.items():
        whole = sum(f.count for f in of_class)
        for n, f in enumerate(sorted(of_class, key=lambda f: -f.count)):
            rows.append([event if n == 0 else None, f.fate, f.count, whole if n == 0 else None])
    yield ResultTable(FATES, rows)
    yield f"orphans: {sum(f.count for f in fates if f.fate.startswith('orphan:'))}"
    yield ""
    entries = ledger.entries(run)
    yield "losses" if entries else "losses: none"
    for e in entries:
        yield f"  {e.loss}  {e.count}  {e.severity}, {e.origin}"
        yield from _wrapped(e.advice)
    yield from _completion_lines(run)
    discarded = discarded_in(run, chosen)
    if discarded:
        first = run.start_ns()
        yield ""
        heading = (
            "discarded by the tracer, or missing according to the recorder or other events (seconds from the run's "
            "first event)"
        )
        yield from wrapped(heading)
        rows = [
            [s, _seconds(b, first), _seconds(e, first), "?" if n is None else n, "packets" if p else "events", k]
            for s, b, e, n, p, k in discarded[:_SHOWN]
        ]
        yield ResultTable(DISCARDED, rows)
        if len(discarded) > _SHOWN:
            yield f"{len(discarded) - _SHOWN} more: --json, or the table `discarded` (`opline sql`)"
    tainted = sum(e.count for e in entries if e.loss == "tainted_ops")
    if tainted:
        yield f"tainted: {count_of(tainted, 'op')} whose begin or end can be lost; statistics leave them out"
    unsplit = sum(e.count for e in entries if e.loss == "unsplit_ops")
    if unsplit:
        yield f"unsplit: {count_of(unsplit, 'op')} with an exact latency, which counts, and lost events inside"


def _completion_lines(run: Run) -> Iterator[Part]:
    """Completions of each device beside the kernel's own counters, where the recorder read them."""
    rows = completions(run)
    if not rows:
        return
    yield ""
    yield "completions while the command ran, beside the counts of /sys/block/DEVICE/stat"
    shares = [r.unseen / (r.recorded + r.unseen) if r.unseen else 0.0 for r in rows]
    yield ResultTable(
        COMPLETIONS,
        [(r.device, r.recorded, r.unseen, part, r.kernel, r.others) for r, part in zip(rows, shares, strict=True)],
    )
    yield from wrapped("others: the recorder's own I/O, and I/O during the two readings of the kernel's counters")
    if any(row.kernel is None for row in rows):
        yield from wrapped("no kernel count: a device that has begun to count anew, or counts only a part of its I/O")


def _seconds(ns: int | None, first: int) -> str:
    return "?" if ns is None else f"{(ns - first) / 1e9:.6f}"


def _document(run: Run, chosen: Chosen | None = None) -> dict[str, object]:
    """The same as one document."""
    names = ("stream", "begin_ns", "end_ns", "count", "packets", "ops")
    document: dict[str, object] = {
        "schema": "opline losses 1",
        "fates": [vars(f) for f in ledger.fates(run)],
        "losses": [vars(e) for e in ledger.entries(run)],
        "discarded": [dict(zip(names, row, strict=True)) for row in discarded_in(run, chosen)],
    }
    if rows := completions(run):
        document["completions"] = [{**vars(row), "others": row.others} for row in rows]
    if chosen is not None:
        document["chosen"] = {"of": chosen.what, "counted": chosen.counted, "left_out": chosen.left_out}
    return document


def result(run: Run, chosen: Chosen | None = None) -> ResultTable:
    """A row per loss. ``chosen``: the I/Os that are meant."""
    return of_items(
        LOSSES, [vars(entry) for entry in ledger.entries(run)], text=lambda _: text_lines(run, chosen),
        document=lambda _: _document(run, chosen), found=chosen,
    )  # fmt: skip
