# SPDX-License-Identifier: MIT
"""Results of the benchmarks: files of CSV that only grow."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path


def append(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Adds the rows to the file, under a header of these columns if it is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)
