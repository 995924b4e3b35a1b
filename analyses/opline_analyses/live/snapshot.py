# SPDX-License-Identifier: MIT
"""A run for the analyses: the current rows, in memory, and facts about this machine."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opline.capture.machine.devices import list_devices
from opline.readers.clock import clock_of_ns
from opline.store.arrays import TableRows
from opline.store.schema import TABLES
from opline_analyses.runs.database import in_memory
from opline_analyses.runs.run import Run
from opline_analyses.runs.views import OF_PROGRAMS, WHOLE, Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

GIVEN = "given_"  # before a table's name: all rows; the table itself may have fewer
_NAMES_EVERY_NS = 1_000_000_000


class Snapshot(Run):
    """A run with the current rows. Times count from ``zero_ns``; ``names``: of devices."""

    grows = True

    def __init__(self, zero_ns: int, names: Callable[[], dict[int, str]]) -> None:
        clock = clock_of_ns("monotonic", time.time_ns() - time.monotonic_ns())
        manifest = {"core": {"first_ns": zero_ns, "last_ns": zero_ns}, "environment": [{"clock": clock}]}
        super().__init__(Path("live"), manifest, Path("live"))
        self._names = names
        self.nothing_ended = True
        self._only: dict[str, str] = {}  # the condition of each table's views

    @cached_property
    def con(self) -> Any:
        """A database in memory with every table of a run, empty."""
        con = in_memory(threads=1)
        for spec in TABLES:
            con.register(f"{GIVEN}{spec.name}", TableRows(spec))
            _make_views(con, spec.name, "")
        return Connection(con, lambda _table: None)  # nothing here can be damaged

    def show(self, tables: Mapping[str, TableRows], processes: Mapping[int, int]) -> None:
        """Replaces the rows; ``processes``: of threads, for filters by process."""
        for name, rows in tables.items():
            self.con.register(f"{GIVEN}{name}", rows)
            if self._only.get(name, "") != rows.only:
                _make_views(self.con, name, rows.only)
                self._only[name] = rows.only
        self.nothing_ended = self.row("SELECT count(complete_ns) FROM requests") == (0,)
        if processes:
            tids, pids = (np.fromiter(of, np.int64, len(processes)) for of in (processes.keys(), processes.values()))
            self.con.register("threads", {"tid": tids, "pid": pids})
            self.con.execute("CREATE OR REPLACE TEMP VIEW transitions AS SELECT * FROM threads")

    def device_names(self) -> dict[int, str]:
        """Names of the existing devices."""
        return self._names()

    def devices(self) -> Sequence[Mapping[str, Any]]:
        """The existing devices."""
        return [asdict(device) for device in list_devices()]


def _make_views(con: Any, name: str, only: str) -> None:
    """Also of the table of all programs: nothing here has more rows."""
    for view in (name, f"{WHOLE}{name}") if name in OF_PROGRAMS else (name,):
        which = f" WHERE {only}" if only else ""
        con.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * FROM {GIVEN}{name}{which}")


class MachineNames:
    """Names of this machine's block devices, looked up now and then: benchmarks create devices."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._at: int | None = None

    def __call__(self) -> dict[int, str]:
        """By number; a removed device keeps its name."""
        now = time.monotonic_ns()
        if self._at is None or now - self._at > _NAMES_EVERY_NS:
            self._at = now
            self._known |= {device.dev: device.name for device in list_devices(idle=True)}
        return self._known
