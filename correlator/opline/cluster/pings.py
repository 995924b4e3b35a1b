# SPDX-License-Identifier: MIT
"""The pings that hosts sent to each other while they were recorded: ``pings.csv`` of a recording (`opline ping`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opline.readers.pings import FILE_NAME, End, read_pings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline.cluster.hosts import Part


def has_pings(part: Part) -> bool:
    """Does the recording have a file of them?"""
    return _file_of(part).is_file()


def _file_of(part: Part) -> Path:
    return Path(part.source.path).parent / FILE_NAME


class PingExchange:
    """Between all hosts. ``without``: why pings of a recording are not used, a line each."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.without: list[str] = []
        found: dict[tuple[str, str], list[np.ndarray]] = {}
        for part in parts:
            for (own, peer), times in read_pings(_file_of(part)).items():
                a, b = _owner(own, [part]), _owner(peer, parts)
                if a is None or b is None or a.name == b.name:
                    who = f"pings between {own.host} and {peer.host} are not used"
                    self.without.append(f"{who}: {_why_none(own, peer, a, b)}")
                    continue
                times = times + np.array([_moved(a, own), _moved(b, peer), _moved(b, peer), _moved(a, own)])
                found.setdefault((a.name, b.name), []).append(times[:, :2])
                found.setdefault((b.name, a.name), []).append(times[:, 2:])
        self._messages = {
            key: sent_and_received[np.argsort(sent_and_received[:, 0], kind="stable")]
            for key, lists in found.items()
            for sent_and_received in [np.concatenate(lists)]
        }

    def times(self, a: str, b: str) -> tuple[np.ndarray, np.ndarray]:
        """(sent, received) of the pings and answers from a to b, each on its own host's clock (i64, ns)."""
        both = self._messages.get((a, b), np.empty((0, 2), np.int64))
        return both[:, 0], both[:, 1]

    def count(self, a: str, b: str) -> int:
        """How many went from a to b."""
        return len(self._messages.get((a, b), ()))

    def span(self, host: str) -> tuple[int, int] | None:
        """Time of the first and of the last one on this host's clock; None: there is none."""
        times = [
            both[:, which]
            for key, both in self._messages.items()
            for which in (0, 1)
            if key[which] == host and len(both)
        ]
        return (int(min(t.min() for t in times)), int(max(t.max() for t in times))) if times else None


def _owner(end: End, parts: Sequence[Part]) -> Part | None:
    """The recording whose trace has this clock; of several of one boot that of its time namespace, or of its name."""
    mine = [part for part in parts if part.clock[0] == end.boot_id]
    for choice in (
        [part for part in mine if part.namespace_ns == end.clock_offset_ns],
        [part for part in mine if part.name == end.host],
        mine,
    ):
        if len(choice) == 1:
            return choice[0]
    return None


def _moved(part: Part, end: End) -> int:
    """The trace's clock minus that of the pings, which may be of another time namespace."""
    return 0 if part.namespace_ns is None else part.namespace_ns - end.clock_offset_ns


def _why_none(own: End, peer: End, a: Part | None, b: Part | None) -> str:
    if a is not None and b is not None:
        return "both are of one recording"
    return f"no recording has the clock of {(own if a is None else peer).host}"
