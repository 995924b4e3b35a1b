# SPDX-License-Identifier: MIT
"""A run's tables as DuckDB views. A view is made at the first statement with its table: binding all of a run's Parquet
files takes longer than the questions of most commands.
"""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.paths import stored
from opline.store.schema import BY_NAME, TABLES
from opline.talk import asking, shown
from opline_analyses.runs.database import in_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    import duckdb

    from opline.store.schema import Column
    from opline_analyses.base.literal import LiteralFiles

OF_PROGRAMS = ("ops", "requests", "bios")  # tables with rows of the population and of others
OF_CLUSTERS = ("hops", "clock")  # tables written only by `opline join`
WHOLE = "all_"  # before their names: with the others' rows
_AGAIN = "Correlate its trace again."
MAY_NOT = "Run as the user who recorded it, or as root."


def unreadable(file: Path, error: Exception, words: str) -> str:
    """One line for an unreadable table. ``words``: the error's text, for an error of another kind."""
    if isinstance(error, FileNotFoundError):
        return f"The run {file.parent} has no {file.name}: it is damaged. {_AGAIN}"
    if isinstance(error, PermissionError):
        return f"Cannot read {file}: permission denied. {MAY_NOT}"
    return f"Cannot read {file}: {words}. {_AGAIN}"


def narrow(con: duckdb.DuckDBPyConnection, alone: bool, tables: Sequence[str] = OF_PROGRAMS) -> None:
    """Makes the views with the population's rows, if only these count (``alone``), from the views of all rows."""
    which = " WHERE population" if alone else ""
    for table in tables:
        con.execute(f"CREATE VIEW {table} AS SELECT * FROM {WHOLE}{table}{which}")


class Views:
    """The views of one run. Several connections of one database may share the views, each in a separate thread."""

    def __init__(self, path: Path, manifest: dict[str, Any], files: LiteralFiles, alone: bool) -> None:
        """``manifest``: of a run perhaps written by another opline; empty: written by this opline, with all tables and
        columns. ``alone``: only the population's rows count. Opens the tables' files: the views keep these files. A
        missing or unreadable file is an error of the statement with this table.
        """
        from opline.store.checksums import is_newer

        self._manifest, self._files, self._alone = manifest, files, alone
        self._lock = threading.Lock()
        self._made: set[str] = set()
        self._paths = {spec.name: path / f"{spec.name}.parquet" for spec in TABLES}
        self._paths |= {name: file for name in OF_CLUSTERS if (file := path / f"{name}.parquet").is_file()}
        self._opened: dict[str, str] = {}
        self._faults: dict[str, str] = {}
        for name, file in self._paths.items():
            try:
                self._opened[name] = files.open(file)
            except OSError as error:
                if not (isinstance(error, FileNotFoundError) and is_newer(manifest, name)):
                    self._faults[name] = unreadable(file, error, error.strerror or str(error))

    def make(self, con: duckdb.DuckDBPyConnection, table: str) -> None:
        """The view of this table, with the view of all rows, if ``con`` has none yet. Raises OplineError."""
        with self._lock:
            if table in self._made or table not in self._paths:
                return
            self._make(con, table, f"{WHOLE}{table}" if table in OF_PROGRAMS else table)
            if table in OF_PROGRAMS:
                narrow(con, self._alone, (table,))
            self._made.add(table)

    def _make(self, con: duckdb.DuckDBPyConnection, table: str, view: str) -> None:
        if table in self._faults:
            raise OplineError(self._faults[table])
        if table not in self._opened:  # a table unknown to the run's opline
            con.execute(f"CREATE VIEW {view} AS SELECT {_typed(table)} WHERE false")
            return
        import duckdb  # work without a table does not wait for the import

        file = self._opened[table]
        new = ""
        try:
            if self._manifest and table in BY_NAME:  # columns unknown to an older opline are absent
                there = {row[0] for row in con.execute(f"DESCRIBE SELECT * FROM read_parquet('{file}')").fetchall()}
                missing = [c for c in BY_NAME[table].columns if c.name not in there]
                unknown = sorted(there - {c.name for c in BY_NAME[table].columns})
                if missing and unknown:  # no opline has taken a column away: a name is damaged
                    raise OplineError(
                        f"Cannot read {self._paths[table]}: it has a column {shown(unknown[0])}, and no "
                        f"{missing[0].name}. {_AGAIN}"
                    )
                new = "".join(f", {_absent(c)}" for c in missing)
            con.execute(f"CREATE VIEW {view} AS SELECT *{new} FROM read_parquet('{file}')")
        except duckdb.Error as error:
            raise OplineError(unreadable(self._paths[table], error, self._files.said(error).splitlines()[0])) from error

    def make_all(self, con: duckdb.DuckDBPyConnection) -> None:
        """The views of all readable tables, for a user's own SQL, which may list the tables. A statement with an
        unreadable table reports the fault.
        """
        for table in self._paths:
            with suppress(OplineError):
                self.make(con, table)


_SQL_TYPES = {
    "i64": "BIGINT", "u64": "UBIGINT", "i32": "INTEGER", "u32": "UINTEGER", "bool": "BOOLEAN", "dict": "VARCHAR",
    "text": "VARCHAR",
}  # fmt: skip


def _typed(table: str) -> str:
    """The columns of a table, each absent."""
    return ", ".join(map(_absent, BY_NAME[table].columns))


def _absent(column: Column) -> str:
    return f'NULL::{_SQL_TYPES[column.type]} AS "{column.name}"'


class Connection:
    """A DuckDB connection that makes a table's view, and asks ``check``, before the first statement with the table. All
    other methods are DuckDB's.
    """

    def __init__(
        self, con: duckdb.DuckDBPyConnection, check: Callable[[str], None], views: Views | None = None
    ) -> None:
        """``views``: None where all views are there."""
        self._con = con
        self._check_table = check
        self._views = views

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> duckdb.DuckDBPyConnection:
        """As DuckDB's. Raises OplineError for a damaged table."""
        self._prepare(sql)
        with asking():
            return self._con.execute(stored(sql), [stored(p) if isinstance(p, str) else p for p in parameters])

    def sql(self, sql: str, parameters: Sequence[object] = ()) -> duckdb.DuckDBPyRelation:
        """As DuckDB's. Raises OplineError for a damaged table."""
        self._prepare(sql)
        given = [stored(p) if isinstance(p, str) else p for p in parameters]
        return self._con.sql(stored(sql), params=given) if given else self._con.sql(stored(sql))

    def another(self) -> Connection:
        """A connection of the same database, for another thread."""
        return Connection(self._con.cursor(), self._check_table, self._views)

    def make_views(self) -> None:
        """See Views.make_all."""
        if self._views is not None:
            self._views.make_all(self._con)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)

    def _prepare(self, sql: str) -> None:
        words = {word.lower().removeprefix(WHOLE) for word in re.findall(r"\w+", sql)}
        if self._views is not None:
            for table in sorted({*BY_NAME, *OF_CLUSTERS} & words):
                self._views.make(self._con, table)
        for table in sorted(BY_NAME.keys() & words):
            self._check_table(table)


def connect(views: Views, check: Callable[[str], None]) -> Connection:
    """A new database of these views."""
    return Connection(in_memory(), check, views)
