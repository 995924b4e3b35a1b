# SPDX-License-Identifier: MIT
"""Block devices of this machine by name and number, from sysfs.

Numbers come in both encodings: ``8:16`` for people, and the kernel-internal ``major << 20 | minor`` of block events.
"""

from __future__ import annotations

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


def _device(path: Path, idle: bool) -> BlockDevice | None:
    number = _text(path / "dev")
    backing = _text(path / "loop/backing_file") or _text(path / "dm/name")
    is_idle = path.name.startswith("loop") and backing is None and not (path / "partition").exists()
    if number is None or (is_idle and not idle):
        return None
    major, minor = (int(part) for part in number.split(":"))
    disk = path.resolve().parent if (path / "partition").exists() else path
    sectors = _number(path / "size")
    rotational = _number(disk / "queue/rotational")
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
    )


def list_devices(root: Path = _SYS, *, idle: bool = False) -> list[BlockDevice]:
    """Every block device, by name; loop devices without a file only if ``idle``."""
    try:
        paths = sorted(root.iterdir())
    except OSError:
        return []
    found = (_device(path, idle) for path in paths)
    return [d for d in found if d is not None]
