# SPDX-License-Identifier: MIT
"""The loop of a live view, for any source of rows: settled rows go through a view, again and again."""

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
        """The first known time."""

    @property
    def until_ns(self) -> int | None:
        """Everything that ended before this time is settled or in flight, unless another event is needed."""

    @property
    def processes(self) -> dict[int, int]:
        """The processes of the threads seen recently."""

    def settled(self) -> Tables:
        """The rows settled since the last call."""

    def under_way(self) -> Tables:
        """The unsettled requests. Take the settled requests before."""

    def finish(self) -> None:
        """Nothing more comes."""

    def losses(self) -> dict[str, int]:
        """The losses so far, by the names of the ledger."""


class Stream:
    """Rows through a view: ``begin``, ``look`` now and then, ``end``. ``write`` gets the view's output."""

    def __init__(
        self,
        view_of: ViewOf,
        write: Callable[[bytes], None],
        source: Source,
        names: Callable[[], dict[int, str]] | None = None,
    ) -> None:
        """``names``: of devices; default: this machine's devices."""
        self._view_of = view_of
        self._names = MachineNames() if names is None else names
        self._write = write
        self._source = source
        self._snapshots: tuple[Snapshot, Snapshot] | None = None
        self.view: View | None = None

    def begin(self) -> None:
        """Begins the view as soon as the begin is known."""
        if self.view is None and self._source.first_ns is not None:
            zero_ns, names = self._source.first_ns, self._names
            self._snapshots = Snapshot(zero_ns, names), Snapshot(zero_ns, names)
            self.view = self._view_of(*self._snapshots)
            self._say([self.view.begun()])

    def look(self) -> None:
        """Shows the settled rows and the finished intervals."""
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
        """The losses that a recording would report, worst first."""
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
