# SPDX-License-Identifier: MIT
"""Completion for bash and zsh, by shtab: a file read once by the shell. (argcomplete starts Python at each Tab.) For
models, classes, devices and runs the shell asks the program (values.py).
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError, UsageError
from opline_analyses.cli import load
from opline_analyses.command_map import GROUPS

if TYPE_CHECKING:
    from collections.abc import Sequence

SHELLS = ("bash", "zsh")
_FILES = {"TRACE", "FILE", "COMMAND", "CSV"}
_FOLDERS = {"DIR"}
_RUNS = {"RUN", "RUN2", "A", "B", "CLUSTER"}
#: Completion of the value of an option, by the option; of arguments by their metavar.
_VALUES = {"--model": "models", "--class": "classes", "--device": "devices"}
_BASH = """
# $1: what is asked for; $2: the word so far. The run is the first argument that is there.
_opline_asked() {
  local word run=
  for word in "${COMP_WORDS[@]:2}"; do
    if [ -z "$run" ] && [ "$word" != "$2" ] && [ -e "$word" ]; then run=$word; fi
  done
  local IFS=$'\\n'
  compgen -W "$("${COMP_WORDS[0]}" completion "$1" $run 2>/dev/null)" -- "$2"
}
_opline_models() { _opline_asked models "$1"; compgen -f -X '!*.toml' -- "$1"; }
_opline_classes() { _opline_asked classes "$1"; }
_opline_devices() { _opline_asked devices "$1"; }
# Folders of runs, recordings and traces; any file where there is none.
_opline_runs() {
  local path found=
  while IFS= read -r path; do
    if [ -e "$path/recording.json" ] || [ -e "$path/manifest.json" ] || [ -e "$path/metadata" ]; then
      printf '%s\\n' "$path"; found=1
    fi
  done < <(compgen -d -- "$1")
  [ -n "$found" ] || compgen -f -- "$1"
}
"""
_ZSH = """
_opline_asked() {
  local word run values
  for word in "${words[@]:2}"; do [[ -z "$run" && -e "$word" ]] && run=$word; done
  values=(${(f)"$(opline completion $1 $run 2>/dev/null)"})
  compadd -a values
}
_opline_models() { _opline_asked models; _files -g '*.toml' }
_opline_classes() { _opline_asked classes }
_opline_devices() { _opline_asked devices }
_opline_runs() { _files }
"""


def whole_parser() -> argparse.ArgumentParser:
    """All commands in one parser; the program itself never makes this parser."""
    root = argparse.ArgumentParser(prog="opline")
    root.add_argument("-V", "--version", action="version", version="")
    commands = root.add_subparsers(dest="the_command", required=True)
    for _, group in GROUPS:
        for name, _, text in group:
            parser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
            load(name).prepare_parser(parser)
            parser.add_argument("--threads", metavar="N", help="threads that read a trace and write tables")
            parser.add_argument("--verbose", action="store_true", help="say what reads the trace, and why")
            parser.usage = None
            _with_values(parser)
    return root


def _with_values(parser: argparse.ArgumentParser) -> None:
    import shtab

    for action in parser._actions:
        of_shtab: Any = action  # shtab looks for this attribute
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _with_values(inner)
        elif values := next((_VALUES[option] for option in action.option_strings if option in _VALUES), None):
            of_shtab.complete = _asking(values)
        elif action.choices is None and action.metavar in _RUNS:
            of_shtab.complete = _asking("runs")
        elif action.choices is None and action.metavar in _FILES:
            of_shtab.complete = shtab.FILE
        elif action.metavar == "MODEL":
            of_shtab.complete = _asking("models")
        elif action.metavar in _FOLDERS:
            of_shtab.complete = shtab.DIRECTORY


def _asking(values: str) -> dict[str, str]:
    return dict.fromkeys(SHELLS, f"_opline_{values}")


def script(shell: str) -> str:
    """The completion for bash or zsh."""
    import shtab

    return str(shtab.complete(whole_parser(), shell=shell, preamble=_BASH if shell == "bash" else _ZSH))


def write(argv: Sequence[str]) -> int:
    """`opline completion bash`: the script; `opline completion models`: values. Raises UsageError."""
    from opline_analyses.pages.values import VALUES

    what, run = (*argv, "", "")[:2]
    if what in VALUES:
        sys.stdout.write("".join(f"{value}\n" for value in VALUES[what](run)))
        return 0
    if what not in SHELLS:
        raise UsageError("opline completion bash, or zsh: `source <(opline completion bash)`.")
    try:
        sys.stdout.write(script(what))
    except ModuleNotFoundError:
        raise OplineError("the script takes the Python package shtab: pip install shtab.") from None
    return 0
