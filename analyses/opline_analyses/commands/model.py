# SPDX-License-Identifier: MIT
"""`opline model`: lists and shows op models, compiles one to its plan, and finds mistakes, also against a trace."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from opline.errors import UsageError
from opline.model import Problem, format_problem
from opline.talk import shown, talk
from opline_analyses.api import models
from opline_analyses.base.quantities import seconds_given
from opline_analyses.base.result_table import json_text
from opline_analyses.commands.arguments import processor_share
from opline_analyses.commands.vocabulary import CHOICE, FILTERS

_DURATION_S = 3.0
_BUDGET = 0.5  # of a processor's time, for so long

NAME = "model"
HELP = "op models: list, show, propose, check (also against a trace)"
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    f"{FILTERS} {CHOICE}": "it is about a model",
    "--csv --json --output": "it prints text: TOML, findings, or the plan, which is JSON",
}
EXAMPLES = """\
MODEL is a shipped model or a .toml file (docs/model.md).

infer proposes a model from a recorded TRACE: keys, begin and end, thread rules,
batches, names. A comment above each rule has the evidence, or a question that
the trace cannot answer. With --pid, infer probes a running process for some
seconds (USDT probes, functions), and removes all probes again.

lint prints FILE:LINE: severity: message. error: the model can't be used (exit
status 1); warning: the model hardly does what you mean; note: worth a look.
With a TRACE, lint also finds points never seen, missing fields, claimed events
without a point, keys without an op, and why no op has a block request.

examples:
  opline model list
  opline model show postgresql > mine.toml
  opline model new /usr/lib/postgresql/15/bin/postgres > mine.toml
  opline model infer run1 > mine.toml
  opline model infer --pid 4711 --functions 'Store::*' > mine.toml
  opline model lint mine.toml
  opline model lint mine.toml trace/
  opline model compile mine.toml
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the sub-commands."""
    commands = parser.add_subparsers(dest="what", required=True, metavar="{list,show,new,infer,compile,lint}")
    commands.add_parser("list", help="the models that come with opline")
    show = commands.add_parser("show", help="a model's text")
    show.add_argument("model", metavar="MODEL", help="a shipped model's name or a .toml file")
    new = commands.add_parser("new", help="a model to begin with, from what a program offers")
    new.add_argument("program", type=Path, metavar="PROGRAM", help="the program's or library's file")
    inferred = commands.add_parser("infer", help="a model to begin with, from a trace, or from what runs")
    inferred.add_argument("trace", metavar="TRACE", nargs="?", type=Path, help="a trace, or a recording")
    inferred.add_argument(
        "--pid", metavar="N", type=int, help="instead: this process and its descendants, probed for some seconds"
    )
    inferred.add_argument(
        "--functions", metavar="GLOB", help="with --pid: these functions of its programs too (default: USDT probes)"
    )
    inferred.add_argument(
        "--duration",
        metavar="T",
        type=seconds_given("--duration"),
        default=_DURATION_S,
        help="with --pid: how long: 10 (seconds), 5m; 3",
    )
    inferred.add_argument(
        "--probe-budget", metavar="N%", type=processor_share, default=_BUDGET,
        help="with --pid: what hits may cost, of one processor's time; too hot a probe is removed (50%%)",
    )  # fmt: skip
    plan = commands.add_parser("compile", help="the plan that the correlator's core gets, as JSON")
    plan.add_argument("model", metavar="MODEL", help="a shipped model's name or a .toml file")
    plan.add_argument(
        "--match",
        choices=("pointer", "sector"),
        default="pointer",
        help="how block requests are found: by the events' pointers, or as if they had none (default: pointer)",
    )
    lint = commands.add_parser("lint", help="a model's mistakes")
    lint.add_argument("model", metavar="FILE", help="the model: a .toml file, or a shipped model's name")
    lint.add_argument("trace", metavar="TRACE", nargs="?", help="check it against this trace, recording or run too")


def run(args: argparse.Namespace) -> int:
    """Does what the sub-command says."""
    if args.what == "list":
        found = models.shipped()
        width = max((len(model.name) for model in found), default=0)
        for model in found:
            print(shown(f"{model.name:{width}}  {model.title}"))
    elif args.what == "show":
        sys.stdout.write(models.load(args.model).text)
    elif args.what == "new":
        sys.stdout.write(models.new(args.program))
    elif args.what == "infer":
        sys.stdout.write(_inferred(args))
    elif args.what == "compile":
        sys.stdout.write(json_text(models.load(args.model).plan(args.match), ascii=False))
    else:
        return _lint(args.model, args.trace)
    return 0


def _inferred(args: argparse.Namespace) -> str:
    if (args.trace is None) == (args.pid is None):
        raise UsageError("model infer takes a TRACE, or --pid N.")
    if args.pid is None and args.functions is not None:
        raise UsageError("--functions is for --pid N.")
    if not args.duration > 0:
        raise UsageError("--duration is a number of seconds above 0.")
    if args.pid is None:
        return models.infer(args.trace)
    return models.infer_running(
        args.pid, functions=args.functions, duration_s=args.duration, budget=args.probe_budget, tell=talk
    )


def _lint(name_or_path: str, trace: str | None) -> int:
    path, problems = models.lint(name_or_path, trace)
    errors = any(problem.severity == "error" for problem in problems)
    for problem in problems:
        print(shown(format_problem(path, problem)))
    unseen = " The trace was not looked at: the model can't be used." if trace is not None and errors else ""
    talk(f"{path}: {_summary(problems)}.{unseen}")
    return 1 if errors else 0


def _summary(problems: list[Problem]) -> str:
    counts = Counter(problem.severity for problem in problems)
    said = [f"{n} {what}{'' if n == 1 else 's'}" for what in ("error", "warning", "note") if (n := counts[what])]
    return ", ".join(said) or "nothing to complain about"
