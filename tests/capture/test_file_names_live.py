# SPDX-License-Identifier: MIT
"""The paths of files that system calls name by a descriptor: files that have the inode number of a removed one, removed
files, descriptors that came over a socket, duplicates."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.capture.test_extents_capture import ext4
from tests.lib.recorder import status

pytestmark = pytest.mark.live
OPLINE = str(Path(sys.executable).with_name("opline"))

# Each file is written often enough that its path is asked for while it is open.
PROGRAM = """
import os, socket, sys, time

def opened(name):
    return os.open(name, os.O_RDWR | os.O_CREAT, 0o600)

def write(fd, times=3):
    for i in range(times):
        os.pwrite(fd, bytes(4096), 0)
        time.sleep(0.03)

for name in ("first", "second", "third"):  # one inode number, one descriptor
    f = opened(name)
    write(f)
    print(name, os.fstat(f).st_ino)
    os.unlink(name)
    os.close(f)
    time.sleep(0.3)  # the recorder, which maps files, lets go of it
for name in ("quick1", "quick2", "quick3", "quick4"):  # closed before the path is asked for; no data reaches the disk
    f = opened(name)
    os.pwrite(f, b"x", 0)
    os.unlink(name)
    os.close(f)
f = opened("last")
write(f)
os.close(f)

f = opened("removed")
os.unlink("removed")
write(f)
os.close(f)

here, there = socket.socketpair()
f = opened("passed")
if os.fork() == 0:
    os.close(f)
    (got,) = socket.recv_fds(there, 1, 1)[1]
    write(got)
    os._exit(0)
socket.send_fds(here, [b"x"], [f])
os.wait()
g = os.dup(f)
os.close(f)
write(g)
h = opened("other")
os.dup2(g, h)
write(h)
os.close(g)
source = os.open("passed", os.O_RDONLY)
target = opened("copied")
for i in range(3):
    os.copy_file_range(source, target, 4096, 0, 0)
    time.sleep(0.03)
"""


@pytest.fixture(scope="module")
def objects(
    opline: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, int]]:
    """How many ops each object has, and in `inodes` how many inode numbers the first three files have."""
    folder = tmp_path_factory.mktemp("names")
    with ext4(folder / "mnt") as (_, mounted):
        argv = [OPLINE, "record", "-o", str(folder / "run"), "--quiet", "--model", "syscalls", "--"]
        done = subprocess.run(
            [*argv, sys.executable, "-c", PROGRAM], cwd=mounted, capture_output=True, text=True, timeout=120
        )
        assert status(done) == 0, done.stderr
        query = "SELECT object, count(*) AS n FROM ops WHERE class IN ('pwrite64', 'copy_file_range') GROUP BY 1"
        asked = opline("sql", str(folder / "run"), query, "--json")
        assert asked.returncode == 0, asked.stderr
        found = {str(row["object"]).removeprefix(f"{mounted}/"): int(row["n"]) for row in json.loads(asked.stdout)}
        inodes = {line.split()[1] for line in done.stdout.splitlines()}
        yield {**found, "inodes": len(inodes)}


def test_a_file_with_the_inode_number_of_a_removed_one_has_its_own_name(objects: dict[str, int]) -> None:
    if objects["inodes"] != 1:
        pytest.skip("the file system gave each file a number of its own")
    assert [objects.get(name) for name in ("first", "second", "third", "last")] == [3, 3, 3, 3]


def test_a_file_whose_path_is_not_known_has_no_name_of_another(objects: dict[str, int]) -> None:
    """At least that: a path may be asked for in time."""
    assert sum(objects.get(name, 0) for name in ("None", "quick1", "quick2", "quick3", "quick4")) == 4
    assert all(objects.get(f"quick{number}", 0) <= 1 for number in (1, 2, 3, 4))


def test_a_removed_file_has_the_path_that_it_had(objects: dict[str, int]) -> None:
    assert objects["removed"] == 3 and not any("(deleted)" in name for name in objects)


def test_descriptors_from_elsewhere_name_the_file(objects: dict[str, int]) -> None:
    """By a socket, by dup and by dup2: three writes of each."""
    assert objects["passed"] == 9 and "other" not in objects


def test_a_copy_is_of_the_file_that_is_written(objects: dict[str, int]) -> None:
    assert objects["copied"] == 3
