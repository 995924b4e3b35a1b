# SPDX-License-Identifier: MIT
"""The generated parts of docs/commands.md: the options that several commands share, and the help of each command; and
for docs/internals/design.md why a command lacks an option.
"""

from __future__ import annotations

import argparse
import os
import textwrap
from collections import Counter
from functools import cache

from generate import command_modules
from opline_analyses.cli import parser_of
from opline_analyses.commands.vocabulary import FILTERS, VOCABULARY

ALWAYS = ("-h", "--help", "--threads", "--verbose")  # options of all commands
COMMON = 3  # an argument with the same help in so many commands is described once
SETS = {  # of common options: what a command's list says where it has all of them
    "INPUT": ["--model", "--period", "--reader", "--extents", "--all-programs", "--max-loss"],
    "FILTERS": [
        "--device",
        "--major",
        "--host",
        "--size",
        "--comm",
        "--pid",
        "--tid",
        "--cgroup",
        "--object",
        "--class",
        "--since",
        "--until",
        "--window",
        "--at",
        "--latency",
    ],
    "COUNTED": ["--io", "--of", "--stage", "--from", "--to", "-Q", "--tainted"],
    "FORMS": ["--csv", "--json", "--output", "--safe-cells"],
}
MEANINGS = {
    **VOCABULARY,
    "--at": "the middle of `--window`; alone: ops in flight at T",
    "--size": "bytes: `8k`, `'>64k'`, `4k..64k`",
    "--slowest": "the N slowest, slowest first",
    "--tainted": "count ops that overlap lost events, too",
    "--tid": "is begun or queued by this thread",
}


def name_of(action: argparse.Action) -> str:
    """How the text names an argument: its longest option, or its place."""
    return max(action.option_strings, key=len, default=str(action.metavar))


@cache
def common_arguments() -> dict[tuple[str, str], str]:
    """The arguments that several commands share, by name and help: how to write each."""
    count: Counter[tuple[str, str]] = Counter()
    written: dict[tuple[str, str], str] = {}
    for module in command_modules():
        for action in parser_of(str(module.NAME))._actions:
            if action.help and action.help != argparse.SUPPRESS:
                key = name_of(action), action.help
                count[key] += 1
                choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
                value = (action.metavar or choices) if action.nargs != 0 else ""
                written[key] = f"{', '.join(action.option_strings)} {value}".strip()
    usual: dict[str, str] = {}  # the help that most commands have: another one of that name stays where it is
    for (name, text), _ in count.most_common():
        usual.setdefault(name, text)
    return {
        key: written[key]
        for key, commands in count.items()
        if commands >= COMMON and (key[0] in MEANINGS or usual[key[0]] == key[1])
    }


def listed(options: list[str]) -> str:
    """Common options; of a set most of whose options are there the name, and which are not."""
    words = []
    for name, ones in SETS.items():
        absent = [option for option in ones if option not in options]
        if len(absent) <= len(ones) // 3:
            words.append(name + (f" without {' '.join(absent)}" if absent else ""))
            options = [option for option in options if option not in ones]
    return ", ".join([*words, *options])


def usage_of(parser: argparse.ArgumentParser) -> str:
    """The parser's own usage, or what a command line needs: the text below has the other options."""
    groups = [group for group in parser._mutually_exclusive_groups if group.required]
    grouped = {id(action) for group in groups for action in group._group_actions}
    places = parser._get_positional_actions()
    needed = [a for a in parser._actions if a.required or a in places or id(a) in grouped]
    formatter = parser._get_formatter()
    formatter.add_usage(parser.usage, needed, groups, prefix="")
    words = formatter.format_help().strip()
    return words if parser.usage else words.replace(parser.prog, f"{parser.prog} [options]", 1)


def command_pages() -> None:
    """Usage of every command and the names of its options. The meaning of its own ones is in its help alone."""
    os.environ["COLUMNS"] = "1000"
    for module in command_modules():
        parser = parser_of(str(module.NAME))
        own, common = [], []
        for action in parser._actions:
            if action.option_strings and action.help != argparse.SUPPRESS and (name := name_of(action)) not in ALWAYS:
                if (name, action.help) in common_arguments() or name in MEANINGS:
                    common.append(name)
                else:
                    own.append(next((o for o in action.option_strings if o.startswith("--")), name))
        print(f"## opline {module.NAME}\n\n{parser.description}\n\n    {usage_of(parser)}\n")
        for heading, names in (("Own", " ".join(own)), ("Common", listed(common))):
            if names:
                print(textwrap.fill(f"{heading}: {names}", 120, break_on_hyphens=False) + "\n")


def vocabulary() -> None:
    """The arguments that several commands share."""
    print("| option | meaning |\n|---|---|")
    seen = {"--help"}
    for (name, meaning), written in common_arguments().items():
        if name not in seen:
            print(f"| `{written}` | {MEANINGS.get(name, meaning)} |")
            seen.add(name)
    for name in (name for name in VOCABULARY if name not in seen):
        print(f"| `{name}` | {MEANINGS[name]} |")
    print()
    for name, ones in SETS.items():
        print(f"{name}: {' '.join(f'`{option}`' for option in ones)}\n")


def lacks() -> None:
    """Why a command lacks an option that others have; commands that take no filter at all are left out."""
    print("| command | lacks, because |\n|---|---|")
    for module in command_modules():
        own = {
            options: reason
            for options, reason in getattr(module, "LACKS", {}).items()
            if not set(FILTERS.split()) <= set(options.split())
        }
        if own:
            reasons = "; ".join(
                f"{' '.join(f'`{option}`' for option in options.split())}: {why}" for options, why in own.items()
            )
            print(f"| `{module.NAME}` | {reasons} |")
    print()
