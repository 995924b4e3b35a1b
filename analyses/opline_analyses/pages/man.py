# SPDX-License-Identifier: MIT
"""Man pages, in the macros of man(7): opline(1), and opline-COMMAND(1) for each command.

Made from the parsers, like `opline COMMAND --help`. (argparse-manpage 4.8 fills the lines of an epilog; here the
epilogs are tables and examples.)
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

import opline
from opline_analyses.cli import load, parser_of
from opline_analyses.command_map import EPILOG, GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator

_STATUS = """\
0    fine
1    it failed; one line on standard error says what, where and what to do
2    usage
3    more was lost than --max-loss, or a recording is not complete
128 + n    ended by signal n"""


def escaped(text: str) -> str:
    """A text for roff, with every special character escaped."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    plain = plain.replace("^", "\\(ha").replace("~", "\\(ti")
    return re.sub(r"^\.", "\\\\&.", plain, flags=re.MULTILINE)


def _as_it_is(text: str) -> str:
    return f".nf\n{escaped(text)}\n.fi"


def _title(page: str, summary: str) -> Iterator[str]:
    yield f'.TH "{page.upper()}" 1 "" "opline {opline.__version__}" "opline"'
    yield ".ad l"
    yield ".nh"
    yield f".SH NAME\n{page} \\- {escaped(summary)}"


def _name_of(action: argparse.Action) -> str:
    takes = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    word = f" \\fI{escaped(str(takes))}\\fR" if action.nargs != 0 else ""
    if not action.option_strings:
        return f"\\fI{escaped(str(takes))}\\fR"
    return ", ".join(f"\\fB{escaped(option)}\\fR" for option in action.option_strings) + word


def _actions(parser: argparse.ArgumentParser) -> Iterator[str]:
    for group in parser._action_groups:
        shown = [a for a in group._group_actions if a.help != argparse.SUPPRESS]
        if not shown:
            continue
        yield f".SH {escaped((group.title or '').upper())}"
        for action in shown:
            if isinstance(action, argparse._SubParsersAction):
                yield from _sub_commands(action)
                continue
            text = " ".join((parser._get_formatter()._expand_help(action) if action.help else "").split())
            yield f".TP\n{_name_of(action)}\n{escaped(text)}"


def _sub_commands(action: argparse._SubParsersAction[argparse.ArgumentParser]) -> Iterator[str]:
    said = {choice.dest: choice.help or "" for choice in action._choices_actions}
    for name, parser in action.choices.items():
        usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
        yield f".TP\n\\fB{escaped(usage)}\\fR\n{escaped(said.get(name, ''))}"


def page_of(name: str) -> str:
    """The page of a command."""
    command, parser = load(name), parser_of(name)
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    lines = [*_title(f"opline-{name}", command.HELP), f".SH SYNOPSIS\n{escaped(usage)}", *_actions(parser)]
    text, _, examples = command.EXAMPLES.rstrip().partition("examples:\n")
    if text.strip():
        lines.append(f".SH DESCRIPTION\n{_as_it_is(text.rstrip())}")
    lines.append(f".SH EXAMPLES\n{_as_it_is(examples)}")
    lines.append(f".SH EXIT STATUS\n{_as_it_is(_STATUS)}\n.SH SEE ALSO\n\\fBopline\\fR(1)")
    return "\n".join(lines) + "\n"


def overview_page() -> str:
    """The page opline(1)."""
    lines = [*_title("opline", "where every nanosecond of an application operation goes, down to the disk and back")]
    lines.append(".SH SYNOPSIS\n\\fBopline\\fR [\\-\\-version] [\\-\\-help] \\fICOMMAND\\fR ...")
    lines.append(".SH COMMANDS")
    for heading, group in GROUPS:
        lines.append(f".SS {escaped(heading)}")
        lines += [f".TP\n\\fBopline\\-{name}\\fR(1)\n{escaped(text)}" for name, _, text in group]
    lines.append(f".SH DESCRIPTION\n{_as_it_is(EPILOG.rstrip())}\n.SH EXIT STATUS\n{_as_it_is(_STATUS)}")
    return "\n".join(lines) + "\n"


def shown_by_man(page: str) -> bool:
    """Whether `man` is there, and has shown the page."""
    import shutil
    import subprocess
    import tempfile

    if shutil.which("man") is None:
        return False
    with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
        file.write(page)
        file.flush()
        return subprocess.run(["man", "-l", file.name], check=False).returncode == 0


def pages() -> dict[str, str]:
    """All pages by file name."""
    names = [name for _, group in GROUPS for name, _, _ in group]
    return {"opline.1": overview_page(), **{f"opline-{name}.1": page_of(name) for name in names}}
