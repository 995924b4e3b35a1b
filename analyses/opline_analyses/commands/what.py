# SPDX-License-Identifier: MIT
"""`opline what FILE...`: what an input is, what is in it, which commands take it, and what is missing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from opline.talk import shown
from opline_analyses.api.what import what
from opline_analyses.base.result_table import json_text
from opline_analyses.base.text import count_of, duration
from opline_analyses.commands.common import add_output, input_path, output
from opline_analyses.commands.vocabulary import CHOICE, FILTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "what"
HELP = "what a file is, what is in it, which commands take it"
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    f"{FILTERS} {CHOICE}": "it says what a whole file is",
    "--csv": "an answer of few lines, of several kinds",
}
EXAMPLES = """\
FILE is any input of a command: a run, a recording, a trace, or the output of
another tool (docs/coming-from.md). opline reads FILE once. `has` lists the
contents, `missing` absent facts and the figures without these facts, `try`
commands for FILE.

examples:
  opline what trace.txt
  opline what run1 mail.txt --json
  blkparse -i sda | opline what -
"""
_SHOWN = 4  # names of a list


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("files", metavar="FILE", nargs="+", type=input_path, help="any input; -: standard input")
    parser.add_argument("--model", metavar="M", help="a trace's op model: a shipped one's name, or a TOML file")
    parser.add_argument("--json", action="store_true", help="JSON, an object for each file, nanoseconds")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Says what each file is; the exit status is 1 if one of them is nothing that opline knows."""
    found = [what(path, args.model) for path in args.files]
    with output(args.output) as out:
        if args.json:
            out.write(json_text(found).encode())
        else:
            for document in found:
                out.write("".join(f"{shown(line)}\n" for line in _lines(document)).encode())
    return 1 if any(document["is"] is None for document in found) else 0


def _lines(document: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    has = document["has"]
    name = document["file"]
    if refused := document.get("refused"):
        yield refused if name in refused else f"{name}: {refused}"
        return
    yield f"{name}: {document['is'] or 'nothing that opline knows'}"
    said = [count_of(has[key], key.removesuffix("s")) for key in has if isinstance(has[key], int) and key[-3:] != "_ns"]
    said += [f"{key.removesuffix('_ns')} {duration(has[key])}" for key in has if key[-3:] == "_ns" and has[key]]
    if said:
        yield f"  has       {', '.join(said)}"
    names = {"event_names": "events", "groups": "groups", "devices": "devices", "programs": "programs"}
    for key, label in names.items():
        listed = [name for name in has.get(key) or () if name]
        if listed:
            more = f", {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
            yield f"  {label:9} {', '.join(listed[:_SHOWN])}{more}"
    if model := document.get("model"):
        yield f"  model     {model}"
    if document["is"] and "events" in has:
        lost = ", ".join(f"{name} {count}" for name, count in document["losses"].items())
        yield f"  losses    {lost or 'none'}"
    for missing in document["missing"]:
        yield f"  missing   {missing}"
    for line in document["try"]:
        yield f"  try       {line}"
