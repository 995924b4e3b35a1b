# SPDX-License-Identifier: MIT
"""Block devices of this machine by name and number, from sysfs.

Numbers come in both encodings: ``8:16`` for people, and the kernel-internal ``major << 20 | minor`` of block events.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

_SYS = Path("/sys/class/block")


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """One whole disk or partition. What sysfs does not say is None."""

    name: str
    number: str
    dev: int
    size_bytes: int | None
    scheduler: str | None
    rotational: bool | None
    parent: str | None
    start_sector: int | None
    logical_block_bytes: int | None
    backing: str | None  # file of a loop device, or name of a device-mapper target
    zoned: str | None  # "none", "host-aware", "host-managed"
    write_cache: str | None  # "write back", "write through"
    fua: bool | None  # the device takes FUA writes: no flush follows them
    queues: list[list[int]] | None  # CPUs of each hardware queue, by its number; None: a device without such queues


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.isdigit() else None


def _scheduler(text: str | None) -> str | None:
    """``[none] mq-deadline`` → ``none``."""
    if text is None:
        return None
    chosen = [word[1:-1] for word in text.split() if word.startswith("[")]
    return chosen[0] if chosen else text


def cpu_numbers(text: str) -> list[int]:
    """``0, 1, 4-6`` (``mq/N/cpu_list``, block/blk-mq-sysfs.c, has no ranges; other lists of sysfs do). Raises
    ValueError.
    """
    numbers: list[int] = []
    for part in filter(None, (word.strip() for word in text.split(","))):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def _queues(mq: Path) -> list[list[int]] | None:
    """By number, as the kernel's ``queue_num`` counts them. None where one of them can't be read: their CPUs would be
    taken for another queue's.
    """
    try:
        found = {int(path.name): cpu_numbers((path / "cpu_list").read_text()) for path in mq.iterdir()}
    except (OSError, ValueError):
        return None
    return [found[number] for number in range(len(found))] if found and set(found) == set(range(len(found))) else None


def _device(path: Path, idle: bool) -> BlockDevice | None:
    number = _text(path / "dev")
    backing = _text(path / "loop/backing_file") or _text(path / "dm/name")
    is_idle = path.name.startswith("loop") and backing is None and not (path / "partition").exists()
    if number is None or (is_idle and not idle):
        return None
    major, minor = (int(part) for part in number.split(":"))
    disk = path.resolve().parent if (path / "partition").exists() else path
    sectors = _number(path / "size")
    rotational, fua = _number(disk / "queue/rotational"), _number(disk / "queue/fua")
    return BlockDevice(
        name=path.name,
        number=number,
        dev=major << 20 | minor,
        size_bytes=None if sectors is None else sectors * 512,
        scheduler=_scheduler(_text(disk / "queue/scheduler")),
        rotational=None if rotational is None else bool(rotational),
        parent=disk.name if disk != path else None,
        start_sector=_number(path / "start"),
        logical_block_bytes=_number(disk / "queue/logical_block_size"),
        backing=backing,
        zoned=_text(disk / "queue/zoned"),
        write_cache=_text(disk / "queue/write_cache"),
        fua=None if fua is None else bool(fua),
        queues=_queues(disk / "mq"),
    )


def list_devices(root: Path = _SYS, *, idle: bool = False) -> list[BlockDevice]:
    """Every block device, by name; loop devices without a file only if ``idle``."""
    try:
        paths = sorted(root.iterdir())
    except OSError:
        return []
    found = (_device(path, idle) for path in paths)
    return [d for d in found if d is not None]


#: Of /sys/block/DEVICE/stat (Documentation/block/stat.rst), by place: requests that have completed.
_COMPLETED = {"reads": 0, "writes": 4, "discards": 11, "flushes": 15}


def completed(root: Path = _SYS) -> dict[str, dict[str, int]]:
    """What the kernel has counted of each whole disk so far: completed requests by kind; the reading took place between
    ``from_ns`` and ``monotonic_ns``. Absent: what this kernel does not count, and disks without counts (iostats is 0).
    """
    found = {}
    with contextlib.suppress(OSError):
        for path in sorted(root.iterdir()):
            from_ns = time.monotonic_ns()
            text = None if (path / "partition").exists() else _text(path / "stat")
            fields = [int(word) for word in (text or "").split()]
            counts = {name: fields[place] for name, place in _COMPLETED.items() if place < len(fields)}
            if any(fields) and _text(path / "queue/iostats") != "0":
                found[path.name] = {**counts, "from_ns": from_ns, "monotonic_ns": time.monotonic_ns()}
    return found
