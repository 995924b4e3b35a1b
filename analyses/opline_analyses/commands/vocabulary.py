# SPDX-License-Identifier: MIT
"""The one vocabulary of filters: which options mean the same on every command (options.py declares them).

A command that lacks some says why in its `LACKS`: options with blanks between them → the reason. Commands that only
record have this, too, and no native core.
"""

from __future__ import annotations

import argparse

#: Each option with what it means on every command.
VOCABULARY = {
    "--since": "begins (an op), completes (an I/O) or happens (an event) at T or later: `9.5` (seconds) or `10ms`",
    "--until": "begins, completes or happens before T",
    "--class": "is, or belongs to, an op of this class",
    "--comm": "is begun or queued by a thread of this name: `fio*`",
    "--pid": "is begun or queued by this process",
    "--cgroup": "is begun or queued in (or below) this cgroup: `/kubepods*`, `docker 4f2a*`, `nginx.service`",
    "--device": "uses this device: `sda`, `sda1`, `8:0`, `8,0`, `8:*`; `!sda`: other devices",
    "--host": "in a joined run: is begun on this host, or uses a device of it",
    "--object": "is, or belongs to, an op on this object: `/var/lib/mysql/*`",
    "--latency": "takes that long: `'>5ms'`, `'<100us'`, `1ms..2ms`; a number alone is in us",
    "--slowest": "is one of the N slowest",
    "--limit": "at most N rows",
    "--sort": "the order of the rows",
    "--csv": "CSV, in nanoseconds and bytes",
    "--json": "JSON, in nanoseconds and bytes",
    "--output": "`-o FILE`: the file to write",
}
FILTERS = "--since --until --class --comm --pid --cgroup --device --host --object --latency"
CHOICE = "--slowest --limit --sort"
FORMS = "--csv --json"
EVERYTHING = " ".join(VOCABULARY)


def lacking(lacks: dict[str, str]) -> dict[str, str]:
    """The reason for each option that a command lacks, of its `LACKS`."""
    return {option: reason for options, reason in lacks.items() for option in options.split()}


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """The options that a command's help shows."""
    shown = (action for action in parser._actions if action.help != argparse.SUPPRESS)
    return {option for action in shown for option in action.option_strings}
