#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Concurrent writers for the virtual machine: each a process with a file of its own, an fdatasync after each write.

    usage: writers.py FOLDER WRITERS WRITES LOG

The files FOLDER/0, FOLDER/1, ... exist already. LOG gets a line per write: pid, file, offset_bytes, and CLOCK_MONOTONIC
before the write, between the write and its fdatasync, and after that.
"""

import os
import random
import sys
import time
from pathlib import Path

PAGE = 4096
COLUMNS = ("pid", "file", "offset_bytes", "begin_ns", "written_ns", "end_ns")


def write(path: str, count: int) -> list[str]:
    """No page twice, so that a page's bio is one write's."""
    lines = []
    fd = os.open(path, os.O_WRONLY)
    for page in random.Random(path).sample(range(os.fstat(fd).st_size // PAGE), count):
        begin_ns = time.monotonic_ns()
        os.pwrite(fd, os.urandom(PAGE), page * PAGE)
        written_ns = time.monotonic_ns()
        os.fdatasync(fd)
        row = (os.getpid(), path, page * PAGE, begin_ns, written_ns, time.monotonic_ns())
        lines.append(",".join(map(str, row)) + "\n")
    return lines


def main() -> None:
    folder, writers, writes, log = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    with Path(log).open("w") as f:
        f.write(",".join(COLUMNS) + "\n")
    children = []
    for number in range(writers):
        pid = os.fork()
        if pid == 0:
            lines = write(f"{folder}/{number}", writes)
            # one write(2) at the end of the file: the lines of two do not mix
            os.write(os.open(log, os.O_WRONLY | os.O_APPEND), "".join(lines).encode())
            os._exit(0)
        children.append(pid)
    sys.exit(any(os.waitpid(pid, 0)[1] for pid in children))


if __name__ == "__main__":
    main()
