# SPDX-License-Identifier: MIT
"""The map of commands: the words for a newcomer, all commands in groups, and the questions answered by the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The words of `opline --help`: each is a command, and five of them stand for several commands.
WORDS = (
    "record", "now", "top", "what", "why", "ops", "stages", "compare", "page", "disk", "export", "check", "model",
)  # fmt: skip
# (heading, ((command, module, line in the list), ...)): a test compares the lines with each module's HELP.
GROUPS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Words for several commands",
        (
            ("now", "now", "the disks now: hist, iostat, heatmap and others, no recording"),
            ("disk", "disk", "disks of a run: iostat, hist, heatmap, log, outliers and others"),
            ("page", "page", "a run as a page: every op over time, its stages, why it is slow"),
            ("check", "check", "what is missing in a run, and what this machine can record"),
        ),
    ),
    (
        "Capture",
        (
            ("record", "record", "record a command, or what runs: its events and the block layer's"),
            ("doctor", "doctor", "what this machine can capture, with what, and what to install"),
            ("ping", "ping", "pings between hosts while they are recorded, for `opline join`"),
            ("join", "join", "recordings of several hosts on one clock, as one run"),
        ),
    ),
    (
        "Look",
        (
            ("ops", "ops", "each op's transitions, with its block requests between them"),
            ("stages", "stages", "count, mean, percentiles, max and share of each stage"),
            ("why", "why", "why the slow ops are slow: against typical ones, stage by stage"),
            ("report", "report", "the run as one HTML page, to look at and to mail"),
            ("view", "view", "the page of runs of any size, in a browser on this machine"),
            ("plot", "plot", "every op of the run over time; one op; distributions (PNG, SVG)"),
            ("graph", "graph", "the graph of points: how often, how fast; compare two runs"),
            ("requests", "requests", "one line per block request: steps, owner, queue met"),
            ("compare", "compare", "what has changed between two runs, or several of each: verdicts"),
            ("btt", "btt", "the block layer's intervals per device: btt's tables, but exact"),
            ("interference", "interference", "who an op's block requests waited for, by owner"),
            ("coverage", "coverage", "how much of the time that the client reports is accounted for"),
            ("hosts", "hosts", "the hosts of a cluster: clock offset, rate, bound, messages"),
        ),
    ),
    (
        "Block I/O",
        (
            ("hist", "hist", "latency distributions: per interval, per device, side by side"),
            ("iostat", "iostat", "rates, sizes, latencies, queue and utilisation per interval"),
            ("heatmap", "heatmap", "latency, size or offset of all I/Os over time: terminal or SVG"),
            ("outliers", "outliers", "I/Os above a threshold; a suspect disk against a healthy one"),
            ("log", "log", "every I/O on a line, in iosnoop's columns"),
            ("bitesize", "bitesize", "sizes of the issued I/Os: powers of two, or custom buckets"),
            ("burst", "burst", "bursts that a mean hides, whether they return, and where to look"),
            ("top", "top", "devices, threads, slow I/Os, ops now: one screen with keys"),
            ("live", "live", "hist, iostat, outliers, log, bitesize or heatmap, while it runs"),
        ),
    ),
    (
        "Export",
        (
            ("csv", "csv", "one row per op, one column per stage"),
            ("export", "export", "the run for Perfetto, Jaeger, Prometheus, flame graphs and others"),
            ("sql", "sql", "ask the run's tables with SQL"),
            ("pack", "pack", "a run as one file, to mail or to keep; the other commands take it"),
            ("events", "events", "a trace's events, decoded, one per line"),
        ),
    ),
    (
        "Trust",
        (
            ("what", "what", "what a file is, what is in it, which commands take it"),
            ("losses", "losses", "the fate of every event, what is missing, and what to do about it"),
            ("model", "model", "op models: list, show, propose, check (also against a trace)"),
        ),
    ),
)

#: Users' questions, and the commands to type: README has the answers too. Questions about applications come before the
#: last two.
_QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("What do my disks do now?", ("opline top",)),
    ("Why is my fio job's p99 high?", ("opline record -o run1 -- fio job.fio", "opline why run1")),
    ("Where does my own program spend its time?", ("opline record -o run1 -- ./my-program", "opline why run1")),
    (
        "What does a running PostgreSQL wait for?",
        ("opline record -o pg --model postgresql-server --comm postgres --duration 10", "opline why pg"),
    ),
    ("A colleague sent a trace.", ("opline what FILE",)),
    ("What has changed since yesterday?", ("opline compare run1 run2",)),
)

EPILOG = """\
RUN is a run, a recording (opline record -o DIR) or a trace: opline what FILE.

examples:
  opline record -o run1 -- ./my-benchmark
  opline why run1
  opline disk heatmap run1

`opline help all` lists all commands. `opline help why` is the manual of one,
`opline why --help` its options. --verbose says what reads a trace.
"""

_ABOUT = (
    "usage: opline [--version] [--help] COMMAND ...",
    "",
    "Follow one application operation from its tracepoints down to the disk and",
    "back, and see where every nanosecond went.",
    "",
)


def modules() -> dict[str, str]:
    """The module of each command, by the command's name."""
    return {name: module for _, group in GROUPS for name, module, _ in group}


def meant_by(argv: Sequence[str], known: Sequence[str], kind: str) -> tuple[str, Sequence[str]]:
    """The command that the first word names, else the first of ``known``, and its arguments. ``kind``: what such a word
    is called. Raises UsageError for a word before a run that is neither.
    """
    if argv[0] in known:
        return argv[0], argv[1:]
    from pathlib import Path

    if len(argv) > 1 and argv[0][:1] != "-" and Path(argv[1]).exists() and not Path(argv[0]).exists():
        raise UsageError(f"{argv[0]} is no {kind}. Write one of {', '.join(known)}.")
    return known[0], argv


def lines() -> dict[str, str]:
    """The line about each command, by the command's name."""
    return {name: text for _, group in GROUPS for name, _, text in group}


def overview() -> str:
    """The text of `opline --help`: the words for a newcomer."""
    known = lines()
    return "\n".join((*_ABOUT, *(f"  {name:8} {known[name]}" for name in WORDS), "", EPILOG))


def everything() -> str:
    """The text of `opline help all`: all commands, in groups."""
    found = list(_ABOUT)
    for heading, group in GROUPS:
        found.append(f"{heading}:")
        found += [f"  {name:12} {text}" for name, _, text in group]
    return "\n".join((*found, "", EPILOG))


def asked() -> list[tuple[str, tuple[str, ...]]]:
    """The questions in README's order, each with the commands."""
    from opline.applications import table

    return [*_QUESTIONS[:-2], *table.questions(), *_QUESTIONS[-2:]]


def questions() -> str:
    """The text of `opline` without a command."""
    found = ["opline follows one application operation down to the disk and back. Ask it:", ""]
    for question, commands in asked():
        found += [question, *(f"  {command}" for command in commands)]
    return "\n".join(
        (*found, "", "`opline --help` lists the commands; `opline doctor` says what this machine can record.\n")
    )
