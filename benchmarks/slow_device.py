# SPDX-License-Identifier: MIT
"""Eight loop devices of which one is slow: its file is another loop device, which is throttled.

Takes a folder; gives the devices' names, the slow one first, for as long as the context lasts. The throttle is cgroup
v1's blkio.throttle.read_iops_device of the root group, so nothing but that device is slowed down. Needs root.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device")
SIZE = 32 << 20


def _loop(stack: ExitStack, file: str) -> str:
    command = ["losetup", "--find", "--show", "--direct-io=on", file]
    device = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    stack.callback(subprocess.run, ["losetup", "--detach", device], check=True)
    return device


@contextmanager
def devices(folder: Path, number: int, iops: int) -> Iterator[list[str]]:
    """``number`` of them in files of ``folder``; the first serves ``iops`` reads a second. Raises SystemExit."""
    if not THROTTLE.exists():
        raise SystemExit(f"No {THROTTLE}: a slow device needs the blkio controller of cgroup v1.")
    with ExitStack() as stack:
        found = []
        for n in range(number):
            file = folder / f"device.{n}"
            file.write_bytes(b"\x5a" * SIZE)  # reads of a hole would touch nothing
            stack.callback(file.unlink)
            found.append(_loop(stack, str(file)))
        slow = found[0]
        found[0] = _loop(stack, slow)
        place = subprocess.run(["lsblk", "-ndo", "MAJ:MIN", slow], check=True, capture_output=True, text=True).stdout
        THROTTLE.write_text(f"{place.strip()} {iops}\n")
        stack.callback(THROTTLE.write_text, f"{place.strip()} 0\n")
        yield found
