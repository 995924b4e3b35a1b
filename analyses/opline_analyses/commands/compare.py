# SPDX-License-Identifier: MIT
"""`opline compare A B`: what has changed between runs, and what these runs can't tell."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from opline.errors import OplineError, UsageError
from opline.talk import talk
from opline_analyses.base.files import output_path
from opline_analyses.base.text import count_of
from opline_analyses.commands.common import (
    add_form,
    add_model,
    file_path,
    opened,
    output,
    write,
)
from opline_analyses.commands.engines import add_engine, answers, status
from opline_analyses.commands.options import add_filters, add_tainted, op_filters
from opline_analyses.runs import ledger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.compare.figures import Figures
    from opline_analyses.engine.recordings import Answers

PICTURES = (".png", ".svg", ".pdf")
NAME = "compare"
HELP = "what has changed between two runs, or several of each: verdicts"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--slowest": "the number of slow ops depends on the length of a run; --latency does not",
    "--limit": "the figures are few; --all shows each (--limit PERCENT is an old name of --matters)",
    "--sort": "the figures are in the order of an op's way: the runs have the same order",
}
EXAMPLES = """\
A and B are runs, recordings, or baselines (--save). The run is the unit: ops of
one run meet the same disturbances. One run per side shows how two recordings
differ, not the effect of a change. Take five of each side, recorded in turn
(opline record --repeat 5 --against 'OLD' -- NEW).

The values are geometric means over the runs; the mean of a stage is per op,
over all ops. The ratio has a 95 % interval (Welch's t of the logarithms).
Verdicts:
  slower by 12 % [8, 17]       a change, corrected for the number of figures
                               (Holm)
  no change larger than 3 %    the 90 % interval lies within that
  can't tell: -9 % … +22 %     the runs of a side differ as much
  maybe slower: +1 % … +30 %   a change, if this were the only figure
Judged are mean, p50, p99 and IOPS of all complete ops, tainted ops too, and
mean and p50 of each stage. `beside the other stages of its run`: the p50 of
the stage if all runs were equally fast. With 16 or more runs of A and one of B,
p50 is held against the span of A's runs.

--fail-if 'p99(D2C) > +5 %' is for CI: mean, p50, p99 ... of a stage or
`latency`; `iops < -5 %`. It fails if the whole interval lies beyond the limit
(Holm over all conditions). It needs 5 runs of each side, or 16 of A and one of
B (then mean, p50 and iops, at 1 %). Exit status: 0 none fails, 4 one fails, 5
one is undecided and --undecided fail; 1, 2 and 3 as of all commands.

--engine makes the same figures, several runs at once: processes or workers of
Dask. A folder stands for the recordings in it. A recording without an answer is
named: exit status 3, if no --fail-if holds.

examples:
  opline compare before after
  opline compare old1 old2 old3 old4 old5 -- new1 new2 new3 new4 new5
  opline compare old* --with new* --class read
  opline compare old* --with new* --plot change.png
  opline compare old* --save baseline.json
  opline compare baseline.json -- new* --fail-if 'p99 > +10 %' --junit out.xml
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.usage = "opline compare [options] A B | A1 A2 ... -- B1 B2 ... | RUN ... --save FILE"
    parser.add_argument("runs", metavar="RUN", nargs="+", type=file_path, help="runs of A; of two the second is B")
    parser.add_argument("--with", dest="b", metavar="RUN", nargs="+", type=file_path, help="runs of B; -- is the same")
    add_model(parser)
    add_filters(parser)
    add_tainted(parser)
    parser.add_argument(
        "--matters",
        metavar="PERCENT",
        type=_percent,
        default=0.05,
        help="a change below does not matter (default: 5)",
    )
    parser.add_argument("--limit", dest="matters", type=_percent, help=argparse.SUPPRESS)  # its name until 0.1
    parser.add_argument("--all", action="store_true", help="a line for each figure, also without a verdict")
    parser.add_argument("--save", metavar="FILE", type=output_path, help="write the runs' figures to FILE, a baseline")
    parser.add_argument(
        "--fail-if",
        metavar="CONDITION",
        action="append",
        default=[],
        help="exit status 4 if it holds; may be given again",
    )
    parser.add_argument(
        "--undecided", choices=("fail", "warn", "pass"), default="warn",
        help="what becomes of a condition that these runs can't decide (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--junit", metavar="FILE", type=output_path, help="write the conditions' outcomes as JUnit XML")
    parser.add_argument(
        "--plot", metavar="FILE", type=output_path, help="draw both sides on the same axes: .png, .svg or .pdf"
    )
    add_engine(parser, also=False)
    add_form(parser)


def arguments(argv: Sequence[str]) -> list[str]:
    """The command line with -- as the option that it is here: argparse would take it away."""
    return ["--with" if word == "--" else word for word in argv]


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text}: not a number of per cent") from error
    if not 0 < value < 10:
        raise argparse.ArgumentTypeError(f"{text}: must be above 0 and below 1000")
    return value


