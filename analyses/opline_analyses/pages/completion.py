# SPDX-License-Identifier: MIT
"""Completion for bash and zsh, by shtab: a file that the shell reads once. (argcomplete starts Python at each Tab.)"""

from __future__ import annotations

import argparse
from typing import Any

import shtab

from opline_analyses.cli import GROUPS, load

_FILES = {"RUN", "RUN2", "TRACE", "FILE", "A", "B", "MODEL", "COMMAND", "CSV"}
_FOLDERS = {"DIR"}


def whole_parser() -> argparse.ArgumentParser:
    """All commands in one parser, which the program itself never makes."""
    root = argparse.ArgumentParser(prog="opline")
    root.add_argument("-V", "--version", action="version", version="")
    commands = root.add_subparsers(dest="the_command", required=True)
    for _, group in GROUPS:
        for name, _, text in group:
            parser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
            load(name).prepare_parser(parser)
            parser.add_argument("--threads", metavar="N", help="decode in a thread of its own: 1 or 2")
            parser.add_argument("--verbose", action="store_true", help="say what reads the trace, and why")
            parser.usage = None
            _with_files(parser)
    return root


def _with_files(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        of_shtab: Any = action  # which looks for this attribute
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _with_files(inner)
        elif action.choices is None and action.metavar in _FILES:
            of_shtab.complete = shtab.FILE
        elif action.metavar in _FOLDERS:
            of_shtab.complete = shtab.DIRECTORY


def script(shell: str) -> str:
    """The completion for bash or zsh."""
    return str(shtab.complete(whole_parser(), shell=shell))
