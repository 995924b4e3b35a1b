# SPDX-License-Identifier: MIT
"""``opline doctor``: what this machine can capture, with what, and what to install."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap

from opline.capture.doctor import Check, Report, examine

NAME = "doctor"
HELP = "what this machine can capture, with what, and what to install"
EXAMPLES = """\
examples:
  opline doctor
  opline doctor --json | jq .main_job

Exit status: 0 if an operation can be followed from the application to the disk here, 1 if not.
What recordings that were killed have left running is ended and removed.
"""

_BLOCK = {
    "kernel": "block events: yes, from the kernel domain (lttng-modules)",
    "bpf": "block events: yes, through BPF",
    "none": "block events: no",
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``opline doctor``."""
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 if the main job can be done."""
    report = examine()
    if args.json:
        print(json.dumps(report.document(), indent=1))
    else:
        print("\n".join(lines(report, min(shutil.get_terminal_size().columns, 100))))
    return 0 if report.main_job else 1


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
