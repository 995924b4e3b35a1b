# SPDX-License-Identifier: MIT
"""A run as a file for others: CSV, a page, a picture, a packed run, other programs' formats. Plain functions of a run.

``filters`` choose the ops (runs/selection.py). A function gives the content, or writes to ``out``: whose place and
name the caller decides.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opline.errors import UsageError
from opline_analyses.base.extras import with_extras
from opline_analyses.client.defaults import default_selection
from opline_analyses.runs.selection import OpFilters, Selection, selection, without_incomplete

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

    from matplotlib.figure import Figure

    from opline import _core
    from opline.reading import Unreadable
    from opline.store.run import BareTrace
    from opline_analyses.compare.compare import Comparison
    from opline_analyses.compare.figures import Figures
    from opline_analyses.export.formats import Exported
    from opline_analyses.pictures.plot_runs import Series
    from opline_analyses.report.data import PageData
    from opline_analyses.runs.run import Run

ALL = OpFilters()
PICTURES = (".png", ".svg", ".pdf")


class Rows(NamedTuple):
    """Rows of CSV, which wait for where to go. ``left_out``: incomplete ops without a row; ``summary`` and ``losses``:
    the core's, of a trace alone.
    """

    left_out: int
    rows: _core.OpCsv
    stages: bool
    summary: Mapping[str, Any]
    losses: Mapping[str, int]

    def write(self, out: BinaryIO) -> None:
        """Writes the header and all rows; once. Raises OplineError."""
        from opline_analyses.ops.op_csv import write

        write(self.rows, out, stages=self.stages)


@contextmanager
def csv(
    run: Run,
    filters: OpFilters = ALL,
    *,
    incomplete: bool = False,
    stages: bool = False,
    client_log: Path | None = None,
) -> Iterator[Rows]:
    """A row per op, a column per stage; with ``stages`` a row per interval. ``incomplete``: rows of incomplete ops,
    too; ``client_log``: the client's own begin and end of each op (default: that in the recording). Raises OplineError.
    """
    from opline_analyses.client.client_files import find_log
    from opline_analyses.ops.op_csv import collector, feed

    which, left_out = selection(run, filters), 0
    if not incomplete:
        which, left_out = without_incomplete(run, which)
    log = client_log or next(filter(None, map(find_log, run.places())), None)
    joins = log is not None and not stages
    if log is not None and joins:
        from opline_analyses.client.client_log import join_client_log

        join_client_log(run, log)
    with collector(stages) as rows:
        feed(run, which, rows, stages=stages, client=joins)
        yield Rows(left_out, rows, stages, {}, {})


@contextmanager
def csv_of_trace(
    trace: BareTrace,
    *,
    incomplete: bool = False,
    stages: bool = False,
    reader: str | None = None,
    extents: Sequence[Path] = (),
    all_programs: bool = False,
) -> Iterator[Rows]:
    """The same of all ops of a trace, without a run: the core makes the rows while it reads. If the recorded programs
    did nothing, the rows are of all programs. Raises OplineError.
    """
    from opline.correlation import feed_csv
    from opline.population import population_in
    from opline.reading import ReadAgainError
    from opline_analyses.ops.op_csv import collector

    unreadable: Unreadable = ()
    while True:
        with collector(stages) as rows:
            try:
                summary, losses = feed_csv(
                    trace.path, trace.model, rows, incomplete=incomplete, reader=reader, extents=extents,
                    all_programs=all_programs, unreadable=unreadable,
                )  # fmt: skip
            except ReadAgainError as found:
                unreadable = found.unreadable
                continue
            population = None if all_programs else population_in(summary)
            if population is not None and not population.counts_alone:
                all_programs, unreadable = True, ()
                continue
            of = population.incomplete_ops if population is not None else summary["ops"]["incomplete"]
            yield Rows(0 if incomplete else of, rows, stages, summary, losses)
            return


class Part(NamedTuple):
    """A run of a page: its data; and what is compared, where the page has two runs."""

    page: PageData
    figures: Figures | None


def part(run: Run, filters: OpFilters = ALL, *, name: str | None = None, tainted: bool = False, of: int = 1) -> Part:
    """A run for a page ``of`` so many runs. ``name``: what the run is called. Raises OplineError if no op counts."""
    from opline.talk import shown
    from opline_analyses.compare.figures import figures_of
    from opline_analyses.report.data import BLOB_LIMIT, page_data

    name = name or run.given.resolve().name
    which = default_selection(run, filters)
    page = page_data(run, which, tainted, BLOB_LIMIT // of, from_first_op=of > 1)
    page.head["name"] = shown(name)
    if of == 1:
        return Part(page, None)
    return Part(page, figures_of(run, which, name, page.head["bad_losses"], tainted, False))


def report(parts: Sequence[Part], *, title: str) -> bytes:
    """The page of a run, or of two runs side by side, with the verdicts of `opline compare`: an HTML document."""
    from opline_analyses.base.result_table import rendered
    from opline_analyses.compare.compare import compare
    from opline_analyses.compare.text import text_lines
    from opline_analyses.report.document import document

    sides = [one.figures for one in parts if one.figures is not None]
    text = "\n".join(rendered(text_lines(compare(sides[:1], sides[1:]), False))) if sides else None
    return document(title, [one.page for one in parts], text)


def plot(run: Run, filters: OpFilters = ALL, *, title: str, tainted: bool = False) -> Figure:
    """Every op over time, and the stages below. Raises OplineError if no op counts."""
    with with_extras():
        from opline_analyses.pictures.plot import figure

    return figure(run, default_selection(run, filters), title, tainted)


def plot_op(run: Run, op_id: int, *, title: str) -> Figure:
    """One op: threads, stages and block requests. Raises UsageError."""
    from opline_analyses.ops.oplist import read_ops
    from opline_analyses.ops.thread_names import names_of_threads

    with with_extras():
        from opline_analyses.pictures.plot_op import figure

    op = next(read_ops(run, Selection("o.op_id = ?", (op_id,))), None)
    if op is None:
        raise UsageError(f"--op {op_id}: the run has no such op.")
    if not op.complete:
        raise UsageError(f"--op {op_id}: the op is incomplete, it has no stages: see `opline ops --op`.")
    tids = sorted({stage.tid for stage in op.stages if stage.tid is not None})
    return figure(op, names_of_threads(run, tids), title)


def plotted(run: Run, filters: OpFilters = ALL, *, name: str, tainted: bool = False) -> Series:
    """What ``plot_distributions`` draws of a run. Raises OplineError if no op counts."""
    with with_extras():
        from opline_analyses.pictures.plot_runs import series_of

    return series_of(run, default_selection(run, filters), name, tainted)


def plot_distributions(runs: Sequence[Series], *, title: str, stages: bool = False) -> Figure:
    """How the latencies, or each stage's times, are distributed: runs on the same axes."""
    from opline_analyses.pictures import plot_runs

    return (plot_runs.stages if stages else plot_runs.cdf)(runs, title)


