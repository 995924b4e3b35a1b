# SPDX-License-Identifier: MIT
"""Completions of a recording beside the kernel's counts: is every request accounted for?

The recorder reads ``/sys/block/DEVICE/stat`` before and after the command. Between the two readings the trace's
completed requests, plus the requests with an unseen completion, should equal the kernel's count: over all programs, as
the kernel counts all programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opline_analyses.runs.run import Run

# A sync's request without data counts as a write, and the flush sent to the device for the sync as a flush
# (block/blk-mq.c: blk_account_io_done(), block/blk-flush.c: blk_account_io_flush(), Linux 6.18); both are requests.
_KINDS = ("reads", "writes", "discards", "flushes")


class Completions(Value):
    """For one device between two readings of its counters: completions in the trace, completions unseen by any program,
    completions counted by the kernel (``kernel``; None: the kernel counts this device's requests in another way).
    """

    device: str
    recorded: int
    unseen: int
    kernel: int | None

    @property
    def others(self) -> int | None:
        """The rest of the kernel's count: the recorder's own I/O, not recorded, and I/O at the two readings."""
        return None if self.kernel is None else self.kernel - self.recorded - self.unseen


def completions(run: Run) -> list[Completions]:
    """A row for each device with I/O by the kernel's count; empty if the recording has no counters.

    Shape: one :class:`Completions` per whole disk with I/O in the recording's time.
    """
    note = run.manifest.get("recording") or {}
    before, after = note.get("completed_before") or {}, note.get("completed_after") or {}
    devices = {device["name"]: device["dev"] for device in note.get("devices") or ()}
    rows = (
        _of_device(run, name, devices[name], before[name], after[name])
        for name in after
        if name in before and name in devices
    )
    return [row for row in rows if row is not None and (row.kernel or row.recorded or row.unseen)]


def _of_device(run: Run, name: str, dev: int, first: Mapping[str, int], last: Mapping[str, int]) -> Completions | None:
    """None: the recording has no time of the second reading's begin.

    Completions after the first reading and before the second are part of the kernel's count. The time of an unseen
    completion is unknown: at most the rest of the kernel's count can have completed in this time.
    """
    if "from_ns" not in last:
        return None
    between = (first["monotonic_ns"], last["from_ns"])
    ((recorded, unseen),) = run.rows(
        """SELECT count(*) FILTER (end_ns BETWEEN ? AND ?),
                  count(*) FILTER (end_ns IS NULL AND outcome <> 'open' AND outcome <> 'absorbed'
                                   AND issue_ns BETWEEN ? AND ?)
           FROM all_requests WHERE dev = ?""",
        (*between, *between, dev),
    )
    kernel = sum(last.get(kind, 0) - first.get(kind, 0) for kind in _KINDS)
    restarted = any(last.get(kind, 0) < first.get(kind, 0) for kind in _KINDS)  # another device with this name
    if restarted or kernel < recorded:
        return Completions(name, recorded, unseen, None)
    return Completions(name, recorded, min(unseen, kernel - recorded), kernel)
