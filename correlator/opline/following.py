# SPDX-License-Identifier: MIT
"""A recording that is still going on, correlated as far as it is on disk: rows of what is settled, again and again.

What happened by now is on disk in whole packets a little later (the recorder's switch timer): only what is older is
pushed into the core, so that events of all streams come in their order. Where one comes too late after all, or the
traced programs have events that were not known before, everything is read anew.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from opline import _core, mapped
from opline.correlation import SCHEMA_VERSION, digest
from opline.disks import disk_facts
from opline.errors import OplineError, TraceError
from opline.model import load_model
from opline.paths import recorded_model
from opline.population import recorded_commands, recorded_processes
from opline.readers.native import NativeReader, Unsupported
from opline.readers.trace import cpus_recorded, find_traces
from opline.shapes import read_json
from opline.store.manifest import RECORDING
from opline.store.underway import is_underway

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from opline.paths import StrPath

SWITCH_NS = 500_000_000  # the recorder's: what a stream has is a packet after this time (capture/lttng/session.py)
LAG_NS = SWITCH_NS + 150_000_000  # and on disk a little later; what collectors send on comes 20 ms after it happened
HITS_LAG_NS = 1_200_000_000  # where the model's probes are recorded: their collector writes once a second
MOST_LAG_NS = 10_000_000_000
_END_NS = 1 << 62
_SLICE = 1 << 16  # events between two looks at the clock
_STEP_S = 0.5  # so long a step takes at most, about


class Rows(Protocol):
    """Who takes the rows."""

    def clear(self) -> None:
        """All so far are void: they come anew, of another core."""

    def add(self, core: _core.Core) -> None:
        """Those that the core has."""


class Following:
    """``step()`` now and then. ``rows`` gets the rows; ``until_ns``: what happened before has been pushed, None:
    nothing yet; ``behind``: more than that is on disk, and comes with the next step. ``anew`` counts new beginnings.
    """

    def __init__(
        self, recording: StrPath, rows: Rows, model: str | None = None, tables: Sequence[str] | None = None
    ) -> None:
        """``model``: None is the recording's; ``tables``: those that are wanted, None: all. Raises OplineError."""
        self.path = Path(recording)
        self.recording: dict[str, Any] = self._note()
        if model is None:
            recorded = self.recording.get("model")
            if not recorded:
                raise OplineError(f"{self.path} was recorded without a model: say with --model which one it has.")
            model = recorded_model(self.path, str(recorded["argument"]))
        self.model = load_model(model)
        self._rows, self._tables = rows, tables
        self.until_ns: int | None = None
        self.behind = False
        self.anew = -1
        self.environment: list[dict[str, Any]] = []
        channels = {channel.get("name") for channel in self.recording.get("channels") or ()}
        self._lag_ns = HITS_LAG_NS if "probes" in channels else LAG_NS
        self.core: _core.Core | None = None
        self._follower: _core.Follower | None = None
        self._seen: dict[str, int] = {}  # bytes of metadata, by trace

    def _note(self) -> dict[str, Any]:
        return dict(read_json(self.path / "recording.json", RECORDING))

    def step(self, over: bool = False) -> bool:
        """Pushes what has come; whether rows may have. False, and nothing else any more, once the recording is over:
        ask ``is_over()``, and then for what is left with ``over``, until nothing is ``behind``. Raises OplineError.
        """
        until_ns = _END_NS if over else time.monotonic_ns() - self._lag_ns
        self.recording = self._note()
        seen = self._metadata()
        if not seen:
            return False  # no program has been traced yet
        try:
            if self._follower is None or seen != self._seen:
                self._begin(seen)
            assert self._follower is not None
            if not self._follower.grow():
                if self._metadata() == seen:  # an event came late: more may
                    self._lag_ns = min(self._lag_ns + SWITCH_NS, MOST_LAG_NS)
                self._follower = None
                return False
            return self._push(until_ns)
        except Unsupported as error:
            raise TraceError(f"{self.path}: this recording can't be followed: {error}.") from error
        except ValueError as error:  # a file that is being made
            raise TraceError(f"Cannot read the trace: {' '.join(str(error).split())}") from error

    def _metadata(self) -> dict[str, int]:
        try:
            traces = find_traces(self.path / "trace")
            return {trace: Path(trace, "metadata").stat().st_size for trace in traces}
        except (OSError, TraceError):
            return {}

    def _begin(self, seen: dict[str, int]) -> None:
        self._follower = _core.Follower(list(seen))
        processes, disks = recorded_processes(self.recording), disk_facts(self.recording)
        commands = recorded_commands(self.recording)
        self.core = _core.Core(self.model.plan_json("pointer", [], [], processes, disks, commands=commands))
        if self._tables is not None:
            self.core.keep_tables(self._tables)
        self._follower.open(self.core)
        self._seen = seen
        self.environment = json.loads(_core.NativeReader(list(seen), cpus_recorded(next(iter(seen)))).environment())
        self._rows.clear()
        self.until_ns = None
        self.anew += 1

    def _push(self, until_ns: int) -> bool:
        assert self._follower is not None and self.core is not None
        end = time.monotonic() + _STEP_S
        before = self.core.events_seen()
        self.behind = True
        while self.behind and time.monotonic() < end:
            self.behind = self._follower.run(until_ns, _SLICE)
            mapped.check()
            if self.core.take_ready():
                self._rows.add(self.core)
        has_rows = not self.behind and self.core.passed(until_ns)
        if self.core.events_seen() == before and self.until_ns is not None and not has_rows:
            self.until_ns = self.until_ns if until_ns == _END_NS else until_ns
            return True
        self._rows.add(self.core)
        if self.behind or until_ns == _END_NS:
            until_ns = json.loads(self.core.summary())["last_ns"]  # its length grows with the processes of the machine
        self.until_ns = until_ns
        return True

    def finish(self) -> None:
        """Nothing is left: what is open is settled as such."""
        if self.core is not None:
            self.core.finish()
            self._rows.add(self.core)

    def is_over(self) -> bool:
        """Whether nobody records any more. Raises OplineError."""
        return not is_underway(self.path)

    def manifest(self) -> dict[str, Any]:
        """As a run's, of what there is by now."""
        assert self.core is not None
        return {
            "schema": "opline-run",
            "schema_version": SCHEMA_VERSION,
            "trace": str(self.path / "trace"),
            "traces": list(self._seen),
            "reader": NativeReader.name,
            "model": {"name": self.model.name, "text": self.model.text, "sha256": digest(self.model)},
            "environment": self.environment,
            "core": json.loads(self.core.summary()),
            "recording": self.recording,
            "gaps": [],
            "losses": {},
        }
