# SPDX-License-Identifier: MIT
"""What the commands share: the RUN argument, opening it with its ledger on stderr, and where the output goes."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opline.correlation import gaps_in, recording_of
from opline.errors import OplineError, UsageError
from opline.gaps import closing_line
from opline.paths import is_packed, plain
from opline.population import population_in
from opline.store.run import BLOCKS_MODEL, BareTrace, locate
from opline.store.underway import has_run
from opline.talk import talk
from opline_analyses.base.files import complete_file, output_path, standard_output
from opline_analyses.base.result_table import rendered
from opline_analyses.base.screen import PAPER, page, screen_of
from opline_analyses.commands.arguments import add_period, not_negative, positive, share_of_all
from opline_analyses.runs import ledger
from opline_analyses.runs.not_yours import line_of, names_in
from opline_analyses.runs.notices import gaps_line, tell_before, tell_gaps, tell_not_yours

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any, BinaryIO

    from opline.paths import StrPath
    from opline_analyses.base.result_table import Part, ResultTable
    from opline_analyses.runs.run import Run


def add_run(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """RUN, and what add_model adds."""
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?" if optional else None,
        type=input_path,
        help="a run, a recording, or a trace (with --model); babeltrace's, perf's, ftrace's text; blktrace's; -: stdin",
    )
    add_model(parser)


def input_path(text: str) -> str:
    """An argument that is a run or a trace: - is standard input, and a device's name its files of blktrace."""
    if text == "-":
        return "/dev/stdin"
    if not os.path.exists(text) or (".blktrace." in text and os.path.isfile(text) and not os.path.getsize(text)):
        from opline.readers.formats.blktrace import first_of

        return first_of(text) or text
    return text


def add_every(parser: argparse.ArgumentParser) -> None:
    """--every: the client's schedule, where it does not say it itself."""
    parser.add_argument(
        "--every",
        metavar="T",
        type=_every,
        help="each thread of the client was to begin an op every T, as 1ms (default: what the client says, if it does)",
    )


def _every(text: str) -> int:
    from opline_analyses.base.quantities import duration_ns

    found = duration_ns(text, "--every")
    if found <= 0:
        raise UsageError(f"--every {text}: must be more than 0.")
    return found


def add_model(parser: argparse.ArgumentParser) -> None:
    """--model, --period, --reader, --extents, --all-programs and --max-loss."""
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--model", metavar="M", help="a trace's op model: a shipped one's name, or a TOML file")
    add_period(model)
    parser.add_argument(
        "--reader", choices=("auto", "native", "bt2"), help="what reads a trace (default: $OPLINE_READER, else auto)"
    )
    parser.add_argument(
        "--extents",
        metavar="FILE",
        type=file_path,
        action="append",
        default=[],
        help="where files lie on disk: extents.json, or the text of `filefrag -v -b512`; may be given again",
    )
    parser.add_argument(
        "--all-programs",
        action="store_true",
        help="count every program of the machine, not the recorded command's processes alone",
    )
    parser.add_argument(
        "--max-loss", metavar="N", type=not_negative, help="exit status 3 above N losses (data_loss and error)"
    )


def file_path(text: str) -> Path:
    """An argument that is a path."""
    from pathlib import Path  # 5 ms to import: only where there is one

    return Path(text)


def add_output(parser: argparse.ArgumentParser) -> None:
    """-o FILE."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=output_path, help="write to FILE instead of standard output"
    )


def refuse_other(path: StrPath) -> None:
    """Raises UsageError for an input that is neither a run nor a trace but another tool's histograms or latencies."""
    if not os.path.isdir(path):
        from opline_analyses.counts.inputs import refuse

        refuse(path)


def bare_trace(args: argparse.Namespace) -> BareTrace | None:
    """The trace that RUN means, where no run is kept of it; a recording gets its run first. Raises OplineError."""
    path = plain(args.run)
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: a NUL
        raise UsageError(f"{path} does not exist.") from error
    if is_packed(path):
        return None
    refuse_other(path)
    if args.model is None and args.reader is None and not args.extents and has_run(path):
        return None
    found = locate(path, args.model, reader=args.reader, extents=args.extents)
    return found if isinstance(found, BareTrace) else None


def tell_not_yours_of(trace: StrPath, summary: Mapping[str, Any], all_programs: bool) -> None:
    """What other programs did, of a trace that no run is made of; ``summary`` has the core's ``population``."""
    found = None if all_programs else population_in(summary)
    tell_not_yours(None if found is None else line_of(found, names_in(recording_of(trace))))


def tell_gaps_of_trace(trace: StrPath) -> None:
    """What the recorder knew to be missing, of a trace that no run is made of."""
    recording = recording_of(trace)
    tell_gaps(closing_line(gaps_in(trace, recording), recording))


def check_losses(args: argparse.Namespace, found: list[ledger.Entry]) -> None:
    """Raises OplineError with exit status 3 if more was lost than --max-loss. For the end, when all is written."""
    lost = ledger.bad_count(found)
    if args.max_loss is not None and lost > args.max_loss:
        raise OplineError(f"{lost} lost, more than --max-loss {args.max_loss}.", exit_code=3)


