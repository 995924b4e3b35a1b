# SPDX-License-Identifier: MIT
"""`opline model`: lists and shows op models, compiles one to its plan, and finds mistakes, also against a trace."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from opline.errors import OplineError, UsageError
from opline.model import (
    Model,
    Problem,
    asked_fields,
    check_text,
    check_trace,
    format_problem,
    load_model,
    read_text,
    shipped_models,
)
from opline.talk import shown, talk
from opline_analyses.base.quantities import seconds_given
from opline_analyses.base.result_table import json_text
from opline_analyses.commands.arguments import processor_share
from opline_analyses.commands.vocabulary import CHOICE, FILTERS
from opline_analyses.runs.run import Run, open_run

_DURATION_S = 3.0
_BUDGET = 0.5  # of a processor's time, for so long

NAME = "model"
HELP = "check an op model, also against a trace"
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
        type=seconds_given,
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
        models = [load_model(name) for name in shipped_models()]
        width = max((len(model.name) for model in models), default=0)
        for model in models:
            print(shown(f"{model.name:{width}}  {model.title}"))
    elif args.what == "show":
        sys.stdout.write(load_model(args.model).text)
    elif args.what == "new":
        from opline.capture.probes.offers import offers
        from opline.capture.probes.template import template

        sys.stdout.write(template(offers(args.program), args.program.name))
    elif args.what == "infer":
        sys.stdout.write(_inferred(args))
    elif args.what == "compile":
        sys.stdout.write(json_text(load_model(args.model).plan(args.match), ascii=False))
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
        from opline_analyses.infer import infer

        return infer(args.trace)
    from opline_analyses.infer.running import infer_running

    return infer_running(args.pid, args.functions, args.duration, args.probe_budget, talk)


def _lint(name_or_path: str, trace: str | None) -> int:
    text, name, path = read_text(name_or_path)
    model, problems = check_text(text, name, path)
    errors = any(problem.severity == "error" for problem in problems)
    if trace is not None and not errors:
        with open_run(trace, model=name_or_path, all_programs=True) as opened:
            events = {
                str(event): int(n) for event, n in opened.rows("SELECT event, sum(count) FROM fates GROUP BY event")
            }
            problems += check_trace(model, opened.manifest["core"], events, _fields(model, opened, events))
            problems += _without_links(model, opened)
    for problem in sorted(problems):
        print(shown(format_problem(path, problem)))
    unseen = " The trace was not looked at: the model can't be used." if trace is not None and errors else ""
    talk(f"{path}: {_summary(problems)}.{unseen}")
    return 1 if errors else 0


def _fields(model: Model, run: Run, events: dict[str, int]) -> dict[str, frozenset[str]]:
    """Those of the trace's events; none where the run's trace is gone."""
    from opline_analyses.infer.fields import fields_of

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


def _summary(problems: list[Problem]) -> str:
    counts = Counter(problem.severity for problem in problems)
    said = [f"{n} {what}{'' if n == 1 else 's'}" for what in ("error", "warning", "note") if (n := counts[what])]
    return ", ".join(said) or "nothing to complain about"
