# SPDX-License-Identifier: MIT
"""Opens a command's input: a run, a recording or a trace. Gives its tables as DuckDB views, and its manifest.

Every analysis takes a `Run`; only this file knows the form of a run on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

from opline.errors import OplineError, UsageError
from opline.paths import is_packed
from opline.population import population_in
from opline.shapes import read_json
from opline.store.manifest import AGAIN, MANIFEST
from opline.store.underway import has_run
from opline.talk import explain
from opline_analyses.base.literal import LiteralFiles
from opline_analyses.runs.cluster import is_cluster
from opline_analyses.runs.views import Connection, Views, connect, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    import duckdb

    from opline.population import Population


class Run:
    """An open run: its directory, its manifest, and a DuckDB connection with a view per table.

    ``given``: the user's path: a run, a recording or a trace. ``fresh``: made by this process from ``given``.
    ``grows``: more rows will come. ``all_programs``: other programs' ops count, too.

    The views `ops`, `requests` and `bios` have only the population's rows, if there is a population
    (docs/internals/design.md, "The population"); `all_ops`, `all_requests` and `all_bios` have all rows, for questions
    about others as well.
    """

    grows = False
    all_programs = False

    def __init__(
        self,
        path: Path,
        manifest: dict[str, Any],
        given: Path,
        stack: ExitStack | None = None,
        interruptible: bool = True,
    ) -> None:
        """``stack``: closes the connection in the end; until then Ctrl-C ends a query if ``interruptible`` (uses the
        process's wake-up descriptor of signals).
        """
        self.path = path
        self.manifest = manifest
        self.given = given
        self.fresh = path != given
        self._stack = stack
        self._interruptible = interruptible
        self.files = LiteralFiles()  # the paths known to DuckDB
        self._seen: set[str] = set()

    @cached_property
    def con(self) -> Connection:
        """Connected at the first question: importing DuckDB and connecting take 0.1 s. Raises OplineError."""
        views = Views(self.path, {} if self.fresh else self.manifest, self.files, self.alone)
        con = connect(views, self.check)
        if self._stack is not None:
            self._stack.callback(self.files.close)
            self._stack.callback(con.close)
            if self._interruptible:
                self._stack.enter_context(_interruptible(con))
        return con

    def beside(self) -> Run:
        """The same run on a separate connection, for another thread: without temporary tables. Call while no query runs
        on this connection.
        """
        other = Run(self.path, self.manifest, self.given)
        other.fresh, other.files, other._seen = self.fresh, self.files, self._seen
        other.all_programs = self.all_programs
        other.__dict__["con"] = self.con.another()  # the property's own result
        return other

    def check(self, table: str) -> None:
        """Checks, before the first reading, that the table's file is unchanged (opline.store.checksums): reads the
        whole file once, 0.04 s per 100 MB. Raises OplineError.
        """
        if self.fresh or table in self._seen:
            return
        from opline.store.checksums import fault_of, noted

        file = self.path / f"{table}.parquet"
        written = noted(self.manifest, table)
        try:
            fault = fault_of(file, *written) if written else None
        except OSError as error:
            raise OplineError(unreadable(file, error, error.strerror or str(error))) from error
        if fault:
            raise OplineError(
                f"{file} is damaged: {fault}. `opline losses {self.path} --verify` says where; "
                "correlate its trace again."
            )
        self._seen.add(table)

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self.con.execute(sql, list(parameters)).fetchall()

    def row(self, sql: str, parameters: Sequence[object] = ()) -> tuple[Any, ...]:
        """The row of a query with exactly one row."""
        (row,) = self.rows(sql, parameters)
        return row

    def core(self, key: str) -> Any:
        """A part of the core's summary in the manifest (hops, classes, ...); None if missing."""
        summary = self.manifest.get("core")
        return summary.get(key) if isinstance(summary, dict) else None

    @property
    def population(self) -> Population | None:
        """The trace's share of the recorded processes and of others; None if the recording does not tell."""
        return population_in(self.manifest.get("core"))

    @property
    def alone(self) -> bool:
        """Whether the population's ops and requests alone count."""
        found = None if self.all_programs else self.population
        return found is not None and found.counts_alone

    @property
    def is_recorded(self) -> bool:
        """`opline record` has made the trace, and has reported losses."""
        return bool(self.manifest.get("recording"))

    @property
    def is_cluster(self) -> bool:
        """Whether the run has several hosts on one clock (`opline join`)."""
        return is_cluster(self.path)

    def hosts(self) -> list[str]:
        """The hosts whose threads or devices have stages; none in a run of one host."""
        if not self.is_cluster:
            return []
        return [host for (host,) in self.rows("SELECT DISTINCT host FROM stages WHERE host IS NOT NULL ORDER BY host")]

    def start_ns(self) -> int:
        """The origin of all times of the run: the first event. (In an old run without this time: the first op.)"""
        first = self.core("first_ns")
        return self.first_op_ns() if first is None else int(first)

    def first_op_ns(self) -> int:
        """The begin of the run's first op, 0 without ops."""
        (first,) = self.row("SELECT min(begin_ns) FROM ops")
        return int(first or 0)

    def device_names(self) -> dict[int, str]:
        """Names of block devices by kernel-internal number, from the trace's state dump and the recording."""
        names = {int(dev): str(name) for dev, name in (self.core("devices") or {}).items() if dev.isdecimal()}
        for device in self.devices():
            dev, host = int(device["dev"]), device.get("host")
            if host is not None and dev in names:  # from the trace's state dump, without a host
                names[dev] = f"{host}:{names[dev]}"
            else:
                names.setdefault(dev, str(device["name"]))
        return names

    def devices(self) -> Sequence[Mapping[str, Any]]:
        """The recording's facts about each block device: name, dev, parent, start_sector, size_bytes and more; in a
        joined run also the host.
        """
        found: Sequence[Mapping[str, Any]] = self.manifest.get("devices", [])
        found = found or (self.manifest.get("recording") or {}).get("devices", [])
        return found

    def places(self) -> list[Path]:
        """Folders that may have the recorded command's report: the given path, the run, the recording."""
        recorded = Path(self.manifest["trace"]).parent if self.manifest.get("recording") else self.path
        return list(dict.fromkeys((self.given, self.path, recorded)))


def open_tables(
    path: Path,
    given: Path | None = None,
    stack: ExitStack | None = None,
    interruptible: bool = True,
    all_programs: bool = False,
) -> Run:
    """Opens a directory with manifest.json and the tables; ``given``: the user's path, if the run was just made from
    this path; ``stack``, ``interruptible`` and ``all_programs``: see Run.

    Raises OplineError with one clear line.
    """
    manifest = read_json(path / "manifest.json", MANIFEST, AGAIN)
    run = Run(path, manifest, given or path, stack, interruptible)
    run.all_programs = all_programs
    return run


def _of_a_reader(error: Exception) -> bool:
    """An error of DuckDB or pyarrow; neither is imported for this test."""
    import sys

    duckdb, arrow = sys.modules.get("duckdb"), sys.modules.get("pyarrow")
    if duckdb is not None and isinstance(error, duckdb.Error):
        return True
    return arrow is not None and isinstance(error, arrow.ArrowException)


@contextmanager
def _interruptible(con: Connection) -> Iterator[None]:
    """Lets Ctrl-C end a running query: Python sees a signal only when DuckDB returns, so a thread interrupts DuckDB.
    DuckDB's error of either kind becomes a KeyboardInterrupt here.
    """
    import signal
    import socket
    import threading

    from opline_analyses.base.interrupts import ENDING, installed, stopping

    if installed():
        with stopping(con.interrupt):
            yield
        return
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    interrupted = threading.Event()

    def watch() -> None:
        while number := ours.recv(1):
            if number[0] in ENDING:
                interrupted.set()
                con.interrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except Exception:
        theirs.close()
        watcher.join()  # has read all received signals
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
    interruptible: bool = True,
    otherwise: str | None = None,
    all_programs: bool = False,
) -> Iterator[Run]:
    """Opens a run; correlates first for a recording or a trace (into a temporary run with only the rows of ``tables``).
    Closes the run, and removes a temporary run, at the end. ``interruptible``, ``all_programs``: see Run.
    ``otherwise``: the model of a trace without a named or known model.
    """
    given = Path(path)
    if not given.exists():
        raise UsageError(f"{given} does not exist.")
    with ExitStack() as stack:
        found = given
        if is_packed(given):
            from opline_analyses.runs.packed import folder_of

            found = stack.enter_context(folder_of(given, model, extents))
        elif model is not None or reader is not None or extents or not has_run(given):
            # A finished run needs neither the native core nor babeltrace2.
            from opline.store.run import open_or_correlate

            made = open_or_correlate(given, model, reader=reader, extents=extents, otherwise=otherwise, tables=tables)
            found = stack.enter_context(made).path
        run = open_tables(found, None if found == given else given, stack, interruptible, all_programs)
        if is_packed(given):
            from opline_analyses.runs.packed import forget_trace

            forget_trace(run)
        elif found == given:
            read_by, why = run.manifest.get("reader"), run.manifest.get("reader_reason")
            explain(f"{given}: a run; its trace was read by the reader {read_by}: {why}")
        with readable(run):
            yield run


@contextmanager
def readable(run: Run) -> Iterator[None]:
    """An error of DuckDB or pyarrow about a run's tables becomes an OplineError of one line."""
    try:
        yield
    except Exception as error:
        if not _of_a_reader(error):
            raise
        why = " ".join(run.files.said(error).split())
        raise OplineError(f"Cannot read the tables of {run.path}: {why}. Correlate its trace again.") from error


@contextmanager
def asked(run: Run) -> Iterator[None]:
    """An error of DuckDB about a user's SQL becomes an OplineError of one line."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise OplineError(f"SQL: {' '.join(run.files.said(error).split())}") from error
