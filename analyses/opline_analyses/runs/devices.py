# SPDX-License-Identifier: MIT
"""The block devices of a run: their numbers by name, and the filter -d as SQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.readers.extents import SECTOR_BYTES
from opline.values import Value
from opline_analyses.base.filters import devices_meant, number_among
from opline_analyses.base.text import device_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from opline_analyses.runs.run import Run

_SEEN = """SELECT dev FROM (SELECT dev FROM all_requests UNION SELECT dev FROM all_ops)
           WHERE dev IS NOT NULL ORDER BY dev"""
_NAMED = " UNION ALL ".join(f"SELECT 1 FROM {table} WHERE dev = ?" for table in ("requests", "bios", "ops"))
_PARTITION = re.compile(r"(?P<disk>[a-z]+)\d+|(?P<numbered>\w*\d)p\d+")


def device_number(run: Run, text: str) -> int:
    """A device by its name or as MAJOR:MINOR or MAJOR,MINOR, kernel-internal. Raises UsageError with all devices."""
    names = run.device_names()
    number = number_among(names, text)
    if number is not None:
        return number
    seen = [device_name(names, dev) for (dev,) in run.rows(_SEEN)]
    raise UsageError(f"No device {text}: the run has {', '.join(seen) or 'none'}.")


class Sectors(Value):
    """The place of a partition: sectors [first, end) of a disk, as named by requests."""

    dev: int
    first: int
    end: int


def partition(run: Run, dev: int, text: str) -> Sectors | None:
    """The partition's place; None for a whole disk. ``text``: the user's name of the device. Raises UsageError if
    unknown to the run.
    """
    names = run.device_names()
    known: Mapping[str, Any] = next((d for d in run.devices() if int(d["dev"]) == dev), {})
    disk = known.get("parent") or _disk_by_name(names, dev)
    if disk is None:
        return None
    number = next((n for n, name in names.items() if name == disk), None)
    first, size = known.get("start_sector"), known.get("size_bytes")
    if number is not None and first is not None and size is not None:
        return Sectors(number, int(first), int(first) + int(size) // SECTOR_BYTES)
    if run.row(f"SELECT EXISTS ({_NAMED})", [dev] * 3)[0]:
        return None
    raise UsageError(
        f"-d {text}: a partition, whose I/O is the disk's, and the run does not know in which sectors (a recording "
        f"knows): -d {disk} means the whole disk."
    )


def partitions(run: Run) -> list[Sectors]:
    """The partitions with a known place."""
    found = []
    for device in run.devices():
        if all(device.get(name) is not None for name in ("parent", "start_sector", "size_bytes")):
            found.append(partition(run, int(device["dev"]), str(device["name"])))
    return [place for place in found if place is not None]


def _disk_by_name(names: Mapping[int, str], dev: int) -> str | None:
    """The disk of a partition missing in the recording: sda for sda1, nvme0n1 for nvme0n1p1."""
    found = _PARTITION.fullmatch(names.get(dev, ""))
    disk = found and (found["disk"] or found["numbered"])
    return disk if disk in names.values() else None


def devices_condition(run: Run, texts: Sequence[str], table: str = "") -> tuple[str, list[object]]:
    """The condition of -d, on the columns dev and sector (of this ``table``): a partition means the disk's I/Os that
    begin in the partition's sectors. Raises UsageError.
    """
    dev, sector = (f"{table}.{column}" if table else column for column in ("dev", "sector"))
    parts: list[str] = []
    parameters: list[object] = []
    for negated, found in enumerate(devices_meant(texts, lambda text: device_number(run, text))):
        if found.numbers or found.majors:
            marks = [", ".join("?" * len(some)) for some in (found.numbers, found.majors)]
            places = [p for n in found.numbers if (p := partition(run, n, device_name(run.device_names(), n)))]
            within = f" OR ({dev} = ? AND coalesce({sector} >= ? AND {sector} < ?, false))" * len(places)
            sql = f"({dev} IN ({marks[0]}) OR {dev} >> 20 IN ({marks[1]}){within})"
            parts.append(f"NOT {sql}" if negated else sql)
            parameters += [*found.numbers, *found.majors, *(n for p in places for n in (p.dev, p.first, p.end))]
    return " AND ".join(parts), parameters
