# SPDX-License-Identifier: MIT
"""The command line: `opline COMMAND ...`.

Commands are imported on use. Standard output is data, standard error is talk. Exit status: 0 fine, 1 failed, 2 usage, 3
losses above --max-loss, 128 + n ended by signal n (Ctrl-C: 130). Only `main` catches OplineError.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from opline import mapped, memory
from opline.errors import OplineError
from opline.readers.threads import number_of_threads
from opline.talk import explaining, progressing, talk
from opline_analyses.base import interrupts
from opline_analyses.command_map import everything, modules, overview, questions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence
    from typing import NoReturn, Protocol

    class Command(Protocol):
        """The parts of a file in `commands`."""

        NAME: str
        HELP: str
        EXAMPLES: str

        def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
            """Adds the command's arguments."""
            ...

        def run(self, args: argparse.Namespace) -> int:
            """Does the work; gives the exit status."""
            ...

        # and it may have LACKS (vocabulary.py), INTERMIXED, arguments(), chosen(), route(), and:
        # PROGRESS: it goes through a run, and a line on standard error says how far it is (opline.talk.passing)
        # AS_IT_GOES: it writes rows as it goes, so a terminal that gets them needs no such line
        # DRAWS: its -o is a picture, or a directory; that of other commands is text


_READ, _WRITTEN = ("run", "run2", "trace"), ("output", "per_op", "save", "junit", "plot")  # arguments of commands


def load(name: str) -> Command:
    """The module of a command."""
    command: Command = importlib.import_module(f"opline_analyses.commands.{modules()[name]}")
    return command


def parser_of(name: str) -> argparse.ArgumentParser:
    """A command's parser."""
    return parser_for(load(name))


def parser_for(command: Command) -> argparse.ArgumentParser:
    """The parser of a loaded command."""
    import argparse  # not at the top: argparse's objects come after program() has delayed the garbage collector

    from opline_analyses.pages.help_format import HelpFormat

    class OneLine(argparse.ArgumentParser):
        """Says what is wrong in one line, and what may be meant, instead of the usage of all options."""

        def error(self, message: str) -> NoReturn:
            self.exit(2, f"{self.prog}: {_wrong_use(message, self._option_string_actions)} `{self.prog} --help`\n")

    parser = OneLine(
        prog=f"opline {command.NAME}",
        description=command.HELP[0].upper() + command.HELP[1:] + ".",
        epilog=getattr(command, "EXAMPLES", None),
        # add_argument() tries each metavar with the formatter: without a width, the formatter asks for the terminal's
        # width by shutil
        formatter_class=partial(HelpFormat, width=80),
        allow_abbrev=False,
    )
    command.prepare_parser(parser)
    parser.add_argument("--threads", metavar="N", help="threads that read a trace and write tables (default: by CPUs)")
    parser.add_argument("--verbose", action="store_true", help="say on stderr what reads the trace, and why")
    parser.formatter_class = HelpFormat
    return parser


def _wrong_use(message: str, options: Iterable[str]) -> str:
    """argparse's sentence; for an unknown option with the probable option."""
    import re
    from difflib import get_close_matches

    message = re.sub(r"invalid (?:int|float) value: '(.*)'", r"\1 is not a number", message)
    strange, _, words = message.partition("unrecognized arguments: ")
    unknown = next((word.partition("=")[0] for word in words.split() if word.startswith("-")), None)
    if strange or unknown is None:
        return f"{message.rstrip('.')}."
    near = get_close_matches(unknown, [*options], 1)
    return f"there is no option {unknown}.{f' Did you mean {near[0]}?' if near else ''}"


def version() -> str:
    """The program's version, its readers, and the versions of babeltrace2 and LTTng that it finds."""
    from opline_analyses.base.versions import version_lines

    return "\n".join(version_lines()) + "\n"


def _nowhere(_argv: Sequence[str]) -> None:
    """The route of a command that stands for others."""


def _help(name: str) -> int:
    """`opline help NAME`: the manual of a command on a terminal, the help elsewhere; `all`: the list of commands."""
    if name not in modules():
        if name not in ("", "all"):
            return _no_command(name)
        sys.stdout.write(everything() if name == "all" else overview())
        return 0
    if sys.stdout.isatty():
        from opline_analyses.pages.man import page_of, shown_by_man

        if shown_by_man(page_of(name)):
            return 0
    parser_of(name).print_help()
    return 0


def _no_command(name: str) -> int:
    """Reports an unknown command, with the probable command."""
    from difflib import get_close_matches

    near = get_close_matches(name, modules(), 3)
    near.sort(key=lambda known: known[:1] != name[:1])  # opz: ops, not top
    hint = f" Did you mean {near[0]}?" if near else " `opline help all` lists the commands."
    talk(f"no command {name}.{hint}")
    return 2