def _sides(args: argparse.Namespace) -> tuple[list[Path], list[Path]]:
    """The paths of A and of B. Raises UsageError."""
    if args.b:
        return args.runs, args.b
    if len(args.runs) == 2 and not args.save:
        return args.runs[:1], args.runs[1:]
    if args.save:
        return args.runs, []
    if len(args.runs) == 1:
        raise UsageError("One run cannot be compared: opline compare A B, or A1 A2 ... -- B1 B2 ...")
    raise UsageError("Write -- before the runs of B: opline compare A1 A2 ... -- B1 B2 ...")


def _by_engine(
    args: argparse.Namespace, sides: Sequence[Sequence[Path]], sketched: bool
) -> tuple[list[list[Figures]], Answers | None]:
    """The figures of each side, and what the engine said of the runs; None if all are baselines. Raises OplineError."""
    from opline_analyses.compare.figures import figures_in

    runs = list(dict.fromkeys(path for side in sides for path in side if not _is_baseline(path)))
    wish = {"filters": vars(op_filters(args)), "tainted": args.tainted, "sketched": sketched}
    found = answers(args, "figures", wish, [str(path) for path in runs]) if runs else None
    of_run: dict[Path, list[Figures]] = {path: [] for path in runs}
    if found is not None:
        for argument, summary in zip(found.arguments, found.summaries, strict=True):
            of_run[runs[argument]] += figures_in(summary["baseline"], runs[argument])
    figures = [
        [f for path in side for f in (of_run[path] if path in of_run else _of_baseline(args, path))] for side in sides
    ]
    if any(side and not of_side for side, of_side in zip(sides, figures, strict=True)):
        raise OplineError("No recording of a side has an answer: the lines above say why.", exit_code=3)
    return figures, found


def _is_baseline(path: Path) -> bool:
    from opline.readers.registry import format_of

    return path.is_file() and format_of(path) is None


def _of_baseline(args: argparse.Namespace, path: Path) -> list[Figures]:
    """Of all runs of a baseline. Raises OplineError."""
    from opline_analyses.api.ops import read_baseline

    if given := [o for o in ("op_class", "comm", "pid", "since", "until") if getattr(args, o) is not None]:
        option = given[0].replace("op_", "")
        raise UsageError(f"--{option}: {path} is a baseline, whose ops are not known any more.")
    return read_baseline(path)


def _figures(args: argparse.Namespace, path: Path, sketched: bool) -> list[Figures]:
    """Of a run, or of all runs of a baseline. Raises OplineError."""
    from opline_analyses.api.ops import figures

    if _is_baseline(path):
        return _of_baseline(args, path)
    tables = ("ops", "stages", "requests")
    with opened(args, path=path, tables=tables, whose=f"{path.name}: ") as run:
        lost = ledger.bad_count(ledger.entries(run))
        return [figures(
            run, op_filters(args), name=path.resolve().name, lost=lost, tainted=args.tainted, sketched=sketched
        )]  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Prints the comparison, or keeps a baseline; the exit status says whether a --fail-if holds."""
    from opline_analyses.api.ops import baseline, compare
    from opline_analyses.compare import gate

    conditions = [gate.parse(text) for text in args.fail_if]
    if args.junit and not conditions:
        raise UsageError("--junit writes the outcomes of --fail-if: none is given.")
    if args.plot and args.plot.suffix.lower() not in PICTURES:
        raise UsageError(f"--plot {args.plot}: the name must end in {', '.join(PICTURES)}.")
    paths = _sides(args)
    sketched = bool(args.save or args.plot) or any(c.of_sketch for c in conditions)
    asked = None
    if args.engine is None:
        a, b = ([f for path in side for f in _figures(args, path, sketched)] for side in paths)
    else:
        (a, b), asked = _by_engine(args, paths, sketched)
    if args.save:
        with output(args.save) as out:
            out.write(baseline(a).encode())
        talk(f"wrote {args.save}: the figures of {count_of(len(a), 'run')}")
        if not b:
            return 0 if asked is None else status(args, asked)
    result = compare(a, b, limit=args.matters, everything=args.all, conditions=conditions)
    write(args, result)
    found, findings = result.found
    if args.plot:
        from opline_analyses.api.files import plot_comparison, save

        save(plot_comparison(found), args.plot)
        talk(f"wrote {args.plot}")
    if args.junit:
        with output(args.junit) as out:
            out.write(gate.junit(findings, args.undecided))
    for f in findings:
        if f.outcome == gate.FAILED or (f.outcome == gate.UNDECIDED and args.undecided != "pass"):
            talk(f"{f.outcome}: {f.condition.text}: {f.text}")
    ended = 0 if asked is None else status(args, asked)
    return gate.status(findings, args.undecided) or ended