@contextmanager
def opened(
    args: argparse.Namespace,
    losses: bool = True,
    path: str | Path | None = None,
    tables: Sequence[str] | None = None,
    blocks: bool = False,
    whole: bool = False,
    whose: str = "",
) -> Iterator[Run]:
    """The run that RUN (or ``path``) names; what was lost in it goes to stderr first. A trace's temporary run has rows
    of these ``tables`` only. What is about block requests (``blocks``, or such tables alone) needs no op model. With
    ``whole`` all programs count in any case: of what is about devices. ``whose``: what begins the lines about losses,
    where a command reads several runs.

    Raises OplineError with exit status 3 at the end, when all is written, if that is more than --max-loss.
    """
    from opline_analyses.runs.run import open_run

    refuse_other(path or args.run)
    blocks = blocks or (tables is not None and set(tables) <= {"requests", "bios"})
    otherwise = BLOCKS_MODEL if blocks else None
    with open_run(
        path or args.run,
        args.model,
        args.reader,
        args.extents,
        tables,
        otherwise=otherwise,
        all_programs=whole or args.all_programs,
    ) as run:
        if losses:
            tell_before(run, whose)
        yield run
        tell_gaps(gaps_line(run), whose)
        if args.max_loss is not None:
            check_losses(args, ledger.entries(run))


@contextmanager
def output(path: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears when it is complete."""
    with standard_output() if path is None else complete_file(path) as out:
        yield out


def add_table(parser: argparse.ArgumentParser) -> None:
    """--sort, --limit and --least."""
    parser.add_argument("--limit", dest="most_rows", metavar="N", type=positive, help="the first N rows")
    parser.add_argument(
        "--sort", dest="column", metavar="COLUMN", help="order of the rows: by a column of --csv, the largest first"
    )
    parser.add_argument(
        "--least", metavar="PERCENT", type=share_of_all, help="the text without rows that have a smaller share"
    )


def write(args: argparse.Namespace, found: ResultTable, form: str | None = None) -> None:
    """A result in the form that is asked for (`add_form`, or ``form``), where it is to go (`add_output`)."""
    form = form or ("csv" if getattr(args, "csv", False) else "json" if getattr(args, "json", False) else "text")
    found = found.sorted(getattr(args, "column", None)).first(getattr(args, "most_rows", None))
    if form == "csv":
        with csv_output(args) as out:
            out.writelines(piece.encode() for piece in found.csv())
    elif form == "json":
        with output(args.output) as out:
            out.writelines(piece.encode() for piece in found.json())
    else:
        if (least := getattr(args, "least", None)) is not None:
            found = found.without_small(least)
        write_text(args.output, found.parts())
    for note in found.notes:
        talk(note)


def write_text(path: Path | None, parts: Iterable[Part]) -> None:
    """What people read: on a terminal as wide as that, with weight, and a page at a time where it is long."""
    screen = PAPER if path is not None else screen_of(sys.stdout)
    lines = page((f"{line}\n".encode() for line in rendered(parts, screen)), screen)
    with output(path) as out:
        out.writelines(lines)


def add_safe_cells(parser: argparse.ArgumentParser) -> None:
    """--safe-cells."""
    parser.add_argument(
        "--safe-cells",
        action="store_true",
        help="CSV for a spreadsheet: texts like a formula (= + - @) begin with an apostrophe; else CSV is exact",
    )


def add_form(parser: argparse.ArgumentParser, csv: str = "CSV, nanoseconds", json: str = "JSON, nanoseconds") -> None:
    """--csv or --json with their help, and where the output goes."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help=csv)
    form.add_argument("--json", action="store_true", help=json)
    add_output(parser)
    add_safe_cells(parser)


def add_intervals(parser: argparse.ArgumentParser, what: str) -> None:
    """INTERVAL, also as an option, and COUNT."""
    parser.add_argument("interval", metavar="INTERVAL", nargs="?", help=what)
    parser.add_argument("count", metavar="COUNT", nargs="?", type=positive, help="stop after so many")
    parser.add_argument("--interval", dest="every", metavar="T", help="the same as INTERVAL")


def interval_ns(args: argparse.Namespace) -> int | None:
    """What add_intervals was given, None if nothing. Raises UsageError."""
    text = args.interval if args.interval is not None else args.every
    if text is None:
        return None
    from opline_analyses.base.quantities import duration_ns

    found = duration_ns(text, "INTERVAL")
    if found <= 0:
        raise UsageError(f"INTERVAL {text}: must be more than 0.")
    return found


@contextmanager
def csv_output(args: argparse.Namespace) -> Iterator[BinaryIO]:
    """Where CSV goes, as --safe-cells wants it."""
    if not args.safe_cells:
        with output(args.output) as out:
            yield out
        return
    import tempfile

    from opline_analyses.base.safe_cells import write_safe_cells

    with tempfile.TemporaryFile() as plain:
        yield plain
        plain.seek(0)
        with output(args.output) as out:
            write_safe_cells(plain, out)
