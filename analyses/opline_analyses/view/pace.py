# SPDX-License-Identifier: MIT
"""The pace of looks at a recording: with more data a look and the answers take longer; the following thread and the
recorded program also need the processor.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHARE = 2  # the pause until the next look, as a multiple of the time of a look and its answers
MOST_S = 5.0  # limit of a delay by answers: questions may come without a pause


class Pace:
    """Several threads may answer; one looks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._looks = 0
        self._began = 0.0  # the last look
        self._took = 0.0  # the look's own time
        self._answered = 0.0  # the time of the answers since
        self._answers = 0  # answers in progress

    def due(self) -> bool:
        """Whether a look is due. No look during answers about the last look, nor soon after slow answers; the delay is
        at most MOST_S. The first look's time does not count, as the first look loads libraries.
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
        """An answer about the last look."""
        began = self._clock()
        with self._lock:
            self._answers += 1
        try:
            yield
        finally:
            with self._lock:
                self._answers -= 1
                self._answered += self._clock() - began
