# SPDX-License-Identifier: MIT
"""A view of a running recording: a thread that correlates new events, and the recording so far.

Each look is a generation: a run of the events settled by then, unchanged while being asked. At the recording's end its
run is made as for any recording.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opline.capture.machine.devices import list_devices
from opline.errors import OplineError
from opline.following import Following
from opline.scratch import scratch
from opline.store.arrow import arrow_schema
from opline.store.schema import TABLES
from opline.store.segments import Segments
from opline_analyses.runs.database import in_memory
from opline_analyses.runs.run import Run, open_run
from opline_analyses.runs.views import OF_PROGRAMS, WHOLE, Connection, narrow
from opline_analyses.view.asked import page_head
from opline_analyses.view.pace import Pace
from opline_analyses.view.tables import Region, Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opline_analyses.runs.selection import Selection

LOOK_EVERY_S = 0.25
WAIT_S = 10.0  # so long a question for news waits for some


class Part(Run):
    """The recording so far: a run with the current files of its tables."""

    def __init__(self, recording: Path, manifest: dict[str, Any], files: Mapping[str, Sequence[Path]]) -> None:
        super().__init__(recording, manifest, recording)
        self.fresh = True
        self._of_tables = {table: [self.files.open(path) for path in paths] for table, paths in files.items()}

    @cached_property
    def con(self) -> Any:
        """Connected at the first question."""
        con = in_memory()
        for spec in TABLES:
            view = f"{WHOLE}{spec.name}" if spec.name in OF_PROGRAMS else spec.name
            files = ", ".join(f"'{file}'" for file in self._of_tables[spec.name])
            if files:
                con.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet([{files}])")
            else:
                con.register("nothing", arrow_schema(spec).empty_table())
                con.execute(f"CREATE TABLE {view} AS SELECT * FROM nothing")  # also visible to cursors
        narrow(con, self.alone)
        return Connection(con, lambda _table: None)  # this process has written the files

    def device_names(self) -> dict[int, str]:
        """Also names of this machine's devices: a recording gets its benchmark's devices only at the end."""
        return {device.dev: device.name for device in list_devices(idle=True)} | super().device_names()


class Followed:
    """``ended(run)`` is called in the thread, with the run of the whole recording, after its end."""

    def __init__(
        self,
        path: str,
        model: str | None,
        which: Callable[[Run], Selection],
        tainted: bool,
        ended: Callable[[Run], None],
        all_programs: bool = False,
    ) -> None:
        self.path = Path(path)
        self._model, self._which, self._tainted, self._ended = model, which, tainted, ended
        self._all_programs = all_programs
        self._stack = ExitStack()
        self._segments = Segments(Path(self._stack.enter_context(scratch("follow"))))
        self._following = Following(path, self._segments, model)
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.tables: Tables | None = None
        self.generation = 0
        self.state = "recording"  # then "ending", while the whole run is made, and "over"
        self.problem = ""
        self.pace = Pace()
        self._anew = 0

    def __enter__(self) -> Followed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._stack.close()

    def page_head(self) -> tuple[dict[str, Any], Any] | None:
        """Head and columns of a page; None: there is no op yet."""
        with self._changed:
            tables, generation = self.tables, self.generation
        if tables is None or not len(tables):
            return None
        head, columns = page_head(tables, Region(t0=tables.first_ns, t1=max(tables.span_ns, self._until(tables)) + 1))
        return self._with_news(head, tables, generation), columns

    def news(self, since: int) -> dict[str, Any]:
        """The changes after the generation ``since``; waits for changes. ``over``: the whole run is ready."""
        with self._changed:
            self._changed.wait_for(lambda: self.generation > since or self.state == "over", WAIT_S)
            tables, generation, state = self.tables, self.generation, self.state
        said: dict[str, Any] = {"state": state, "problem": self.problem}
        if tables is None or generation <= since or state == "over":
            return said
        head, _ = page_head(tables, Region(t0=0, t1=1))
        del head["cells"]
        return {**said, "head": self._with_news(head, tables, generation)}

    def _with_news(self, head: dict[str, Any], tables: Tables, generation: int) -> dict[str, Any]:
        until_ns = self._until(tables)
        head["span_ns"] = max(head["span_ns"], until_ns)
        ago_ns = max(0, time.monotonic_ns() - tables.start_ns - until_ns)  # the clock of the recording, too
        head["followed"] = {"generation": generation, "until_ns": until_ns, "ago_ns": ago_ns, "anew": self._anew}
        return head

    def _until(self, tables: Tables) -> int:
        return max(0, (tables.until_ns or tables.start_ns) - tables.start_ns)

    def _follow(self) -> None:
        unseen = False  # something has come since the last look
        while not self._stop.wait(LOOK_EVERY_S if not self._following.behind else 0):
            try:
                if self._following.is_over():
                    break
                unseen = self._following.step() or unseen
                if unseen and self.pace.due():
                    with self.pace.looking():
                        self._look()
                    unseen = False
                self.problem = ""
            except OplineError as error:
                self.problem = error.message
            except Exception as error:  # a failed view must not spoil the recording's run
                self.problem = f"Internal error: {type(error).__name__}: {error}"
                with self._changed:
                    self._changed.notify_all()
                self._stop.wait(1)
        if not self._stop.is_set():
            self._end()

    def _look(self) -> None:
        """A generation of the current state."""
        following = self._following
        manifest = following.manifest()
        if manifest["core"]["first_ns"] is None or not self._segments.files["ops"]:
            return
        before = self.tables if following.anew == self._anew else None
        self._anew = following.anew
        run = Part(self.path, manifest, self._segments.files)
        run.all_programs = self._all_programs
        tables = Tables(run, self._which(run), self._tainted, before)
        tables.until_ns = following.until_ns
        with self._changed:
            self.tables = tables
            self.generation += 1
            self._changed.notify_all()

    def _end(self) -> None:
        """The recording has ended: makes its run."""
        self._tell("ending")
        try:
            run = self._stack.enter_context(
                open_run(self.path, self._model, interruptible=False, all_programs=self._all_programs)
            )
        except OplineError as error:
            self.problem = error.message
            self._tell("ending")
            return
        self._ended(run)
        self._tell("over")

    def _tell(self, state: str) -> None:
        with self._changed:
            self.state = state
            self.generation += state != "over"
            self._changed.notify_all()
