# SPDX-License-Identifier: MIT
"""Opens what a command is given: a run, a recording or a trace. Gives its tables as DuckDB views, and its manifest.

Every analysis takes a `Run`; this is the only file that knows how a run is found on disk.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

from opline.errors import OplineError, UsageError
from opline.talk import explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import duckdb


class Run:
    """An open run: its directory, its manifest, and a DuckDB connection with a view per table.

    ``given``: what the user named: the run, the recording or the trace. ``fresh``: this process has made it of that.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], given: Path, stack: ExitStack | None = None) -> None:
        """``stack``: closes the connection in the end, and until then Ctrl-C ends a query."""
        self.path = path
        self.manifest = manifest
        self.given = given
        self.fresh = path != given
        self._stack = stack

    @cached_property
    def con(self) -> duckdb.DuckDBPyConnection:
        """Connected at the first question: importing DuckDB and connecting take 0.2 s. Raises OplineError."""
        con = _connect(self.path, self.fresh)
        if self._stack is not None:
            self._stack.callback(con.close)
            self._stack.enter_context(_interruptible(con))
        return con

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self.con.execute(sql, list(parameters)).fetchall()

    def row(self, sql: str, parameters: Sequence[object] = ()) -> tuple[Any, ...]:
        """The one row of a query that has exactly one."""
        (row,) = self.rows(sql, parameters)
        return row

    def core(self, key: str) -> Any:
        """A part of the core's summary in the manifest (hops, classes, ...); None when it is not there."""
        summary = self.manifest.get("core")
        return summary.get(key) if isinstance(summary, dict) else None

    def device_names(self) -> dict[int, str]:
        """Names of block devices by kernel-internal number, from the trace's state dump and the recording."""
        names = {int(dev): str(name) for dev, name in (self.core("devices") or {}).items()}
        for device in (self.manifest.get("recording") or {}).get("devices", []):
            names.setdefault(int(device["dev"]), str(device["name"]))
        return names

    def places(self) -> list[Path]:
        """Folders in which the recorded command may have left its report: what was given, the run, the recording."""
        recorded = Path(self.manifest["trace"]).parent if self.manifest.get("recording") else self.path
        return list(dict.fromkeys((self.given, self.path, recorded)))


def _connect(path: Path, ours: bool) -> duckdb.DuckDBPyConnection:
    """``ours``: this opline has written the tables, so they have all columns."""
    import duckdb  # what needs no table does not wait for it

    from opline.store.schema import TABLES

    con = duckdb.connect(":memory:")
    for spec in TABLES:
        file = path / f"{spec.name}.parquet"
        if not file.is_file():
            raise OplineError(f"The run {path} has no {file.name}: it is damaged. Correlate its trace again.")
        quoted = str(file).replace("'", "''")
        try:
            new = ""
            if not ours:  # what a run of an older opline does not know yet is absent
                there = {row[0] for row in con.execute(f"DESCRIBE SELECT * FROM read_parquet('{quoted}')").fetchall()}
                new = "".join(f', NULL AS "{c.name}"' for c in spec.columns if c.name not in there)
            con.execute(f"CREATE VIEW {spec.name} AS SELECT *{new} FROM read_parquet('{quoted}')")
        except duckdb.Error as error:
            first = str(error).splitlines()[0]
            raise OplineError(f"Cannot read {file}: {first}. Correlate its trace again.") from error
    return con


def open_tables(path: Path, given: Path | None = None, stack: ExitStack | None = None) -> Run:
    """Opens a directory that has manifest.json and the tables; ``given``: what the user named, if it was made of that
    just now; ``stack``: see Run.

    Raises OplineError with one clear line.
    """
    try:
        manifest = json.loads((path / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        raise OplineError(f"Cannot read {path / 'manifest.json'}: {error}") from error
    return Run(path, manifest, given or path, stack)


@contextmanager
def _interruptible(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Lets Ctrl-C end a running query: Python sees a signal only when DuckDB returns, so a thread tells DuckDB to. Its
    complaint about that (of one kind or another, as it noticed first) is a KeyboardInterrupt here.
    """
    import signal
    import socket
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    interrupted = threading.Event()

    def watch() -> None:
        while number := ours.recv(1):
            if number[0] == signal.SIGINT:
                interrupted.set()
                con.interrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except Exception:
        theirs.close()
        watcher.join()  # it has read all signals that came
        if interrupted.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.set_wakeup_fd(before)
        theirs.close()
        watcher.join()
        ours.close()


@contextmanager
def open_run(
    path: str | Path,
    model: str | None = None,
    reader: str | None = None,
    extents: Sequence[Path] = (),
    tables: Sequence[str] | None = None,
) -> Iterator[Run]:
    """Opens a run; correlates first where a recording or a trace is given (into a temporary run with rows of these
    ``tables`` only). Closes, and forgets a temporary run, at the end.
    """
    given = Path(path)
    if not given.exists():
        raise UsageError(f"{given} does not exist.")
    with ExitStack() as stack:
        path_of_tables = given
        if model is not None or reader is not None or extents or not (given / "manifest.json").is_file():
            # A finished run needs neither the native core nor babeltrace2.
            from opline.store.run import open_or_correlate

            path_of_tables = stack.enter_context(
                open_or_correlate(given, model=model, reader=reader, extents=extents, tables=tables)
            ).path
        run = open_tables(path_of_tables, None if path_of_tables == given else given, stack)
        if path_of_tables == given:
            read_by, why = run.manifest.get("reader"), run.manifest.get("reader_reason")
            explain(f"{given}: a run; its trace was read by the reader {read_by}: {why}")
        yield run
