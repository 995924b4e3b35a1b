# SPDX-License-Identifier: MIT
"""How often a recording is looked at: the more there is of it, the longer a look takes, and the answers about it; and
the thread that follows it, and the recorded program, need the processor too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHARE = 2  # so many times as long as a look and its answers take passes until the next


class Pace:
    """Several threads may answer; one looks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._looks = 0
        self._began = 0.0  # the last look
        self._took = 0.0  # it, and what was answered since
        self._answers = 0  # that are being made

    def due(self) -> bool:
        """Whether it is time for a look. Not while questions about the last one are being answered. What the first look
        takes does not count: it loads libraries.
        """
        with self._lock:
            rested = self._looks < 2 or self._clock() - self._began >= SHARE * self._took
            return rested and self._answers == 0

    @contextmanager
    def looking(self) -> Iterator[None]:
        """A look."""
        began = self._clock()
        with self._lock:
            self._began, self._took = began, 0.0
            self._looks += 1
        try:
            yield
        finally:
            with self._lock:
                self._took += self._clock() - began

    @contextmanager
    def answering(self) -> Iterator[None]:
        """An answer about what was seen."""
        began = self._clock()
        with self._lock:
            self._answers += 1
        try:
            yield
        finally:
            with self._lock:
                self._answers -= 1
                self._took += self._clock() - began
