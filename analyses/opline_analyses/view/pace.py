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
MOST_S = 5.0  # but answers put a look off no longer than this: somebody may ask without a pause


class Pace:
    """Several threads may answer; one looks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._looks = 0
        self._began = 0.0  # the last look
        self._took = 0.0  # its own time
        self._answered = 0.0  # the time of the answers since
        self._answers = 0  # that are being made

    def due(self) -> bool:
        """Whether it is time for a look. Not while questions about the last one are being answered, nor soon after
        answers that took long; but neither puts it off by more than MOST_S. What the first look takes does not count:
        it loads libraries.
        """
        with self._lock:
            if self._looks < 2:
                return self._answers == 0
            passed = self._clock() - self._began
            if passed < SHARE * self._took:
                return False
            return passed >= MOST_S or (self._answers == 0 and passed >= SHARE * (self._took + self._answered))

    @contextmanager
    def looking(self) -> Iterator[None]:
        """A look."""
        began = self._clock()
        with self._lock:
            self._began, self._took, self._answered = began, 0.0, 0.0
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
                self._answered += self._clock() - began
