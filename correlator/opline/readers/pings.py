# SPDX-License-Identifier: MIT
"""The file of the pings that hosts sent to each other (`opline ping`): CSV, a message there and back in each row."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import numpy as np

FILE_NAME = "pings.csv"
TIMES = ("sent_ns", "received_ns", "replied_ns", "returned_ns")
COLUMNS = ("host", "boot_id", "clock_offset_ns", "peer", "peer_boot_id", "peer_clock_offset_ns", *TIMES)


class End(NamedTuple):
    """Which clock the times of one end are of: CLOCK_MONOTONIC of a boot, in a time namespace. ``clock_offset_ns``:
    that clock minus the one of the root time namespace.
    """

    host: str
    boot_id: str
    clock_offset_ns: int


def read_pings(path: Path) -> Mapping[tuple[End, End], np.ndarray]:
    """Rows of four times by their two ends; a row that is not whole is left out."""
    import numpy as np

    rows: dict[tuple[End, End], list[list[int]]] = {}
    for row in _rows(path):
        try:
            own = End(row["host"], row["boot_id"], int(row["clock_offset_ns"]))
            peer = End(row["peer"], row["peer_boot_id"], int(row["peer_clock_offset_ns"]))
            times = [int(row[name]) for name in TIMES]
        except (KeyError, TypeError, ValueError):
            continue
        if times[0] <= times[3] and times[1] <= times[2]:
            rows.setdefault((own, peer), []).append(times)
    return {ends: np.array(found, dtype=np.int64) for ends, found in rows.items()}


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        data = path.read_bytes()
    except OSError:
        return
    whole = data[: data.rfind(b"\n") + 1].decode(errors="replace")
    yield from csv.DictReader(whole.splitlines())
