# SPDX-License-Identifier: MIT
"""How long a helper process is waited for: by the clock, and on a busy machine by what the process has got done.

A process that compiles for five seconds takes a minute where ten others want its CPU. It is given up if its time is up
and it has used hardly any CPU time since, or as much as it may take in all.
"""

from __future__ import annotations

import os
import time

from opline.scratch import stat_fields

_TIMES = slice(11, 15)  # of stat_fields: utime, stime, cutime, cstime (proc(5), fields 14 to 17)
_WORKS = 0.01  # of a CPU


def _spent_s(pid: int) -> float:
    """CPU time of a process and of its children that have ended, in seconds; 0: it is gone."""
    fields = stat_fields(pid)
    return 0.0 if fields is None else sum(map(int, fields[_TIMES])) / os.sysconf("SC_CLK_TCK")


class Patience:
    """With process ``pid``, for ``seconds``, and so long again as long as it works and has had less CPU time."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid = pid
        self._seconds = seconds
        self._first = self._last = _spent_s(pid)
        self._until = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Until the next look at what it has got done; 0: it is given up."""
        left = self._until - time.monotonic()
        if left > 0:
            return left
        spent = _spent_s(self._pid)
        if spent - self._first >= self._seconds or spent - self._last < _WORKS * self._seconds:
            return 0.0
        self._last, self._until = spent, time.monotonic() + self._seconds
        return self._seconds
