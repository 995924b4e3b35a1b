# SPDX-License-Identifier: MIT
"""What looking on is, whatever the rows come from: rows that are settled go through a view, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from opline_analyses.live.snapshot import MachineNames, Snapshot
from opline_analyses.runs import ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opline_analyses.live.rows import Tables
    from opline_analyses.live.view import View

    ViewOf = Callable[[Snapshot, Snapshot], View]


class Source(Protocol):
    """Where the rows come from. Times are the machine's monotonic clock's."""

    @property
    def first_ns(self) -> int | None:
        """The first time that is known."""

    @property
    def until_ns(self) -> int | None:
        """All that ended before, and needs no other event to be known, is settled or under way."""

    @property
    def processes(self) -> dict[int, int]:
        """Of the threads that were seen lately their processes."""

    def settled(self) -> Tables:
        """The rows that have been settled since the last time."""

    def under_way(self) -> Tables:
        """The requests that are not settled. Take the settled ones before."""

    def finish(self) -> None:
        """Nothing more comes."""

    def losses(self) -> dict[str, int]:
        """What is missing by now, by the names of the ledger."""


class Stream:
    """Rows through a view: ``begin``, ``look`` now and then, ``end``. ``write`` gets what the view says."""

    def __init__(
        self,
        view_of: ViewOf,
        write: Callable[[bytes], None],
        source: Source,
        names: Callable[[], dict[int, str]] | None = None,
    ) -> None:
        """``names`` of devices; default: this machine's."""
        self._view_of = view_of
        self._names = MachineNames() if names is None else names
        self._write = write
        self._source = source
        self._snapshots: tuple[Snapshot, Snapshot] | None = None
        self.view: View | None = None

    def begin(self) -> None:
        """Once it is known when it began."""
        if self.view is None and self._source.first_ns is not None:
            zero_ns, names = self._source.first_ns, self._names
            self._snapshots = Snapshot(zero_ns, names), Snapshot(zero_ns, names)
            self.view = self._view_of(*self._snapshots)
            self._say([self.view.begun()])

    def look(self) -> None:
        """What has been settled, and the intervals that are over."""
        if self.view is None or self._snapshots is None or self.view.done:
            return
        self._show(self._snapshots, self._source.under_way)
        if (until_ns := self._source.until_ns) is not None and not self.view.done:
            self._say(self.view.close_until(self.view.settled_until(until_ns)))

    def end(self) -> None:
        """No more rows come."""
        if self.view is None or self._snapshots is None:
            return
        if not self.view.done:
            self._source.finish()
            self._show(self._snapshots, self._source.settled)
        until = self._source.until_ns if self._source.until_ns is not None else self.view.zero_ns
        self._say(self.view.end(until))

    def missing(self) -> list[ledger.Entry]:
        """What a recording of the same would call lost, worst first."""
        return ledger.entries_of(self._source.losses())

    def _show(self, snapshots: tuple[Snapshot, Snapshot], others: Callable[[], Tables]) -> None:
        assert self.view is not None
        settled, under_way = snapshots
        processes = self._source.processes if self.view.args.pid else {}
        settled.show(self._source.settled(), processes)
        under_way.show(others(), processes)
        self._say(self.view.take())

    def _say(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            if piece:
                self._write(piece)
