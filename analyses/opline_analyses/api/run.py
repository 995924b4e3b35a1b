# SPDX-License-Identifier: MIT
"""A run in Python: its tables, its SQL, its statistics and pictures."""

from __future__ import annotations

import html
import warnings
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError
from opline.store.schema import TABLES
from opline.talk import shown
from opline_analyses.api import block, ops
from opline_analyses.api.heatmap import Heatmap, heatmap
from opline_analyses.api.run_files import Files
from opline_analyses.base.given import split
from opline_analyses.base.quantities import duration_ns
from opline_analyses.block.hist_result import HistOptions
from opline_analyses.block.io_filter import IoFilters
from opline_analyses.pictures.heatmap_of import HeatmapOptions
from opline_analyses.runs import ledger
from opline_analyses.runs.run import open_run, readable
from opline_analyses.runs.selection import OpFilters

if TYPE_CHECKING:
    from opline_analyses.base.given import Option
    from opline_analyses.base.result_table import ResultTable
    from opline_analyses.compare.figures import Figures


def _interval(given: str | float | None) -> int | None:
    """Raises UsageError."""
    return None if given is None else duration_ns(str(given), "interval")


class LossWarning(UserWarning):
    """Something is missing in the run, so that its figures are doubtful: the same lines that commands begin with."""


class Run(Files):
    """An open run. Use it from one thread. Close it, or use it in a ``with``; at the end of the process it closes."""

    def __init__(
        self, path: str | Path, model: str | None = None, reader: str | None = None, all_programs: bool = False
    ) -> None:
        """As ``opline.open``."""
        with ExitStack() as stack:
            opened = open_run(path, model, reader, interruptible=False, all_programs=all_programs)
            self._run = stack.enter_context(opened)
            self.path = self._run.given
            self.manifest: dict[str, Any] = self._run.manifest
            for line in self.missing():
                warnings.warn(shown(line), LossWarning, stacklevel=3)
            self._close = weakref.finalize(self, stack.pop_all().close)  # at the process's end at the latest

    def close(self) -> None:
        """Closes the run; a temporary one (of a trace) is removed. The second time nothing happens."""
        self._close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def missing(self) -> list[str]:
        """What was lost and makes figures doubtful, one line each, worst first. Empty: nothing that is known of."""
        return ledger.warnings(ledger.entries(self._run), self._run.core("ops"))

    # the analyses, with the options of the commands; each gives a ResultTable. Raise OplineError.

    def stage_table(self, *, tainted: bool = False, **filters: Option) -> ResultTable:
        """`opline stages`: of the ops that its filters choose (``class_="read"``, ``since=5``)."""
        with readable(self._run):
            return ops.stages(self._run, OpFilters.from_options(filters), tainted=tainted)

    def state_table(self, *, tainted: bool = False, **filters: Option) -> ResultTable:
        """`opline stages --states`."""
        with readable(self._run):
            return ops.states(self._run, OpFilters.from_options(filters), tainted=tainted)

    def why(
        self, *, slowest: str | float = "1%", latency: str | None = None, tainted: bool = False, **filters: Option
    ) -> ResultTable:
        """`opline why --all`: the ``slowest`` ops, or those of such a ``latency`` (">5ms"), against typical ones."""
        with readable(self._run):
            return ops.why(
                self._run, OpFilters.from_options(filters), slowest=str(slowest), latency=latency, tainted=tainted,
                everything=True,
            )  # fmt: skip

    def coverage(
        self, *, client: str | Path | None = None, client_log: str | Path | None = None, **filters: Option
    ) -> ResultTable:
        """`opline coverage`: how much of the client's mean is accounted for."""
        with readable(self._run):
            report, log = (None if file is None else Path(file) for file in (client, client_log))
            return ops.coverage(self._run, OpFilters.from_options(filters), client=report, client_log=log)

    def graph(self, *, tainted: bool = False, **filters: Option) -> ResultTable:
        """`opline graph`: a row per edge; ``found`` is the networkx.DiGraph."""
        with readable(self._run):
            return ops.graph(self._run, OpFilters.from_options(filters), tainted=tainted)

    def compare(self, *others: Run, limit: float = 0.05, tainted: bool = False, **filters: Option) -> ResultTable:
        """`opline compare`: this run (A) with other runs (B); a change below ``limit`` does not matter."""
        chosen = OpFilters.from_options(filters)
        a, b = ([one._figures(chosen, tainted) for one in side] for side in ((self,), others))
        return ops.compare(a, b, limit=limit, everything=True)

    def _figures(self, filters: OpFilters, tainted: bool) -> Figures:
        with readable(self._run):
            return ops.figures(self._run, filters, tainted=tainted)

    def interference(self, *, op: int | None = None, slowest: int | None = None, **filters: Option) -> ResultTable:
        """`opline interference`: who an op's block requests waited for."""
        with readable(self._run):
            return ops.interference(self._run, IoFilters.from_options(filters), op=op, slowest=slowest)

    def hist(self, *, interval: str | float | None = None, count: int | None = None, **options: Option) -> ResultTable:
        """`opline hist`: distributions of latencies (``per="device"``), for each ``interval`` (0.1 seconds, "10ms")."""
        filters, wanted = split(options, IoFilters, HistOptions)
        with readable(self._run):
            return block.hist(self._run, filters, wanted, interval_ns=_interval(interval), count=count)

    def iostat(
        self,
        *,
        interval: str | float | None = None,
        count: int | None = None,
        by: str | None = "device",
        **filters: Option,
    ) -> ResultTable:
        """`opline iostat`: rates, latencies, queue and utilisation of each device, or of what ``by`` names ("cgroup",
        "thread", ...; None: of all together).
        """
        with readable(self._run):
            return block.iostat(
                self._run, IoFilters.from_options(filters), interval_ns=_interval(interval), count=count, style="linux",
                by=by,
            )  # fmt: skip

    def top(
        self,
        *,
        by: str = "thread",
        interval: str | float | None = None,
        count: int | None = None,
        sort: str = "ios",
        limit: int | None = None,
        **filters: Option,
    ) -> ResultTable:
        """`opline top RUN`: who did the I/Os; ``by``: "object", "process", "cgroup" and others."""
        with readable(self._run):
            return block.top(
                self._run, IoFilters.from_options(filters), by=by, interval_ns=_interval(interval), count=count,
                sort=sort, limit=limit,
            )  # fmt: skip

    def request_table(
        self, *, owned: bool = False, order: str = "time", limit: int | None = None, **filters: Option
    ) -> ResultTable:
        """`opline requests`: a row per block request."""
        with readable(self._run):
            return block.requests(self._run, IoFilters.from_options(filters), owned=owned, order=order, limit=limit)

    def outliers(
        self,
        *,
        threshold: str | float | None = None,
        interval: str | float | None = None,
        limit: int | None = 100,
        sort: str = "latency",
        **filters: Option,
    ) -> ResultTable:
        """`opline outliers`: I/Os that take longer than ``threshold`` ("5ms", or so many us; None: 10 times the median,
        or p99.9 where no I/O does).
        """
        least = None if threshold is None else duration_ns(str(threshold), "threshold", "us")
        with readable(self._run):
            return block.outliers(
                self._run, IoFilters.from_options(filters), threshold_ns=least, interval_ns=_interval(interval),
                limit=limit, order=sort,
            )  # fmt: skip

    def burst(self, *, interval: str | float | None = None, by: str = "bytes", **filters: Option) -> ResultTable:
        """`opline burst`: when far more happens than on average; ``by``: bytes, ios or waited."""
        with readable(self._run):
            return block.burst(self._run, IoFilters.from_options(filters), interval_ns=_interval(interval), by=by)

    def io_table(self, *, sort: str = "time", limit: int | None = None, **filters: Option) -> ResultTable:
        """`opline log`: a row for every I/O; ``sort``: time, start, latency or size."""
        with readable(self._run):
            return block.ios(self._run, IoFilters.from_options(filters), sort=sort, limit=limit)

    def btt(self, **filters: Option) -> ResultTable:
        """`opline btt`: the block layer's intervals per device."""
        with readable(self._run):
            return block.btt(self._run, IoFilters.from_options(filters))

    def heatmap(self, **options: Option) -> Heatmap:
        """`opline heatmap`: ``value="size"``, ``log=False``, ``of="ops"``."""
        filters, wanted = split(options, IoFilters, HeatmapOptions)
        with readable(self._run):
            (found,) = heatmap(self._run, filters, wanted.replaced(source=(str(self.path),), per_device=False)).values()
            return found

    def __repr__(self) -> str:
        model = (self.manifest.get("model") or {}).get("name", "?")
        missing = len(self.missing())
        lost = f", {missing} kinds of losses: see missing()" if missing else ""
        return f"<opline.Run {shown(str(self.path))}: {len(self.ops)} ops, model {shown(str(model))}{lost}>"

    def _repr_html_(self) -> str:
        """What it is, what is missing, and how many rows each table has, for a notebook."""
        missing = "".join(f"<li>{html.escape(shown(line))}</li>" for line in self.missing())
        rows = "".join(
            f"<tr><td>{spec.name}</td><td>{len(self.table(spec.name)):,}</td><td>{html.escape(spec.row)}</td></tr>"
            for spec in TABLES
        )
        head = "<tr><th>table</th><th>rows</th><th>one per</th></tr>"
        table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
        return f"<p>{html.escape(repr(self))}</p><ul>{missing}</ul>{table}"


