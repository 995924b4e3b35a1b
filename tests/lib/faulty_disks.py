# SPDX-License-Identifier: MIT
"""What tests/waiting_app/faults.c needs: two ext4 file systems and a loop device, one on files of the other."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.lib.block_capture import loop_device

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Disks:
    """Mount points of the file systems, and the device; the inner file system and the device are on the outer one."""

    outer: Path
    inner: Path
    device: str


@contextlib.contextmanager
def _mounted(device: str, at: Path) -> Iterator[Path]:
    subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
    at.mkdir()
    subprocess.run(["mount", device, str(at)], check=True)
    try:
        yield at
    finally:
        # Another recorder of the machine may look at a loop device right now, whose file keeps the file system busy.
        subprocess.run(["umount", "--lazy", str(at)], check=True)


@contextlib.contextmanager
def faulty_disks(folder: Path) -> Iterator[Disks]:
    """In memory, for as long as the body runs."""
    with (
        loop_device(256 * MIB) as outside,
        _mounted(outside, folder / "outer") as outer,
        loop_device(64 * MIB, folder=str(outer)) as inside,
        _mounted(inside, folder / "inner") as inner,
        loop_device(64 * MIB, folder=str(outer)) as device,
    ):
        with Path(device).open("wb") as whole:  # its blocks are there
            whole.write(bytes(64 * MIB))
        os.sync()
        try:
            yield Disks(outer, inner, device)
        finally:  # a program that was killed may have left it frozen
            subprocess.run(["fsfreeze", "--unfreeze", str(outer)], check=False, capture_output=True)
