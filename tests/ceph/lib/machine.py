# SPDX-License-Identifier: MIT
"""Threads as generators, on one clock: a step ends with how long it takes, or with what the thread sleeps on."""

from __future__ import annotations

import heapq
import random
from collections import defaultdict, deque
from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator["int | str", None, None]


def next_of(queue: deque[T], name: str) -> Generator[int | str, None, T]:
    """Sleeps on the name while the queue is empty; gives its first."""
    while not queue:
        yield name
    return queue.popleft()


class Machine:
    """``run()`` lets all threads go on until nobody has anything to do. Times in ns."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 1_000_000
        self.count = 0
        self.agenda: list[tuple[int, int, Steps]] = []
        self.sleeping: dict[str, list[Steps]] = defaultdict(list)  # by what wakes them
        self.lines: list[tuple[int, int, str]] = []

    def start(self, steps: Steps, after_ns: int = 0) -> None:
        self.count += 1
        heapq.heappush(self.agenda, (self.now + after_ns, self.count, steps))

    def wake(self, name: str) -> None:
        for steps in self.sleeping.pop(name, []):
            self.start(steps, self.random.randint(2_000, 20_000))

    def run(self) -> list[str]:
        """The lines of events, in order."""
        while self.agenda:
            due, _, steps = heapq.heappop(self.agenda)
            self.now = max(self.now, due)
            wanted = next(steps, None)
            if isinstance(wanted, str):
                self.sleeping[wanted].append(steps)
            elif wanted is not None:
                self.start(steps, wanted)
        return [text for _, _, text in sorted(self.lines)]

    def event(self, name: str, pid: int, tid: int, comm: str, fields: str) -> None:
        self.now += 300  # no two events at one time
        text = f"{self.now} {name} tid={tid} pid={pid} comm={comm} {fields}"
        self.lines.append((self.now, len(self.lines), text))

    def some(self, mean_ns: int) -> int:
        return max(500, int(self.random.expovariate(1 / mean_ns)))
