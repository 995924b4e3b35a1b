# SPDX-License-Identifier: MIT
"""The front end for what happens now: records of the BPF programs, as the bridge passes them on, into a core.

The core's own code reads them (correlator/native/src/feed/ring.hpp); here is what it knows of them.
"""

from __future__ import annotations

from opline import _core


class RingReader:
    """Pushes records into a core. ``feed`` takes them in whatever pieces: one that is cut off waits for its rest."""

    def __init__(self, core: _core.Core) -> None:
        self._feed = _core.RingFeed(core)
        self.feed = self._feed.feed

    @property
    def first_ns(self) -> int | None:
        """The first time that is known."""
        return self._feed.counts()[0]

    @property
    def until_ns(self) -> int | None:
        """All that happened up to there has been pushed."""
        return self._feed.counts()[1]

    @property
    def events(self) -> int:
        """How many have been pushed."""
        return self._feed.counts()[2]

    @property
    def lost(self) -> int:
        """How many events are missing."""
        return self._feed.counts()[3]

    @property
    def processes(self) -> dict[int, int]:
        """Of the threads that were seen lately their processes."""
        return self._feed.processes()
