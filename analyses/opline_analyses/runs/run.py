# SPDX-License-Identifier: MIT
"""Opens what a command is given: a run, a recording or a trace. Gives its tables as DuckDB views, and its manifest.

Every analysis takes a `Run`; this is the only file that knows how a run is found on disk.
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

    ``given``: what the user named: the run, the recording or the trace. ``fresh``: this process has made it of that.
    ``grows``: its rows are not all there yet. ``all_programs``: the user wants other programs' ops to count, too.

    The views `ops`, `requests` and `bios` have the population's rows alone, where there is one
    (docs/internals/design.md, "The population"); `all_ops`, `all_requests` and `all_bios` have all rows, for what is
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
        """``stack``: closes the connection in the end, and until then Ctrl-C ends a query if ``interruptible``, which
        takes the process's wake-up descriptor of signals.
        """
        self.path = path
        self.manifest = manifest
        self.given = given
        self.fresh = path != given
        self._stack = stack
        self._interruptible = interruptible
        self.files = LiteralFiles()  # as DuckDB knows them
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
        """The same run on a connection of its own, for another thread: without temporary tables. Call it while nobody
        asks on this one.
        """
        other = Run(self.path, self.manifest, self.given)
        other.fresh, other.files, other._seen = self.fresh, self.files, self._seen
        other.all_programs = self.all_programs
        other.__dict__["con"] = self.con.another()  # what the property would have made
        return other

    def check(self, table: str) -> None:
        """Whether the table's file is what was written (opline.store.checksums), before it is read: reads all of it
        once, 0.04 s per 100 MB. Raises OplineError.
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
        """The one row of a query that has exactly one."""
        (row,) = self.rows(sql, parameters)
        return row

    def core(self, key: str) -> Any:
        """A part of the core's summary in the manifest (hops, classes, ...); None when it is not there."""
        summary = self.manifest.get("core")
        return summary.get(key) if isinstance(summary, dict) else None

    @property
    def population(self) -> Population | None:
        """What the trace has of the recorded processes and of others; None where the recording does not tell."""
        return population_in(self.manifest.get("core"))

    @property
    def alone(self) -> bool:
        """Whether the population's ops and requests alone count."""
        found = None if self.all_programs else self.population
        return found is not None and found.counts_alone

    @property
    def is_recorded(self) -> bool:
        """`opline record` has made the trace, and has said what is lost."""
        return bool(self.manifest.get("recording"))

    @property
    def is_cluster(self) -> bool:
        """Whether the run is of several hosts on one clock (`opline join`)."""
        return is_cluster(self.path)

    def hosts(self) -> list[str]:
        """The hosts whose threads or devices have stages; none in a run of one host."""
        if not self.is_cluster:
            return []
        return [host for (host,) in self.rows("SELECT DISTINCT host FROM stages WHERE host IS NOT NULL ORDER BY host")]

    def start_ns(self) -> int:
        """What all times of the run count from: its first event. (Of an old run that does not say it: its first op.)"""
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
            if host is not None and dev in names:  # by the trace's state dump, which names no host
                names[dev] = f"{host}:{names[dev]}"
            else:
                names.setdefault(dev, str(device["name"]))
        return names

    def devices(self) -> Sequence[Mapping[str, Any]]:
        """What the recording says of each block device: name, dev, parent, start_sector, size_bytes and more; of a
        joined run also its host.
        """
        found: Sequence[Mapping[str, Any]] = self.manifest.get("devices", [])
        found = found or (self.manifest.get("recording") or {}).get("devices", [])
        return found

    def places(self) -> list[Path]:
        """Folders in which the recorded command may have left its report: what was given, the run, the recording."""
        recorded = Path(self.manifest["trace"]).parent if self.manifest.get("recording") else self.path
        return list(dict.fromkeys((self.given, self.path, recorded)))


def open_tables(
    path: Path,
    given: Path | None = None,
    stack: ExitStack | None = None,
    interruptible: bool = True,
    all_programs: bool = False,
) -> Run:
    """Opens a directory that has manifest.json and the tables; ``given``: what the user named, if it was made of that
    just now; ``stack``, ``interruptible`` and ``all_programs``: see Run.

    Raises OplineError with one clear line.
    """
    manifest = read_json(path / "manifest.json", MANIFEST, AGAIN)
    run = Run(path, manifest, given or path, stack, interruptible)
    run.all_programs = all_programs
    return run


def _of_a_reader(error: Exception) -> bool:
    """DuckDB or pyarrow says it, which are not imported for that."""
    import sys

    duckdb, arrow = sys.modules.get("duckdb"), sys.modules.get("pyarrow")
    if duckdb is not None and isinstance(error, duckdb.Error):
        return True
    return arrow is not None and isinstance(error, arrow.ArrowException)


@contextmanager
def _interruptible(con: Connection) -> Iterator[None]:
    """Lets Ctrl-C end a running query: Python sees a signal only when DuckDB returns, so a thread tells DuckDB to. Its
    complaint about that (of one kind or another, as it noticed first) is a KeyboardInterrupt here.
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
    interruptible: bool = True,
    otherwise: str | None = None,
    all_programs: bool = False,
) -> Iterator[Run]:
    """Opens a run; correlates first where a recording or a trace is given (into a temporary run with rows of these
    ``tables`` only). Closes, and forgets a temporary run, at the end. ``interruptible``, ``all_programs``: see Run.
    ``otherwise``: the model of a trace of which none is named or known.
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
    """What DuckDB and pyarrow say of a run's tables is an OplineError of one line."""
    try:
        yield
    except Exception as error:
        if not _of_a_reader(error):
            raise
        why = " ".join(run.files.said(error).split())
        raise OplineError(f"Cannot read the tables of {run.path}: {why}. Correlate its trace again.") from error


@contextmanager
def asked(run: Run) -> Iterator[None]:
    """What DuckDB says of somebody's SQL is an OplineError of one line."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise OplineError(f"SQL: {' '.join(run.files.said(error).split())}") from error
