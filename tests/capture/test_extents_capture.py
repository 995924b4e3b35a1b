# SPDX-License-Identifier: MIT
"""Where the files lie that a recorded command opens: the parts, and a real recording on ext4 on a loop device."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.lib.block_capture import dev_of, loop_device
from tests.lib.recorded import Correlated
from tests.lib.recorder import status

from opline.capture.bpf.descendants import Descendants
from opline.capture.collectors.fiemap import Extent, extents, moved, place
from opline.capture.collectors.openfiles import mounts
from opline.correlation import correlate
from opline.model import load_model
from opline.readers.extents import read_extents

DELALLOC, UNWRITTEN = 0x4, 0x800


def of(*runs: tuple[int, int, int], flags: int = 0) -> list[Extent]:
    return [Extent(*run, flags) for run in runs]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (of((0, 100, 16)), of((0, 100, 16)), False),
        (of((0, 100, 16)), of((0, 100, 8), (8, 108, 8), (16, 900, 8)), False),  # in pieces now, and longer
        (of((0, 100, 16)), of((0, 100, 8), (8, 500, 8)), True),  # a part is elsewhere
        (of((0, 100, 16)), of((0, 100, 8)), True),  # a part is gone
        (of((0, 100, 16)), [], True),
        ([], of((0, 100, 16)), False),
        (of((0, 0, 16), flags=DELALLOC), of((0, 100, 16)), False),  # it had no place before
        (of((0, 100, 16), flags=UNWRITTEN), of((0, 100, 16)), False),
    ],
)
def test_moved_is_what_had_another_place_before(before: list[Extent], after: list[Extent], expected: bool) -> None:
    assert moved(before, after) is expected


def test_a_partitions_file_system_begins_inside_of_the_disk(tmp_path: Path) -> None:
    disk = tmp_path / "devices" / "sda"
    (disk / "sda1").mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (disk / "sda1" / "partition").write_text("1\n")
    (disk / "sda1" / "start").write_text("2048\n")
    (tmp_path / "dev" / "block").mkdir(parents=True)
    (tmp_path / "dev" / "block" / "8:0").symlink_to(disk)
    (tmp_path / "dev" / "block" / "8:1").symlink_to(disk / "sda1")
    assert place(os.makedev(8, 1), tmp_path) == ("8:0", 2048)
    assert place(os.makedev(8, 0), tmp_path) == ("8:0", 0)
    assert place(os.makedev(0, 42), tmp_path) is None


def test_file_systems_without_a_block_device_are_not_watched() -> None:
    table = Path("/proc/self/mountinfo").read_text()
    found = mounts(table + "99 1 0:999 / /a\\040b rw - tmpfs none rw\n")
    assert all(os.major(dev) for dev in found)
    for dev, point in found.items():
        assert Path(point).stat().st_dev == dev or not Path(point).exists()


def test_descendants_are_known_after_they_have_gone() -> None:
    family = Descendants(os.getpid())
    if not family.exact:
        pytest.skip("the kernel does not report forks here")
    done = subprocess.run(["sh", "-c", "sh -c 'echo $$'; echo $$"], capture_output=True, text=True, check=True)
    family.update()
    gone = [int(line) for line in done.stdout.split()]
    assert len(gone) == 2 and all(family.has(pid) for pid in gone)
    assert not family.has(1) and not family.has(os.getpid()) and not family.has(os.getppid())
    family.close()


@contextmanager
def ext4(folder: Path) -> Iterator[tuple[str, Path]]:
    """A loop device with ext4 on it, mounted."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("needs mkfs.ext4")
    with loop_device(128 << 20) as device:
        subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
        folder.mkdir()
        subprocess.run(["mount", device, folder], check=True)
        try:
            yield device, folder
        finally:
            subprocess.run(["umount", folder], check=True)


