# SPDX-License-Identifier: MIT
"""`opline coverage RUN`: how much of the time that the client reports is accounted for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.base.files import complete_file, output_path
from opline_analyses.base.text import count_of, csv_text, duration, encoded, fitted, percent, table, us
from opline_analyses.client import checks
from opline_analyses.client.client import ClientReport, read_report
from opline_analyses.client.client_files import find_log, find_report
from opline_analyses.client.client_log import join_client_log
from opline_analyses.client.coverage import UNSPLIT, Coverage, measure, per_op
from opline_analyses.client.fio_log import Joined
from opline_analyses.client.span import client_span
from opline_analyses.commands.common import add_every, add_form, add_run, csv_output, opened, output
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection, add_filters, clients_classes, selection

if TYPE_CHECKING:
    from opline_analyses.client.schedule import Corrected

NAME = "coverage"
PIECE = 0.005  # of the mean: smaller ones are not shown
MOST_LINES = 0.98  # of a client's log: its ops are known by them
HELP = "how much of the time that the client reports is accounted for"
EXAMPLES = """\
Accounted for is time that stages claim, of the mean latency that the client
itself reports (without a report: of the trace's). Time between threads without
evidence on both sides (unknown) and time that no stage claims is not. Explained
is what of it is split finely enough: without stages that have more than 10 % of
the mean in one piece, but with the device and waits that the model declares.
Tainted ops are in the client's mean, and their stages are not counted: what
they add to it is a part of its own, and shares are of the mean without it.
Stages with more than 10 % are listed, in parts by what the thread at their end
did meanwhile: `behind STAGE` of another op, between others, or not yet seen;
of the last it is told how long it waited for a CPU, where its states are known.
The client's report is --client FILE, or found in the recording: a JSON file, or
the command's output. Known: rados bench and fio (text, JSON), demo-bench.

--client-log splits what lies outside the op's points, op by op: fio's
PREFIX_lat.1.log (write_lat_log=PREFIX log_offset=1, from fio 3.38 on
log_issue_time=1 as well; its other logs are found beside; an op without an
offset has that of its sector in a recorded file, or on a device without files;
lines that are then without an op are told), or a CSV with the
client's own begin_ns and end_ns per op (and class, object; begun_ns and
ended_ns, its clock right after its first and last tracepoint, tell of which op
it was interrupted there). --per-op writes the parts of each op as CSV.