def _dispatch(argv: Sequence[str]) -> int:
    if argv and argv[0] == "--verbose":  # before the command as well as after
        argv = [argv[1], argv[0], *argv[2:]] if len(argv) > 1 else []
    if not argv:
        sys.stderr.write(questions())
        return 2
    name = argv[0]
    if name in ("-h", "--help", "help"):
        return _help(argv[1] if name == "help" and len(argv) > 1 else "")
    if name in ("-V", "--version"):
        sys.stdout.write(version())
        return 0
    if name == "completion":
        from opline_analyses.pages.completion import write

        return write(argv[1:])
    if name not in modules():
        return _no_command(name)
    command = load(name)
    if (there := getattr(command, "route", _nowhere)(argv[1:])) is not None:  # a word for several commands
        name, words = there
        argv = [name, *words]
        command = load(name)
    rewritten = getattr(command, "arguments", list)(argv[1:])  # arguments beyond argparse's abilities
    if chosen := getattr(command, "chosen", None):  # a command of two words
        command, rewritten = chosen(rewritten)
        parser = parser_for(command)
    else:
        parser = parser_of(name)
    mixed = getattr(command, "INTERMIXED", False)  # further positionals may stand behind options
    args = (parser.parse_intermixed_args if mixed else parser.parse_args)(rewritten)
    _check_files(args)
    from opline_analyses.base.files import escaped_on_terminals, refuse_picture

    if not getattr(command, "DRAWS", False):
        refuse_picture(getattr(args, "output", None), name)
    is_csv = name == "csv" or getattr(args, "csv", False) is True
    rows = getattr(command, "AS_IT_GOES", False) and sys.stdout.isatty()
    telling = getattr(command, "PROGRESS", False) and not rows
    if interrupts.installed():
        mapped.outlive()
    with explaining(args.verbose), _threads(args.threads), escaped_on_terminals(is_csv), progressing(telling, name):
        return command.run(args)


def _check_files(args: argparse.Namespace) -> None:
    """Protects the inputs from being overwritten. Raises UsageError."""
    given = vars(args)
    written = [given[name] for name in _WRITTEN if given.get(name) is not None]
    if written:
        from pathlib import Path

        from opline_analyses.base.files import refuse_inside

        sides = map(Path, (*(given.get("runs") or ()), *(given.get("b") or ())))
        folders = [run for run in sides if run.is_dir()]  # a baseline may be written anew
        refuse_inside([*filter(None, (given.get(name) for name in _READ)), *folders], written)


@contextmanager
def _threads(number: str | None) -> Iterator[None]:
    """The option is the environment variable, for as long as the command runs."""
    if number is not None:
        number_of_threads(number, "--threads")
    before = os.environ.get("OPLINE_THREADS")
    if number is not None:
        os.environ["OPLINE_THREADS"] = number
    try:
        yield
    finally:
        if number is not None:
            os.environ.pop("OPLINE_THREADS")
            if before is not None:
                os.environ["OPLINE_THREADS"] = before


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; gives the exit status."""
    try:
        try:
            memory.spare()
            status = _dispatch(sys.argv[1:] if argv is None else argv)
            sys.stdout.flush()
            mapped.check()
        except BaseException:
            if interrupts.taken() is not None:  # whatever other code has made of the signal
                raise KeyboardInterrupt from None
            raise
    except Exception as error:
        if not memory.ran_out(error):
            return _told(mapped.error() or error)  # whatever the command made of the zeros in a file
        talk("out of memory. Take a part of the run (--since, --until, --slowest), or allow more (`ulimit -v`).")
        return 1
    except KeyboardInterrupt:
        interrupts.disarm()
        return 128 + (interrupts.taken() or signal.SIGINT)
    except SystemExit as stop:  # argparse: 0 after --help, 2 for usage
        return stop.code if isinstance(stop.code, int) else 2
    return status


def _told(failure: Exception) -> int:
    """Reports a failure; returns the exit status."""
    try:
        raise failure
    except OplineError as error:
        talk(*error.lines)
        return error.exit_code
    except BrokenPipeError:
        # The reader (head, less) has gone. Python would complain again at the flush on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a file without permission to read
        what = error.filename
        if what is None and not _is_somewhere():
            talk("The current directory does not exist any more: change to another one.")
            return 1
        if what is None:
            what = "Cannot write the output"
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the rest cannot be written either
        talk(f"{what}: {error.strerror or error}")
        return 1
    except Exception as error:  # an error of opline: still one line, and a way to see more
        from opline_analyses.base.extras import missing_extra

        if (line := missing_extra(error)) is not None:
            talk(line)
            return 1
        if os.environ.get("OPLINE_DEBUG"):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        talk(f"internal error: {what}. Please report it; OPLINE_DEBUG=1 shows where it is.")
        return 1


def _is_somewhere() -> bool:
    """Whether the current directory is still there."""
    from pathlib import Path

    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _closed_are_opened() -> None:
    """Opens closed standard streams: no later file gets their numbers, reading finds nothing, writing to standard
    output fails (exit status 1), and text on standard error goes nowhere.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, mode), number)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def program() -> NoReturn:
    """``main`` for a separate process: ends the process without Python's tidying up, as that frees piece by piece."""
    _closed_are_opened()
    interrupts.install()
    gc.set_threshold(100_000)  # the start makes thousands of objects, none of them garbage
    status = main()
    interrupts.disarm()
    if (ending := interrupts.taken()) is not None:
        status = 128 + ending
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # main() has reported everything; None if closed
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    program()