@pytest.mark.live
def test_fiemap_is_what_filefrag_says(tmp_path: Path) -> None:
    with ext4(tmp_path / "mnt") as (_, folder):
        path = folder / "holes"
        with path.open("wb") as file:
            for block in (0, 1, 5, 40):
                file.seek(block * 4096)
                file.write(b"x" * 4096)
        with path.open("rb") as file:
            found = extents(file.fileno(), sync=True)
        said = subprocess.run(["filefrag", "-v", "-b512", path], capture_output=True, text=True, check=True).stdout
        theirs = [
            tuple(map(int, row)) for row in re.findall(r"^ +\d+: +(\d+)\.\. *\d+: +(\d+)\.\. *\d+: +(\d+):", said, re.M)
        ]
        assert [(e.logical_sector, e.physical_sector, e.sectors) for e in found] == theirs
        assert len(found) > 1 and all(e.placed for e in found)


# The pauses are for the watcher, which maps a file when it gets to run.
# Direct writes, buffered ones with fsync, buffered ones that nobody syncs, a file that is gone at the end, and one that
# is written anew elsewhere. The file system is mounted by the command itself, as benchmarks do.
WORK = """
set -e
mount $1 $2
trap 'umount $2' EXIT
cd $2
fio() { command fio --bs=4k --rw=randwrite --ioengine=psync --output=/dev/null "$@"; }
fio --name=direct --filename=direct --size=8M --direct=1 --number_ios=300
fio --name=synced --filename=synced --size=2M --number_ios=200 --fsync=8
fio --name=left --filename=left --size=1M
head -c 64k /dev/zero > gone; sync gone; sleep 1; rm gone
head -c 64k /dev/zero > moved; sync moved; cp moved other; sync other; sleep 1; truncate -s 0 moved; sync moved
head -c 256k /dev/zero >> moved
cd /
"""


@dataclass
class Recorded:
    """A recording, and the device with the file system: in block events' numbers and as MAJOR:MINOR."""

    folder: Path
    dev: int
    number: str

    def files(self) -> dict[str, dict[str, Any]]:
        document = json.loads((self.folder / "extents.json").read_text())
        assert document["version"] == 1
        return {Path(f["path"]).name: f for f in document["files"] if f["dev"] == self.number}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    if not all(shutil.which(program) for program in ("fio", "mkfs.ext4")):
        pytest.skip("needs fio and mkfs.ext4")
    folder = tmp_path_factory.mktemp("extents")
    (folder / "mnt").mkdir()
    with loop_device(128 << 20) as device:
        subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
        subprocess.run(["mount", device, folder / "mnt"], check=True)
        try:
            # The file system stays mounted until all files are mapped.
            work = WORK.replace("mount $1 $2", "").replace("trap 'umount $2' EXIT", "")
            done = subprocess.run(
                [Path(sys.executable).with_name("opline"), "record", "--model", "syscalls", "-o", folder / "run", "--",
                 "bash", "-c", work, "work", device, str(folder / "mnt")],
                capture_output=True, text=True, timeout=120,
            )  # fmt: skip
            number = Path(device).stat().st_rdev
            assert status(done) == 0, done.stderr
        finally:
            subprocess.run(["umount", folder / "mnt"], check=True)
        dev = dev_of(device)
    if "no maps of files" in done.stderr:
        pytest.skip(done.stderr)
    return Recorded(folder / "run", dev, f"{os.major(number)}:{os.minor(number)}")


@pytest.mark.live
def test_every_file_that_the_command_opened_is_mapped(recorded: Recorded) -> None:
    files = recorded.files()
    assert {"direct", "synced", "left", "moved", "other"} <= set(files)
    assert all(f["disk"] == recorded.number and f["start_sector"] == 0 for f in files.values())
    assert not any(files[name]["changed"] for name in ("direct", "synced", "left", "other"))
    assert files["moved"]["changed"]
    assert files["gone"]["changed"]  # what it had may be another file's since
    assert files["left"]["size_bytes"] == sum(e["sectors"] for e in files["left"]["extents"]) * 512 == 1 << 20
    report = json.loads((recorded.folder / "recording.json").read_text())["files"]
    assert report["overflows"] == report["not_mapped"] == 0
    assert not any(str(recorded.folder) in f["path"] for f in files.values())
    assert {Path(m.path).name for m in read_extents(recorded.folder / "extents.json")} >= {"direct", "synced", "left"}


