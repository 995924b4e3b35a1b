# SPDX-License-Identifier: MIT
"""The tables of a run in Python, by their names in docs/tables.md, and its SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.store.schema import BY_NAME, TABLES
from opline_analyses.api.table import Table
from opline_analyses.runs.functions import make_functions
from opline_analyses.runs.run import asked

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from opline_analyses.runs import run as opened
    from opline_analyses.runs.views import Connection


class Tables:
    """What of a run is a table."""

    path: Path  # as it was given
    _run: opened.Run

    def _con(self) -> Connection:
        first = "con" not in vars(self._run)
        con = self._run.con
        if first:
            con.execute("SET python_enable_replacements = false")  # a name in SQL is a table, not our variable
            con.make_views()
            make_functions(self._run)
        return con

    def _guard(self) -> AbstractContextManager[None]:
        return asked(self._run)

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
    def waits(self) -> Table:
        """What the threads of the stages waited for."""
        return self.table("waits")

    @property
    def states(self) -> Table:
        """When a thread ran, waited for a CPU or was blocked in the stages."""
        return self.table("states")

    @property
    def members(self) -> Table:
        """One row per (batch, op that joined it)."""
        return self.table("members")

    @property
    def messages(self) -> Table:
        """One row per message that a host sent or received."""
        return self.table("messages")

    @property
    def tcp(self) -> Table:
        """One row per call that sent or received in a TCP stream (`opline record --tcp`)."""
        return self.table("tcp")

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
