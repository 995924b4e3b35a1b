# SPDX-License-Identifier: MIT
"""Reads ``cluster.json``, written by `opline join`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.shapes import read_json

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

FILE = "cluster.json"
MISSING = "missing"  # status of a host with an unreadable recording
_PERIOD = {"begin_ns": int, "end_ns": int}
SHAPE = {
    "schema": str,
    "reference": str,
    "hosts": [
        {
            "name": str,
            "path": str,
            "status": str,
            "why?": str,
            "run?": str,
            "event_count?": int,
            "interval_ns?": int,
            "offset_ns?": int,
            "rate_ppm?": (float, int, None),
            "bound_p50_ns?": int,
            "bound_max_ns?": int,
            "limit_ppm?": (float, int),
            "steps?": int,
        }
    ],
    "pairs": [
        {
            "hosts": [str],
            "paired": int,
            "unpaired": int,
            "ambiguous": int,
            "tcp_paired?": int,
            "tcp_unpaired?": int,
            "pings?": int,
            "contradicting": int,
            "arrived_early": int,
            "limit_ppm": (float, int),
            "raised": [_PERIOD | {"limit_ppm": (float, int)}],
            "steps": [_PERIOD | {"size_ns": int}],
        }
    ],
}


def is_cluster(path: Path) -> bool:
    """Whether a folder is a cluster made by `opline join`."""
    return (path / FILE).is_file()


def read_cluster(path: Path) -> dict[str, Any]:
    """The document. Raises OplineError."""
    if not path.exists():
        raise UsageError(f"{path} does not exist.")
    if not is_cluster(path):
        raise UsageError(f"{path} is no cluster: `opline join -o CLUSTER RUN RUN` makes one.")
    found: dict[str, Any] = read_json(path / FILE, SHAPE, "Join the recordings again.")
    return found
