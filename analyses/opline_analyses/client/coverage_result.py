# SPDX-License-Identifier: MIT
"""The accounted part of the client's reported time, as a result; with the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.base.files import complete_file
from opline_analyses.base.result_table import ResultTable
from opline_analyses.base.text import fitted
from opline_analyses.client import checks
from opline_analyses.client.block_steps import block_steps
from opline_analyses.client.client import read_report
from opline_analyses.client.client_files import find_log
from opline_analyses.client.client_log import join_client_log
from opline_analyses.client.client_report import ClientReport
from opline_analyses.client.clients_ops import clients_ops, other_ops
from opline_analyses.client.coverage import measure, per_op
from opline_analyses.client.coverage_text import PARTS, coverage_lines, hop_lines, part_rows, step_lines
from opline_analyses.client.coverage_text import document as coverage_document
from opline_analyses.client.defaults import report_of
from opline_analyses.client.fio_log import Joined
from opline_analyses.client.loop import closed_loop
from opline_analyses.client.schedule import corrected_latencies
from opline_analyses.client.schedule import document as schedule_document
from opline_analyses.client.span import Span, client_span
from opline_analyses.client.unsplit import unsplit, unsplit_lines
from opline_analyses.runs.selection import OpFilters, Selection, selection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opline_analyses.base.result_table import Part
    from opline_analyses.runs.run import Run

MOST_LINES = 0.98  # of a client's log: these lines identify the client's ops


def _client(run: Run, file: Path | None, filters: OpFilters) -> ClientReport | None:
    report: ClientReport | None = read_report(file) if file else None
    if report is None:
        report = report_of(run)
    if report and filters.op_class:
        of_these = report.of_classes(filters.op_class)
        if of_these is None:
            talk(
                f"{report.source} has no figure of {', '.join(filters.op_class)} alone: shares are of the trace's mean."
            )
        report = of_these
    return report


def _counted(
    run: Run, filters: OpFilters, client: ClientReport | None, joined: Joined | None
) -> tuple[Selection, list[str]]:
    """The ops behind the client's figures, and the classes chosen for this."""
    which = selection(run, filters)
    whole = None if filters.op_class or filters.since or filters.until else client
    classes: list[str] = []
    span: Span | None = None
    if whole and joined and joined.ops == joined.lines == whole.count:
        # Every line of a complete log has an op: the other ops are not the client's, whatever their class.
        which = which.also("o.op_id IN (SELECT op_id FROM client_ops)")
    elif joined and whole and joined.lines == whole.count and joined.ops >= MOST_LINES * joined.lines:
        # Nearly every line has an op; the few lines without belong to ops without an end, on the same threads.
        which = which.also(
            "(o.op_id IN (SELECT op_id FROM client_ops) OR NOT o.complete AND (o.class, o.begin_tid) IN"
            " (SELECT (c.class, c.begin_tid) FROM ops c SEMI JOIN client_ops USING (op_id)))"
        )
    elif whole:
        found = clients_ops(run, which, whole)
        if found is None:
            talk(other_ops(whole))
        else:
            which, classes, span = found.which, found.classes, found.span
        if classes:
            talk(f"the client's figures are about {', '.join(classes)}: other ops are left out (--class C).")
    if client and span is None and not (filters.since or filters.until):
        span = client_span(run, which, client)
        which = which if span is None else span.of(which)
    if client and span:
        ramp = f" (it counts after a ramp of {client.ramp_seconds:g} s)" if client.ramp_seconds else ""
        talk(f"ops that begin outside of what the client's figures are about{ramp}: {span.outside}, left out.")
    return which, classes


def result(
    run: Run,
    filters: OpFilters,
    *,
    client_file: Path | None = None,
    log_file: Path | None = None,
    per_op_file: Path | None = None,
    every_ns: int | None = None,
) -> ResultTable:
    """A row per part of the mean. ``client_file``, ``log_file``: the client's report and log, else those of the
    recording; ``per_op_file``: where each op's parts go, as CSV; ``every_ns``: the client's schedule. What was found
    is a `Coverage`. Raises OplineError.
    """
    client = _client(run, client_file, filters)
    log = log_file or next(filter(None, map(find_log, run.places())), None)
    if per_op_file and not log:
        raise UsageError("--per-op needs the client's own log: none found, --client-log FILE names one.")
    joined = join_client_log(run, log) if log else None
    which, classes = _counted(run, filters, client, joined)
    found = measure(run, which, client, with_log=log is not None)
    loop, schedule = closed_loop(run), corrected_latencies(run, every_ns, client)
    results = []
    # The client's rate is of the whole run: a part of the run has no figure to compare with.
    whole_run = None if filters.since or filters.until else client
    if whole_run:
        window_ns, completions = run.row(
            f"""SELECT max(o.end_ns) - min(o.begin_ns), count(*) FILTER (o.complete)
                FROM ops o WHERE {which.where}""",
            which.parameters,
        )
        results.append(checks.iops(completions, whole_run, window_ns))
    if client:
        results.append(checks.bytes_moved(run, client))
    if log:
        results.append(checks.client_log(run))
        results.append(checks.sums(run))
    results.append(checks.littles_law(run, which, whole_run))
    results.append(checks.chain(run))
    results.append(checks.widest_unsplit(run))
    results.append(checks.unknown_share(found.unknown_ns, found.mean_ns))
    gaps = unsplit(run)
    hops, steps = checks.hop_agreement(run), block_steps(run)
    if per_op_file:
        from opline_analyses.runs.query_csv import write_csv

        with complete_file(per_op_file) as file:
            rows = per_op(run)
            write_csv(rows.columns, rows, file)

    def lines(parts: ResultTable) -> Iterator[Part]:
        yield from coverage_lines(found, parts, joined, loop, schedule)
        yield from unsplit_lines(gaps, run)
        yield from ("", "checks")
        verdicts = {True: "pass", False: "FAIL", None: "n/a"}
        yield from (f"  {'note' if c.is_note else verdicts[c.passed]:4}  {c.name}: {c.text}" for c in results)
        yield from ("", *hop_lines(hops, steps), "", *step_lines(steps))

    def document(_parts: ResultTable) -> dict[str, Any]:
        split = gaps._asdict() | {"intervals": [i._asdict() for i in gaps.intervals]}
        more = {"to_split": split, "closed_loop": loop, "schedule": schedule_document(schedule)}
        return coverage_document(found, joined, classes, results, hops, steps) | more

    notes = [f"warning: {c.name}: {c.text}" for c in results if c.passed is False]
    if client and whole_run is None:
        notes.insert(0, "the client's mean is of the whole run, the trace's of the part from --since to --until.")
    return ResultTable(
        PARTS, part_rows(found), text=lambda t: fitted(lines(t)), document=document, found=found, notes=notes
    )