@pytest.fixture(scope="module")
def run(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Correlated:
    out = tmp_path_factory.mktemp("run")
    return Correlated(out, correlate(recorded.folder / "trace", load_model("syscalls"), out, progress=False))


def logical(file: dict[str, Any], sector: int) -> int | None:
    """The file's sector that lies on that sector of the disk, by its map."""
    for e in file["extents"]:
        if e["physical_sector"] <= sector < e["physical_sector"] + e["sectors"]:
            return int(e["logical_sector"] + sector - e["physical_sector"])
    return None


@pytest.mark.live
def test_the_maps_lead_every_bio_to_the_bytes_that_its_op_wrote(recorded: Recorded, run: Correlated) -> None:
    """Direct writes: the op is known by its thread; its offset is what the map says of the bio's sector."""
    files = recorded.files()
    offset = {op["op_id"]: op["offset_bytes"] for op in run.rows("ops") if op["class"] == "pwrite64"}
    found: Counter[str] = Counter()
    for bio in run.rows("bios"):
        if bio["dev"] != recorded.dev or bio["kind"] != "write":
            continue
        name = next((n for n in ("direct", "synced", "left") if logical(files[n], bio["sector"]) is not None), None)
        if name is None:
            continue
        found[name] += bio["nr_sectors"] * 512
        if name == "direct" and bio["op_by_thread"] in offset:
            assert logical(files[name], bio["sector"]) == offset[bio["op_by_thread"]] // 512
    assert found["direct"] == 300 * 4096
    # fio writes each block once. Nobody syncs `left`: it is written out so that it can be mapped.
    assert found["synced"] == 200 * 4096 and found["left"] == 1 << 20


@pytest.mark.live
def test_every_byte_is_charged_to_the_op_that_wrote_it(recorded: Recorded, run: Correlated) -> None:
    files = {f["path"]: f for f in recorded.files().values()}
    ops = {op["op_id"]: op for op in run.rows("ops")}
    bios = {bio["bio_id"]: bio for bio in run.rows("bios")}
    # the files are read, too, while the recorder has the kernel write them out
    placed = [link for link in run.rows("links") if link["evidence"] == "thread+extent"]
    direct = [link for link in placed if ops[link["op_id"]]["class"] == "pwrite64"]
    assert len({link["op_id"] for link in direct}) == 300
    assert sum(link["bytes"] for link in direct) == 300 * 4096 and not any(link["ambiguous"] for link in direct)
    later: Counter[str] = Counter()
    for row in run.rows("deferred"):
        op, bio = ops[row["op_id"]], bios[row["bio_id"]]
        first = logical(files[row["file"]], bio["sector"])
        assert first is not None
        if op["class"] != "pwrite64":  # the shell's programs write the other files with write(2)
            assert (
                op["class"] in ("write", "copy_file_range")
                and not row["ambiguous"]
                and Path(row["file"]).name not in ("synced", "left")
            )
            continue
        assert first * 512 <= op["offset_bytes"] < (first + bio["nr_sectors"]) * 512
        assert not row["ambiguous"] and row["bytes"] == 4096  # `synced` has the same offsets: the inode tells
        later[Path(row["file"]).name] += row["bytes"]
    assert (later["synced"], later["left"]) == (200 * 4096, 1 << 20)


@pytest.mark.live
def test_a_file_system_that_the_command_mounts_is_watched(tmp_path: Path) -> None:
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("needs mkfs.ext4")
    (tmp_path / "mnt").mkdir()
    with loop_device(64 << 20) as device:
        subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
        work = "mount $1 $2; sleep 0.3; head -c 8k /dev/zero > $2/late; sync $2/late"
        try:
            done = subprocess.run(
                [Path(sys.executable).with_name("opline"), "record", "-o", tmp_path / "run", "--", "sh", "-c", work,
                 "work", device, tmp_path / "mnt"],
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
        finally:
            for _ in range(20):
                if subprocess.run(["umount", tmp_path / "mnt"], capture_output=True).returncode == 0:
                    break
                time.sleep(0.1)
    assert status(done) == 0, done.stderr
    if "no maps of files" in done.stderr:
        pytest.skip(done.stderr)
    paths = {f["path"] for f in json.loads((tmp_path / "run" / "extents.json").read_text())["files"]}
    assert str(tmp_path / "mnt" / "late") in paths