Ops long before or after what the client has measured are left out (rados
bench's last write of its own metadata): those outside of the time that it says
it ran, of so many as it says it did, or beyond a pause; before its last ops,
where fio's JSON has a ramp_time. Without --class, ops
that are not the client's are left out: those without a line in its log, where
(nearly) every line has an op; else those of other classes, where it counts
reads and writes apart.

Then where a tracepoint would explain most: intervals that no event splits, with
their share of the mean and of the spread (the latencies' variance), the larger
first; without the wait for a CPU, devices, the block layer's steps and declared
waits. Below each what its thread did, who woke it, and points that the model
passes aside; then recorded events that the model has no point for.

Then checks: completions against the client's IOPS (2 %), bytes per op, each op
against its own line in the client's log (99.9 % of them within 20 us; the mean
within 0.5 % or 2 us, which a client may need for its clock and its books beside
an op: one whose clock is not right beside its points may not get there), Little's
law, stages without gaps, sums to the nanosecond, the widest stage that no
tracepoint splits (the device and waits in queues not counted), unknown time; how
often independent rules agree on each hop to the device, and which ops lack which
step (Q queued, G allocated, I inserted, D issued, C completed).

examples:
  opline coverage run1
  opline coverage trace/ --model ceph --client bench.txt
  opline coverage run1 --per-op ops.csv
  opline coverage run1 --csv > parts.csv
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument(
        "--client", metavar="FILE", type=Path, help="the client's report (default: found in the recording)"
    )
    parser.add_argument(
        "--client-log", metavar="FILE", type=Path, help="the client's own log of each op: fio's, or CSV"
    )
    parser.add_argument("--per-op", metavar="FILE", type=output_path, help="write each op's parts to FILE, CSV, ns")
    add_filters(parser)
    add_every(parser)
    add_form(parser, csv="CSV of the parts of the mean alone, nanoseconds")


def _client(args: argparse.Namespace, run: Run) -> ClientReport | None:
    report: ClientReport | None = read_report(args.client) if args.client else None
    if report is None:
        report = next(filter(None, map(find_report, run.places())), None)
    if report and args.op_class and len(args.op_class) == 1:
        report = report.of_class(args.op_class[0])
    return report


def _log(args: argparse.Namespace, run: Run) -> Path | None:
    if args.client_log:
        return Path(args.client_log)
    return next(filter(None, map(find_log, run.places())), None)


def _coverage_lines(c: Coverage, joined: Joined | None, loop: int | None, schedule: Corrected | None) -> Iterator[str]:
    from opline_analyses.client.schedule import loop_lines

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
    rows = [["  " * p.level + p.name, us(p.mean_ns, 3), percent(p.mean_ns, whole, 2)] for p in c.parts()]
    total = c.client_ns or c.mean_ns
    rows.append(["= client's mean" if c.client_ns else "= trace's mean", us(total, 3), percent(total, whole, 2)])
    yield from table(["part of the mean", "us", "share%"], rows, names=(0,))
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


def _hop_lines(hops: list[dict[str, Any]], steps: dict[str, Any]) -> Iterator[str]:
    if not hops:
        seen = f"{steps['bios']} bios and {steps['requests']} requests"
        none = not (steps["bios"] or steps["requests"])
        yield "hops: no bio and no request in the trace" if none else f"hops: {seen}, none of which two rules name"
        return
    kinds = [k for k in checks.AGREEMENT if any(h.get(k) for h in hops)]
    rows = []
    for h in hops:
        both = h.get("agree", 0) + h.get("differ", 0)
        rows.append(
            [h["hop"].replace("_", " "), *(str(h.get(k, "")) for k in kinds), percent(h.get("agree", 0), both, 2)]
        )
    yield from table(["hop, by two rules", *(k.replace("_", " ") for k in kinds), "agree%"], rows)


def _step_lines(s: dict[str, Any]) -> Iterator[str]:
    if not s["with_q"] and set(s["no_request"]) == {"no_block_events"}:
        yield "block steps: the trace has no block events"
        return
    yield (
        f"block steps: of {s['ops']} complete ops {s['with_q']} ({percent(s['with_q'], s['ops'], 2)} %) have Q,"
        f" {s['with_q_to_c']} ({percent(s['with_q_to_c'], s['ops'], 2)} %) have Q G D C of every request"
    )
    missing = [f"{n} without {step}" for step, n in s["missing"].items() if n]
    missing += [f"{n} {reason}" for reason, n in s["no_request"].items()]
    if missing:
        yield f"  missing: {', '.join(missing)}"


def _counted(
    run: Run, args: argparse.Namespace, client: ClientReport | None, joined: Joined | None
) -> tuple[Selection, list[str]]:
    """The ops that the client's figures are about, and the classes to which they were narrowed for that."""
    which = selection(run, args)
    whole = None if args.op_class or args.since or args.until else client
    classes: list[str] = []
    if whole and joined and joined.ops == joined.lines == whole.count:
        # Every line of a complete log has its op: the others are somebody else's, whatever their class.
        which = which.also("o.op_id IN (SELECT op_id FROM client_ops)")
    elif joined and whole and joined.lines == whole.count and joined.ops >= MOST_LINES * joined.lines:
        # Nearly every line has its op; the few without one are ops without an end, on the same threads.
        which = which.also(
            "(o.op_id IN (SELECT op_id FROM client_ops) OR NOT o.complete AND (o.class, o.begin_tid) IN"
            " (SELECT (c.class, c.begin_tid) FROM ops c SEMI JOIN client_ops USING (op_id)))"
        )
    elif whole:
        last_ns = round(whole.seconds * 1e9) if whole.ramp_seconds and whole.seconds else None
        near = clients_classes(run, which, whole.counts(), last_ns)
        classes = near or []
        if near is None:
            counts = " and ".join(count_of(n, name) for name, n in whole.counts().items())
            talk(f"no classes of ops are as many as the client's {counts}: its figures are of other ops than these.")
        if classes:
            talk(f"the client's figures are about {', '.join(classes)}: other ops are left out (--class C).")
            which = which.also(f"o.class IN ({', '.join('?' * len(classes))})", *classes)
    if client and not (args.since or args.until):
        span = client_span(run, which, client)
        if span:
            ramp = f" (it counts after a ramp of {client.ramp_seconds:g} s)" if client.ramp_seconds else ""
            talk(f"ops that begin outside of what the client's figures are about{ramp}: {span.outside}, left out.")
            which = which.also("o.begin_ns BETWEEN ? AND ?", span.first_ns, span.last_ns)
    return which, classes


def run(args: argparse.Namespace) -> int:
    """Prints the coverage and the checks; 0 whatever they say."""
    from opline_analyses.client.loop import closed_loop
    from opline_analyses.client.schedule import corrected_latencies
    from opline_analyses.client.schedule import document as schedule_document
    from opline_analyses.client.unsplit import unsplit, unsplit_lines

    with opened(args) as opened_run:
        client = _client(args, opened_run)
        log = _log(args, opened_run)
        if args.per_op and not log:
            raise UsageError("--per-op needs the client's own log: none found, --client-log FILE names one.")
        joined = join_client_log(opened_run, log) if log else None
        which, classes = _counted(opened_run, args, client, joined)
        found = measure(opened_run, which, client, with_log=log is not None)
        loop, schedule = closed_loop(opened_run), corrected_latencies(opened_run, args.every, client)
        results = []
        # The client's rate is of the whole run: nothing to compare a part of it with.
        whole_run = None if args.since or args.until else client
        if whole_run:
            window_ns, completions = opened_run.row(
                f"""SELECT max(o.end_ns) - min(o.begin_ns), count(*) FILTER (o.complete)
                    FROM ops o WHERE {which.where}""",
                which.parameters,
            )
            results.append(checks.iops(completions, whole_run, window_ns))
        if client:
            results.append(checks.bytes_moved(opened_run, client))
        if log:
            results.append(checks.client_log(opened_run))
            results.append(checks.sums(opened_run))
        results.append(checks.littles_law(opened_run, which, whole_run))
        results.append(checks.chain(opened_run))
        results.append(checks.widest_unsplit(opened_run))
        results.append(checks.unknown_share(found.unknown_ns, found.mean_ns))
        gaps = unsplit(opened_run)
        hops, steps = checks.hop_agreement(opened_run), checks.block_steps(opened_run)
        if args.per_op:
            with complete_file(args.per_op) as file:
                import pyarrow.csv as pacsv

                pacsv.write_csv(per_op(opened_run).to_arrow_table(), file)
        with csv_output(args) if args.csv else output(args.output) as out:
            if args.csv:
                out.write(csv_text(PART_COLUMNS, _part_rows(found)).encode())
            elif args.json:
                document = _document(found, joined, classes, results, hops, steps)
                document["to_split"] = gaps._asdict() | {"intervals": [i._asdict() for i in gaps.intervals]}
                document |= {"closed_loop": loop, "schedule": schedule_document(schedule)}
                out.write((json.dumps(document, indent=1) + "\n").encode())
            else:
                lines = [
                    *_coverage_lines(found, joined, loop, schedule),
                    *unsplit_lines(gaps, opened_run),
                    "",
                    "checks",
                ]
                verdicts = {True: "pass", False: "FAIL", None: "n/a"}
                lines += [f"  {verdicts[c.passed]:4}  {c.name}: {c.text}" for c in results]
                lines += ["", *_hop_lines(hops, steps), "", *_step_lines(steps)]
                out.write(encoded(fitted(lines)))
        if client and whole_run is None:
            talk("the client's mean is of the whole run, the trace's of the part from --since to --until.")
        for c in results:
            if c.passed is False:
                talk(f"warning: {c.name}: {c.text}")
    return 0


PART_COLUMNS = ("part", "level", "mean_ns", "share")


def _part_rows(c: Coverage) -> Iterator[dict[str, Any]]:
    """The parts of level 0 sum to the whole, those of level 1 to the one above them."""
    for part in c.parts():
        share = part.mean_ns / c.whole_ns if c.whole_ns else ""
        yield {"part": part.name, "level": part.level, "mean_ns": part.mean_ns, "share": share}


def _document(
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
