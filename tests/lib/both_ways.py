# SPDX-License-Identifier: MIT
"""One run recorded both ways at once, as whole requests and as single block events, and the tables of each."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.lib.block_capture import Capture, capture, start_collector

from opline.correlation import correlate
from opline.model import load_model

Row = dict[str, Any]

TIMES = ("queue_ns", "getrq_ns", "insert_ns", "first_issue_ns", "issue_ns", "complete_ns", "end_ns", "preflush_ns")
# Of these, each comes after the one before it.
STEPS = ("queue_ns", "getrq_ns", "insert_ns", "first_issue_ns", "complete_ns")
ENABLED = ("block:*", "sched:process_cgroup_path")
# Numbers of rows, what follows from the times, and what another request may have changed between two programs' looks;
# whose a request is, which the events of processes say: they are in the trace of single events alone here.
NOT_COMPARED = ("request_id", "op_id", "flushed_by", "in_flight", "q2c_ns", "d2c_ns", "population")


@dataclass(slots=True)
class BothWays:
    """``single`` and ``whole``: their traces. ``counts``: the report of the collector of whole requests."""

    folder: Path
    running: Capture
    counts: dict[str, Any] = field(default_factory=dict)
    _tables: dict[tuple[str, str, str], list[Row]] = field(default_factory=dict)
    _told: list[tuple[str, int, dict[str, Any]]] = field(default_factory=list)

    def rows(self, way: str, table: str, dev: int, reader: str = "native") -> list[Row]:
        """A table's rows of that device, by ``single`` or ``whole``, in order of time."""
        if (way, reader, table) not in self._tables:
            run = self.folder / f"run-{way}-{reader}"
            if not run.exists():
                trace = self.folder / ("trace" if way == "single" else "whole")
                correlate(trace, load_model("syscalls"), run, reader=reader, progress=False)
            self._tables[way, reader, table] = list(pq.read_table(run / f"{table}.parquet").to_pylist())
        return [row for row in self._tables[way, reader, table] if row["dev"] == dev]

    @property
    def told(self) -> list[tuple[str, int, dict[str, Any]]]:
        """The events of the trace of whole requests: name, time, payload."""
        if not self._told:
            self._told = list(self.whole.events())
        return self._told

    @property
    def whole(self) -> Capture:
        """The trace of whole requests, as a capture."""
        return Capture(self.running.daemon, self.running.session, self.folder / "whole")


@contextlib.contextmanager
def both_ways(folder: Path, *arguments: str) -> Iterator[BothWays]:
    """Record block events both ways while the body runs; ``arguments``: more of them for both collectors."""
    with capture(folder, *arguments, enable=ENABLED) as running:
        child, ready = start_collector(running.daemon.environment(), "--requests", str(folder / "whole"), *arguments)
        try:
            assert ready.get("ready") and ready["enabled"], ready
            both = BothWays(folder, running)
            yield both
            child.send_signal(signal.SIGTERM)
            said, _ = child.communicate(timeout=60)
            both.counts = json.loads(said)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()


def _anchor(row: Row) -> int:
    """A time that every row has."""
    return int(
        next(row[name] for name in ("issue_ns", "insert_ns", "getrq_ns", "complete_ns", "queue_ns") if row[name])
    )


def pairs(single: list[Row], whole: list[Row], within_ns: int = 3_000_000) -> list[tuple[Row, Row]]:
    """The rows of one table that are the same request: of those of one thread at one place the first with the
    first, and so on.
    Raises AssertionError if one is left over, or two that should be one are far apart in time.
    """

    def places(rows: list[Row]) -> dict[tuple[Any, ...], list[Row]]:
        found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in sorted(rows, key=_anchor):
            found[row["sector"], row["nr_sectors"], row["kind"], row["queue_tid"]].append(row)
        return found

    ours, theirs = places(single), places(whole)
    numbers = [{place: len(rows) for place, rows in found.items()} for found in (ours, theirs)]
    assert numbers[0] == numbers[1]
    found = [pair for place, rows in ours.items() for pair in zip(rows, theirs[place], strict=True)]
    far = [pair for pair in found if abs(_anchor(pair[0]) - _anchor(pair[1])) >= within_ns]
    assert not far, ("far apart", far[:3], len(far))
    return found


def same_tables(matched: list[tuple[Row, Row]]) -> None:
    """Asserts that both say the same of each. A time is the same when it is of the same step: both programs that run at
    one step of a request have run before any that runs at its next one.
    """
    for single, whole in matched:
        for name, value in single.items():
            if name in NOT_COMPARED:
                continue
            if name in TIMES:
                assert (value is None) == (whole[name] is None), (name, single, whole)
            else:
                assert value == whole[name], (name, single, whole)
        told = [(single[name], whole[name]) for name in STEPS if single[name] is not None]
        for ours, theirs in itertools.pairwise(told):
            assert max(ours) < min(theirs), (single, whole)
