# SPDX-License-Identifier: MIT
"""``opline doctor``: what this machine can capture, with what, and what to install; what a program offers to probes."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import textwrap
from pathlib import Path

from opline.capture.directory import leftovers
from opline.capture.doctor import Report, examine
from opline.capture.machine.checks import Check
from opline.capture.probes.offers import Offers, offers
from opline.errors import UsageError
from opline.talk import shown
from opline_analyses.base.result_table import json_text
from opline_analyses.commands.record_hosts import add_remote
from opline_analyses.commands.vocabulary import CHOICE, FILTERS

NAME = "doctor"
HELP = "what this machine can capture, with what, and what to install"
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    f"{FILTERS} {CHOICE}": "it is about the machine",
    "--csv --output": "one short report",
}
EXAMPLES = """\
examples:
  opline doctor
  opline doctor --json | jq .main_job
  opline doctor --hosts client,store[1-3]
  opline doctor --clean-up                # after recorders that were killed
  opline doctor --program /usr/lib/postgresql/15/bin/postgres --functions 'XLog*'

With --program: what that program or library offers without being rebuilt, for
the table [probes] of a model. Exit status: 0 if an operation can be followed
from the application to the disk here, 1 if not. The report changes nothing;
--clean-up ends what killed recordings have left running and removes their
folders (the next `opline record` does the same).
"""

_BLOCK = {
    "kernel": "block events: yes, from the kernel domain (lttng-modules)",
    "bpf": "block events: yes, through BPF",
    "none": "block events: no",
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``opline doctor``."""
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.add_argument("--program", metavar="FILE", type=Path, help="what this program or library offers to probes")
    parser.add_argument(
        "--clean-up", action="store_true", help="instead: remove what killed recordings have left, a line about each"
    )
    parser.add_argument("--hosts", metavar="LIST", help="instead: what each of client,store[1-3] can record, by ssh")
    add_remote(parser)
    parser.add_argument("--functions", metavar="GLOB", help="with --program: its functions of these names, too")


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 if the main job can be done. Raises OplineError if the program can't be read."""
    if args.hosts is not None:
        return _of_hosts(args)
    if args.program is not None:
        found = offers(args.program, args.functions)
        if args.json:
            document = {"schema": "opline-program", "schema_version": 1, **found.record()}
            sys.stdout.write(json_text(document))
        else:
            print("\n".join(map(shown, offer_lines(found))))
        return 0
    if args.functions is not None:
        raise UsageError("--functions goes with --program FILE: whose functions?")
    if args.clean_up:
        cleaned = leftovers.sweep()
        print("\n".join(map(shown, cleaned or ["no killed recording has left anything"])))
        return 1 if any("could not be cleaned up" in line for line in cleaned) else 0
    report = examine()
    if args.json:
        sys.stdout.write(json_text(report.document()))
    else:
        print("\n".join(map(shown, lines(report, min(shutil.get_terminal_size().columns, 100)))))
    return 0 if report.main_job else 1


def _of_hosts(args: argparse.Namespace) -> int:
    """A line per host, and what is missing there; 0 if each can do the main job."""
    from opline_analyses.hosts.nodes import nodes
    from opline_analyses.hosts.together import examine as examine_hosts

    found = examine_hosts(nodes(args.hosts), shlex.split(args.remote))
    if args.json:
        sys.stdout.write(json_text({"schema": "opline-doctor-hosts", "schema_version": 1, "hosts": found}))
    else:
        width = max(map(len, found))
        for name, report in found.items():
            if isinstance(report, str):
                print(shown(f"{name:{width}}  no: {report}"))
                continue
            can = "yes" if report["main_job"] else "no"
            app = "yes" if report["app_events"] else "no"
            block = _BLOCK[report["block_source"]].removeprefix("block events: ")
            print(shown(f"{name:{width}}  {can}: application events {app}; block events {block}"))
            for check in report["checks"]:
                if check["status"] == "missing":
                    print(shown(f"{'':{width}}    {check['name']}: {check['detail']} -> {check['advice'] or '?'}"))
    return 0 if all(isinstance(report, dict) and report["main_job"] for report in found.values()) else 1


def _check_lines(check: Check, width: int) -> list[str]:
    head = f"{check.status:<9} {check.name:<17} "
    rows = textwrap.wrap(check.detail, width - len(head), break_on_hyphens=False) or [""]
    if check.advice and check.status != "ok":
        rows += textwrap.wrap(
            f"-> {check.advice}",
            width - len(head),
            subsequent_indent="   ",
            break_on_hyphens=False,
            break_long_words=False,
        )
    return [head + rows[0], *(" " * len(head) + row for row in rows[1:])]


def offer_lines(found: Offers) -> list[str]:
    """What a program offers, as text."""
    text = [f"{found.path}", f"LTTng tracepoints: {len(found.lttng) or 'none'}", *(f"  {e}" for e in found.lttng)]
    text.append(f"USDT probes: {len(found.usdt) or 'none'}")
    width = max((len(usdt.name) for usdt in found.usdt), default=0)
    for usdt in found.usdt:
        places = "1 place " if usdt.places == 1 else f"{usdt.places} places"
        count = len(usdt.arguments)
        arguments = f"arg1 to arg{count}" if count > 1 else "arg1" if count else "no arguments"
        lacking = f", of which {usdt.readable} can be read" if usdt.readable < count else ""
        text.append(f"  {usdt.name:{width}}  {places}  {arguments}{lacking}")
    text.append(f"functions: {found.function_count or 'none, it is stripped'}")
    if found.function_count and not found.functions:
        text[-1] += " (--functions 'GLOB' lists those of that name)"
    for function in found.functions:
        text.append(f"  {function.name}{'  (single-stepped: a hit is dear)' if function.stepped else ''}")
    return text


def lines(report: Report, width: int = 80) -> list[str]:
    """The report as text of at most ``width`` columns."""
    text = [line for check in report.checks for line in _check_lines(check, width)]
    can = "can" if report.main_job else "cannot"
    return [
        *text,
        "",
        f"application events: {'yes' if report.app_events else 'no'}",
        _BLOCK[report.block_source],
        f"reading traces: {'yes' if report.can_read else 'no'}",
        f"This machine {can} record operations from the application to the disk.",
    ]
