# SPDX-License-Identifier: MIT
"""`opline losses RUN`: the fate of every event, what is missing, and what to do about it."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections import defaultdict
from collections.abc import Iterator

from opline.errors import OplineError, UsageError
from opline.values import Value
from opline_analyses.base.text import count_of, csv_text, encoded, table, wrapped
from opline_analyses.block import io_filter
from opline_analyses.commands.common import add_form, add_run, csv_output, opened, output
from opline_analyses.runs import integrity, ledger
from opline_analyses.runs.run import Run

NAME = "losses"
_SHOWN = 40  # intervals
HELP = "the fate of every event, what is missing, and what to do about it"
EXAMPLES = """\
Every event has exactly one fate, and per event class the fates sum to the
input. A loss has a severity (info, notice, data_loss, error) and an origin:
recording (the tracer lost it) or correlation (we could not make sense of it).
--max-loss N: exit status 3 if the losses of severity data_loss and error count
more than N together. --verify: exit status 1 if a table is not what was
written. With filters: how many of the I/Os that they mean can be measured, and
why the others can't; with a window, what was discarded in it.

examples:
  opline losses run1
  opline losses run1 --max-loss 0 || echo "don't trust it"
  opline losses run1 --json
  opline losses run1 -d sda -i reads --window 10:12
  opline losses run1 --verify
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument(
        "--verify",
        action="store_true",
        help="instead: check the checksums of the run's tables, say what is damaged",
    )
    io_filter.add_io_filters(parser)
    add_form(parser, csv="the losses alone, as CSV", json="JSON")


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, 76, initial_indent="    ", subsequent_indent="    ")


class Chosen(Value):
    """What the filters mean: how many of what can be measured, and how many can't, by reason."""

    what: str  # of one
    counted: int
    left_out: dict[str, int]
    window: io_filter.Window


def chosen_of(run: Run, args: argparse.Namespace) -> Chosen | None:
    """None where no option chooses."""
    rows = io_filter.rows_of(run, args)
    if io_filter.chosen_ids(rows, args) is None:
        return None
    found = Chosen(rows.source.one, io_filter.count_of_rows(run, rows), io_filter.left_out(run, rows), rows.window)
    if not found.counted and not found.left_out:
        io_filter.tell_nothing(run, rows)
    return found


def discarded_in(run: Run, chosen: Chosen | None) -> list[ledger.Discarded]:
    """What was discarded, or is missing, in the window; without one, all."""
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
    yield f"meant by the options: {count_of(whole, chosen.what)}, {chosen.counted} of which can be measured"
    for reason, number in chosen.left_out.items():
        yield f"  {number} {reason}"
    yield ""


def text_lines(run: Run, chosen: Chosen | None = None) -> Iterator[str]:
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
            rows.append([event if n == 0 else "", f.fate, str(f.count), str(whole) if n == 0 else ""])
    yield from table(["event", "fate", "count", "input"], rows, left=2, names=(0,))
    yield f"orphans: {sum(f.count for f in fates if f.fate.startswith('orphan:'))}"
    yield ""
    entries = ledger.entries(run)
    yield "losses" if entries else "losses: none"
    for e in entries:
        yield f"  {e.loss}  {e.count}  {e.severity}, {e.origin}"
        yield from _wrapped(e.advice)
    discarded = discarded_in(run, chosen)
    if discarded:
        first = run.start_ns()
        yield ""
        heading = (
            "discarded by the tracer, or missing as the recorder says or other events show (seconds from the run's "
            "first event)"
        )
        yield from wrapped(heading)
        yield from table(
            ["stream", "from", "to", "count", "unit", "ops touched"],
            [
                [
                    s,
                    _seconds(b, first),
                    _seconds(e, first),
                    "?" if n is None else str(n),
                    "packets" if p else "events",
                    str(k),
                ]
                for s, b, e, n, p, k in discarded[:_SHOWN]
            ],
        )
        if len(discarded) > _SHOWN:
            yield f"{len(discarded) - _SHOWN} more: --json, or the table `discarded` (`opline sql`)"
    tainted = sum(e.count for e in entries if e.loss == "tainted_ops")
    if tainted:
        yield f"tainted: {count_of(tainted, 'op overlaps', 'ops overlap')} lost events; statistics leave them out"


def _seconds(ns: int | None, first: int) -> str:
    return "?" if ns is None else f"{(ns - first) / 1e9:.6f}"


def as_json(run: Run, chosen: Chosen | None = None) -> str:
    """The same as one JSON document."""
    names = ("stream", "begin_ns", "end_ns", "count", "packets", "ops")
    document: dict[str, object] = {
        "schema": "opline losses 1",
        "fates": [vars(f) for f in ledger.fates(run)],
        "losses": [vars(e) for e in ledger.entries(run)],
        "discarded": [dict(zip(names, row, strict=True)) for row in discarded_in(run, chosen)],
    }
    if chosen is not None:
        document["chosen"] = {"of": chosen.what, "counted": chosen.counted, "left_out": chosen.left_out}
    return json.dumps(document, indent=1) + "\n"


def verify(args: argparse.Namespace, run: Run) -> int:
    """Says of each table whether it is what was written, and where it is not. Raises OplineError if one is not."""
    checked = integrity.tables(run)
    text = integrity.as_json(checked) if args.json else encoded(integrity.text_lines(checked)).decode()
    with output(args.output) as out:
        out.write(text.encode())
    bad = [t.file for t in checked if t.faults]
    if bad:
        of = f"{len(bad)} of {len(checked)} tables of {run.path}"
        raise OplineError(f"{of} are not what was written: {', '.join(bad)}. Correlate its trace again.")
    return 0


def run(args: argparse.Namespace) -> int:
    """Prints the ledger; the exit status says whether it exceeds --max-loss."""
    blocks = args.of in ("requests", "bios")  # what there is without a model: an application's events are of no op
    with opened(args, losses=False, blocks=blocks) as opened_run:
        if args.verify:
            return verify(args, opened_run)
        chosen = chosen_of(opened_run, args)
        if args.csv:
            if chosen is not None:
                raise UsageError("--csv has the losses of the whole run, which no filter chooses among: take --json.")
            listed = [vars(entry) for entry in ledger.entries(opened_run)]
            text = csv_text(("loss", "count", "severity", "origin", "advice"), listed)
        elif args.json:
            text = as_json(opened_run, chosen)
        else:
            text = encoded(text_lines(opened_run, chosen)).decode()
        with csv_output(args) if args.csv else output(args.output) as out:
            out.write(text.encode())
    return 0
