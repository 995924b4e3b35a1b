# SPDX-License-Identifier: MIT
"""CSV for spreadsheets: a text that one of them would take for a formula begins with an apostrophe."""

from __future__ import annotations

import csv
import io
import sys
from typing import BinaryIO

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(cell: str) -> str:
    """The cell as it is, unless it is a text that begins like a formula."""
    if not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def write_safe_cells(plain: BinaryIO, out: BinaryIO) -> None:
    """All rows of the CSV ``plain``, header included."""
    csv.field_size_limit(sys.maxsize)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    lines = io.TextIOWrapper(plain, encoding="utf-8", newline="")
    for row in csv.reader(lines):
        writer.writerow(map(safe_cell, row))
        if text.tell() > 1 << 16:
            out.write(text.getvalue().encode())
            text.seek(0)
            text.truncate()
    out.write(text.getvalue().encode())
    lines.detach()  # it is the caller's to close
