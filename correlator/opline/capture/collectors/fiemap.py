# SPDX-License-Identifier: MIT
"""Where a file lies: its extents (ioctl FS_IOC_FIEMAP), and where its file system begins on the whole disk.

Structures and flags: Linux, include/uapi/linux/fiemap.h and Documentation/filesystems/fiemap.rst. The names of flags
are those of filefrag. Sectors are 512 bytes.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from opline.values import Value

SECTOR_BYTES = 512
_FS_IOC_FIEMAP = 0xC020660B  # _IOWR('f', 11, struct fiemap)
_FS_IOC_GETVERSION = 0x80087601  # _IOR('v', 1, long), linux/fs.h; the value is an int
_HEAD = struct.Struct("=QQIIII")  # start, length, flags, mapped extents, extent count, reserved
_EXTENT = struct.Struct("=QQQ16xI12x")  # logical, physical, length, flags
_FLAG_SYNC = 1
_AT_ONCE = 512
_FLAGS = (
    (0x1, "last"), (0x2, "unknown_loc"), (0x4, "delalloc"), (0x8, "encoded"), (0x80, "encrypted"),
    (0x100, "not_aligned"), (0x200, "inline"), (0x400, "tail_packed"), (0x800, "unwritten"), (0x1000, "merged"),
    (0x2000, "shared"),
)  # fmt: skip
_PLACELESS = 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400


class Extent(Value):
    """A run of sectors of a file; ``physical_sector`` counts from the begin of the file system's device."""

    logical_sector: int
    physical_sector: int
    sectors: int
    flags: int

    @property
    def placed(self) -> bool:
        """Is the data where ``physical_sector`` says?"""
        return not self.flags & _PLACELESS

    def document(self) -> dict[str, object]:
        """As extents.json has it."""
        return {
            "logical_sector": self.logical_sector,
            "physical_sector": self.physical_sector,
            "sectors": self.sectors,
            "flags": [name for bit, name in _FLAGS if self.flags & bit],
        }


def extents(descriptor: int, *, sync: bool = False) -> list[Extent]:
    """The extents of an open file, by logical sector; ``sync``: write its data out first. Raises OSError."""
    found: list[Extent] = []
    start = 0
    while True:
        buffer = bytearray(_HEAD.size + _AT_ONCE * _EXTENT.size)
        _HEAD.pack_into(buffer, 0, start, 2**64 - 1 - start, _FLAG_SYNC if sync else 0, 0, _AT_ONCE, 0)
        fcntl.ioctl(descriptor, _FS_IOC_FIEMAP, buffer)
        mapped = _HEAD.unpack_from(buffer)[3]
        for i in range(mapped):
            logical, physical, length, flags = _EXTENT.unpack_from(buffer, _HEAD.size + i * _EXTENT.size)
            found.append(Extent(logical // SECTOR_BYTES, physical // SECTOR_BYTES, -(-length // SECTOR_BYTES), flags))
            start = logical + length
        if mapped == 0 or found[-1].flags & 1:
            return found


def generation(descriptor: int) -> int:
    """What tells two files apart that had one inode number one after the other; 0 where the file system has none."""
    buffer = bytearray(8)
    try:
        fcntl.ioctl(descriptor, _FS_IOC_GETVERSION, buffer)
    except OSError:
        return 0
    return int(struct.unpack_from("=I", buffer)[0])


def moved(before: list[Extent], after: list[Extent]) -> bool:
    """Is any sector that had a place elsewhere now, or nowhere? What is new in ``after`` has not moved."""
    for old in before:
        if not old.placed:
            continue
        at, end, shift = old.logical_sector, old.logical_sector + old.sectors, old.physical_sector - old.logical_sector
        for new in after:
            if new.placed and new.physical_sector - new.logical_sector == shift and new.logical_sector <= at:
                at = max(at, new.logical_sector + new.sectors)
        if at < end:
            return True
    return False


def place(dev: int, sys: Path = Path("/sys")) -> tuple[str, int] | None:
    """The whole disk that a file system's device (as stat(2) has it) is on, ``MAJOR:MINOR``, and the sector at which it
    begins there. None: it is not on a block device of its own (tmpfs, network, overlay, btrfs).
    """
    number = f"{os.major(dev)}:{os.minor(dev)}"
    device = sys / "dev" / "block" / number
    if not device.exists():
        return None
    if not (device / "partition").exists():
        return number, 0
    disk = (device.resolve().parent / "dev").read_text().strip()
    return disk, int((device / "start").read_text())
