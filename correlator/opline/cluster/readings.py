# SPDX-License-Identifier: MIT
"""Did CLOCK_MONOTONIC run steadily while a host recorded? Its recorder wrote ``clocks.csv`` (recorder.clock_log)."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

from opline.values import Value

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "clocks.csv"
WINDOW_NS = 1_000_000_000  # a rate is taken over so long: readings lie within some 100 ns
LONGEST_GAP_NS = 2_000_000_000  # between two readings
FEWEST = 3


class Readings(Value):
    """Times of CLOCK_MONOTONIC, and of CLOCK_MONOTONIC_RAW at them, in ns, in order."""

    monotonic_ns: np.ndarray
    raw_ns: np.ndarray
    bracket_ns: np.ndarray

    def deviation_ppm(self, first_ns: int, last_ns: int) -> float | None:
        """By how much the rate of CLOCK_MONOTONIC against RAW, which nobody slews, differs from its median at most,
        with what the readings leave open; None where they don't cover the time from first to last.
        """
        if len(self.monotonic_ns) < FEWEST:
            return None
        times = np.r_[first_ns, self.monotonic_ns, last_ns]
        edges = np.array([times[1] - times[0], times[-1] - times[-2]])
        if (edges > LONGEST_GAP_NS).any() or np.diff(self.monotonic_ns).max() > LONGEST_GAP_NS:
            return None
        ahead = self.monotonic_ns - self.raw_ns
        end = np.searchsorted(self.raw_ns, self.raw_ns + WINDOW_NS)
        begin = np.flatnonzero(end < len(end))
        if not len(begin):  # a short recording is one window
            begin, end = np.array([0]), np.full(len(ahead), len(ahead) - 1)
        apart = (self.raw_ns[end[begin]] - self.raw_ns[begin]).astype(np.float64)
        rate = (ahead[end[begin]] - ahead[begin]) / apart
        unsure = (self.bracket_ns[end[begin]] + self.bracket_ns[begin]) / apart
        return float((np.abs(rate - np.median(rate)) + unsure).max() * 1e6)


def read_readings(recording: Path) -> Readings | None:
    """The readings of a recording; None: it has none, or the file is damaged."""
    try:
        with (recording / FILE_NAME).open(newline="") as text:
            rows = [(int(r["monotonic_ns"]), int(r["raw_ns"]), int(r["bracket_ns"])) for r in csv.DictReader(text)]
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return None
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    if (np.diff(table[:, 0]) <= 0).any() or (np.diff(table[:, 1]) <= 0).any():
        return None
    return Readings(table[:, 0], table[:, 1], table[:, 2])