def plot_comparison(found: Comparison) -> Figure:
    """The latencies of both sides' runs, and the most changed stages. ``found``: of ``ops.compare``."""
    with with_extras():
        from opline_analyses.compare.plot import figure

    return figure(found)


def check_picture(path: Path) -> None:
    """Raises UsageError for a name that no format of pictures has."""
    if path.suffix.lower() not in PICTURES:
        raise UsageError(f"-o {path}: the name must end in {', '.join(PICTURES)}.")


def save(figure: Figure, path: Path, *, dpi: int = 110) -> None:
    """Writes a picture in the format that the name ends in: .png, .svg or .pdf. Raises OplineError."""
    from opline_analyses.pictures.plot import save as save_figure

    save_figure(figure, path, dpi)


def pack(run: Run, out: BinaryIO, *, anonymous: bool = False) -> list[str]:
    """Writes the run as one file; gives the names of the parts. ``anonymous``: with numbers in place of names. Raises
    OplineError.
    """
    from opline.store.packed import pack as pack_folder
    from opline.store.schema import TABLES

    for table in TABLES:
        run.check(table.name)
    if not anonymous:
        return pack_folder(run.path, out)
    if run.is_cluster:
        raise UsageError(f"{run.given} is a cluster: --anonymous takes the run of one host (runs/host=NAME).")
    from opline.scratch import scratch
    from opline_analyses.export.anonymous import write_anonymous

    with scratch("anonymous") as folder:
        write_anonymous(run, Path(folder))
        return pack_folder(Path(folder), out, anonymous=True)


def export(
    run: Run,
    filters: OpFilters = ALL,
    *,
    to: str,
    out: BinaryIO | None = None,
    folder: Path | None = None,
    send: str | None = None,
    slow: tuple[str, str | None] | None = None,
) -> Exported:
    """The ops in the format ``to`` (export/formats.py): to ``out``; for ctf, into the empty ``folder``; for otlp, to
    the collector at the address ``send``. ``slow``: the slow ops (slowest, latency) beside typical ones, in the formats
    that can have both. Raises OplineError.
    """
    from opline_analyses.export.formats import written
    from opline_analyses.why.sets import rule_of

    more = () if slow is None else (rule_of(*slow),)
    return written(run, selection(run, filters), to, out, folder, send, more)


def check_format(to: str) -> None:
    """Raises OplineError where the package is missing that writes the format ``to``: before a run is opened."""
    from opline_analyses.export.formats import writer

    writer(to)