def open(path: str | Path, model: str | None = None, *, reader: str | None = None, all_programs: bool = False) -> Run:
    """Opens a run, a recording (whose run is made first), or a trace (with ``model``: a shipped op model's name or a
    TOML file), whose run is temporary. ``reader``: native or bt2. Warns (LossWarning) of what is missing.
    ``all_programs``: the tables ``ops``, ``requests`` and ``bios`` have other programs' rows, too, not those of the
    recorded command's processes alone.

    Raises OplineError.
    """
    return Run(path, model, reader, all_programs)


def correlate(
    trace: str | Path,
    model: str,
    output: str | Path | None = None,
    *,
    reader: str | None = None,
    extents: Sequence[str | Path] = (),
    all_programs: bool = False,
) -> Run:
    """Correlates a trace by an op model into the run ``output`` (without: a temporary one), and opens it. ``extents``:
    files that say where files lie on disk (`--extents`). ``all_programs``: as of ``open``.

    Raises OplineError.
    """
    if output is None and not extents:
        return Run(trace, model, reader, all_programs)
    if output is None:
        raise OplineError("correlate() with extents needs an output directory.")
    from opline.correlation import correlate as correlate_into
    from opline.model import load_model

    correlate_into(trace, load_model(model), output, reader=reader, extents=[Path(e) for e in extents], progress=False)
    return Run(output, all_programs=all_programs)
