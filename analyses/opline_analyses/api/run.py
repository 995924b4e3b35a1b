# SPDX-License-Identifier: MIT
"""A run in Python: its tables, its SQL, its statistics and pictures."""

from __future__ import annotations

import html
import warnings
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from opline.errors import OplineError
from opline.store.schema import BY_NAME, TABLES
from opline.talk import shown
from opline_analyses.api.heatmap import Heatmap, heatmap_of
from opline_analyses.api.options import Option, arguments
from opline_analyses.api.table import Table
from opline_analyses.ops.stages import StageTable, stage_table
from opline_analyses.runs import ledger
from opline_analyses.runs.run import Connection, asked, open_run, readable
from opline_analyses.runs.selection import selection


class LossWarning(UserWarning):
    """Something is missing in the run, so that its figures are doubtful: the same lines that commands begin with."""


class Run:
    """An open run. Use it from one thread. Close it, or use it in a ``with``; at the end of the process it closes."""

    def __init__(self, path: str | Path, model: str | None = None, reader: str | None = None) -> None:
        """As ``opline.open``."""
        with ExitStack() as stack:
            self._run = stack.enter_context(open_run(path, model, reader, interruptible=False))
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
        return ledger.warnings(ledger.entries(self._run))

    # the tables, by their names in docs/tables.md

    @property
    def ops(self) -> Table:
        """One row per op."""
        return self.table("ops")

    @property
    def transitions(self) -> Table:
        """One row per point that an op passed."""
        return self.table("transitions")

    @property
    def stages(self) -> Table:
        """One row per interval of an op's critical path."""
        return self.table("stages")

    @property
    def requests(self) -> Table:
        """One row per block request."""
        return self.table("requests")

    @property
    def bios(self) -> Table:
        """One row per bio."""
        return self.table("bios")

    @property
    def links(self) -> Table:
        """One row per (op, bio)."""
        return self.table("links")

    @property
    def deferred(self) -> Table:
        """One row per (op, bio) where the op's data was written back outside its latency."""
        return self.table("deferred")

    @property
    def batches(self) -> Table:
        """One row per batch or sync."""
        return self.table("batches")

    @property
    def states(self) -> Table:
        """When a thread ran, waited for a CPU or was blocked in the stages."""
        return self.table("states")

    @property
    def members(self) -> Table:
        """One row per (batch, op that joined it)."""
        return self.table("members")

    @property
    def fates(self) -> Table:
        """One row per (event class, fate)."""
        return self.table("fates")

    @property
    def losses(self) -> Table:
        """One row per loss."""
        return self.table("losses")

    @property
    def discarded(self) -> Table:
        """One row per interval with discarded events."""
        return self.table("discarded")

    def table(self, name: str) -> Table:
        """A table by its name. Raises OplineError for one that there is not."""
        if name not in BY_NAME:
            raise OplineError(f"A run has no table {name}. It has: {', '.join(t.name for t in TABLES)}.")
        return Table(self._con, self._guard, f"SELECT * FROM {name}", (), [c.name for c in BY_NAME[name].columns])

    def sql(self, query: str, *parameters: object) -> Table:
        """What DuckDB's SQL gives of the tables: ``run.sql("SELECT class, count(*) FROM ops GROUP BY class")``. One
        SELECT, with ``?`` for parameters. Raises OplineError when it is read.
        """
        inner = query.strip().removesuffix(";")  # in parentheses it can only be one that asks
        return Table(self._con, self._guard, f"SELECT * FROM ({inner}\n)", parameters)

    def stage_table(self, *, tainted: bool = False, **options: Option) -> StageTable:
        """The statistics of `opline stages`: of the ops that its filters choose (``class_="read"``, ``since=5``).
        Raises OplineError where no op counts.
        """
        args = arguments("stages", [str(self.path)], options)
        with readable(self._run):
            return stage_table(self._run, selection(self._run, args), tainted)

    def heatmap(self, **options: Option) -> Heatmap:
        """The heat map of `opline heatmap`, with its options: ``value="size"``, ``log=True``, ``of="ops"``. Raises
        OplineError.
        """
        args = arguments("heatmap", [str(self.path)], options)
        with readable(self._run):
            return heatmap_of(self._run, args)

    def _con(self) -> Connection:
        first = "con" not in vars(self._run)
        con = self._run.con
        if first:
            con.execute("SET python_enable_replacements = false")  # a name in SQL is a table, not our variable
        return con

    def _guard(self) -> AbstractContextManager[None]:
        return asked(self._run)

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


def open(path: str | Path, model: str | None = None, *, reader: str | None = None) -> Run:
    """Opens a run, a recording (whose run is made first), or a trace (with ``model``: a shipped op model's name or a
    TOML file), whose run is temporary. ``reader``: native or bt2. Warns (LossWarning) of what is missing.

    Raises OplineError.
    """
    return Run(path, model, reader)


def correlate(
    trace: str | Path,
    model: str,
    output: str | Path | None = None,
    *,
    reader: str | None = None,
    extents: Sequence[str | Path] = (),
) -> Run:
    """Correlates a trace by an op model into the run ``output`` (without: a temporary one), and opens it. ``extents``:
    files that say where files lie on disk (`--extents`).

    Raises OplineError.
    """
    if output is None and not extents:
        return Run(trace, model, reader)
    if output is None:
        raise OplineError("correlate() with extents needs an output directory.")
    from opline.correlation import correlate as correlate_into
    from opline.model import load_model

    correlate_into(trace, load_model(model), output, reader=reader, extents=[Path(e) for e in extents], progress=False)
    return Run(output)
