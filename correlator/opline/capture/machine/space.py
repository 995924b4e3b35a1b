# SPDX-License-Identifier: MIT
"""How large a trace is and how much room is left for it; sizes as people write them."""

from __future__ import annotations

import os
import re
from pathlib import Path

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_bytes(text: str) -> int:
    """``4096``, ``512K``, ``64M``, ``2G`` (powers of two), in bytes. Raises ValueError."""
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise ValueError(f"not a size: '{text}' (write 4096, 512K, 64M or 2G)")
    return int(found.group(1)) * _UNITS[found.group(2)]


def format_bytes(size: int) -> str:
    """Three digits and a unit: ``98.1 MiB``."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1000 or unit == "GiB":
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def tree_bytes(root: Path) -> int:
    """Size of all files below ``root``; what vanishes meanwhile does not count."""
    total = 0
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        total += tree_bytes(Path(entry.path))
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
                except OSError:
                    continue
    except OSError:
        pass
    return total


def free_bytes(path: Path) -> int:
    """What an ordinary user may still write on the file system of ``path``. Raises OSError."""
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize
