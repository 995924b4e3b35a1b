# SPDX-License-Identifier: MIT
"""Whose cgroup: two cgroups with a fio each on one loop device, direct I/O and write-back; filters and groups by it."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.capture.test_extents_capture import ext4
from tests.lib.block_capture import dev_of
from tests.lib.recorder import status

from opline.capture.bpf.btf import Btf
from opline.capture.bpf.cgroups import definitions
from opline.capture.machine.processes import cgroup_of, in_cgroup

pytestmark = pytest.mark.live
Run = Callable[..., subprocess.CompletedProcess[str]]
OPLINE = str(Path(sys.executable).with_name("opline"))
IOS = 300
FILE = 8 << 20

# in CGROUP COMMAND...: the command's process is in the cgroup before it runs the command
JOBS = """
inside() { sh -c 'echo $$ >'"$CGROUPS/$1"'/cgroup.procs; shift; exec "$@"' - "$@"; }
cd "$1"
for n in a b; do
    inside $n fio --name=direct-$n --filename=d$n --size=4M --direct=1 --bs=4k --rw=randwrite --ioengine=libaio \
        --iodepth=4 --number_ios=300 --output=direct-$n.json --output-format=json &
done
wait
for n in a b; do
    inside $n fio --name=cached-$n --filename=w$n --size=8M --bs=4k --rw=write --ioengine=psync --output=/dev/null &
done
wait
sync
"""


@pytest.fixture(scope="module")
def cgroups() -> Iterator[Path]:
    """The directory of a cgroup of cgroup2 with the cgroups `a` and `b`."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found = next((Path(m[1]) for m in mounts if m[2] == "cgroup2"), None)
    if found is None:
        pytest.skip("no cgroup2 is mounted")
    top = found / f"opline-test-{os.getpid()}"
    try:
        (top / "a").mkdir(parents=True)
        (top / "b").mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    yield top
    for folder in (top / "a", top / "b", top):
        folder.rmdir()


def _rows(opline: Run, run: Path, query: str) -> list[dict[str, Any]]:
    done = opline("sql", run, query, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def recorded(cgroups: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, str, int]]:
    """The run, the folder that the jobs wrote in, and the path of the cgroup above."""
    folder = tmp_path_factory.mktemp("cgroups")
    with ext4(folder / "mnt") as (device, mounted):
        env = {**os.environ, "CGROUPS": str(cgroups)}
        argv = [OPLINE, "record", "-o", str(folder / "run"), "--quiet", "--model", "syscalls", "--"]
        done = subprocess.run(
            [*argv, "sh", "-c", JOBS, "-", mounted], env=env, capture_output=True, text=True, timeout=120
        )
        assert status(done) == 0, done.stderr
        yield folder / "run", mounted, f"/{cgroups.name}", dev_of(device)


def test_direct_ios_are_their_cgroups(recorded: tuple[Path, Path, str, int], opline: Run) -> None:
    run, folder, top, dev = recorded
    for table, column in (
        ("ops", "class = 'io_submit write'"),
        ("bios", f"kind = 'write' AND comm = 'fio' AND dev = {dev}"),
    ):
        found = _rows(opline, run, f"SELECT cgroup, count(*) AS n FROM {table} WHERE {column} GROUP BY 1 ORDER BY 1")
        assert found == [{"cgroup": f"{top}/a", "n": IOS}, {"cgroup": f"{top}/b", "n": IOS}]
    for name in "ab":
        (job,) = json.loads((folder / f"direct-{name}.json").read_text())["jobs"]
        assert job["write"]["total_ios"] == IOS


def test_write_back_is_of_the_cgroup_that_dirtied_the_pages(recorded: tuple[Path, Path, str, int], opline: Run) -> None:
    run, _, top, dev = recorded
    # what the kernel's threads or sync queue, without the file system's own blocks, which are small
    found = _rows(
        opline, run,
        f"""SELECT cgroup, sum(nr_sectors) * 512 AS bytes FROM bios
            WHERE kind = 'write' AND comm <> 'fio' AND dev = {dev} GROUP BY 1""",
    )  # fmt: skip
    of = {row["cgroup"]: int(row["bytes"]) for row in found}
    assert of[f"{top}/a"] >= 0.99 * FILE and of[f"{top}/b"] >= 0.99 * FILE
    assert of[f"{top}/a"] <= 1.01 * FILE and of[f"{top}/b"] <= 1.01 * FILE


def test_filters_and_groups(recorded: tuple[Path, Path, str, int], opline: Run) -> None:
    run, _, top, dev = recorded
    where = ("-d", f"{dev >> 20}:{dev & 0xFFFFF}", "-i", "writes", "-n", "fio")
    # a histogram has the requests whose completion the kernel showed to BPF
    found = _rows(
        opline, run,
        f"""SELECT cgroup, count(*) AS n, count(complete_ns) AS seen FROM requests
            WHERE request_id IN (SELECT request_id FROM bios WHERE kind = 'write' AND comm = 'fio' AND dev = {dev})
            GROUP BY 1 ORDER BY 1""",
    )  # fmt: skip
    assert [(row["cgroup"], row["n"]) for row in found] == [(f"{top}/a", IOS), (f"{top}/b", IOS)]
    seen = {row["cgroup"]: row["seen"] for row in found}
    meant = json.loads(opline("hist", run, "--cgroup", f"{top}/a", *where, "--json").stdout)
    assert [group["count"] for group in meant["intervals"][0]["groups"]] == [seen[f"{top}/a"]]
    groups = opline("hist", run, "--by", "cgroup", *where).stdout
    assert all(f"{cgroup}: {n} I/Os" in groups for cgroup, n in seen.items())
    rows = list(csv.DictReader(opline("iostat", run, "--by", "cgroup", *where, "--csv").stdout.splitlines()))
    assert {row["cgroup"]: int(row["write_count"]) for row in rows} == seen
    assert sum(int(row["busy_ns"]) for row in rows) > 0
    stages = opline("csv", run, "--cgroup", f"{top}/b", "--class", "io_submit write").stdout.splitlines()
    assert len(stages) == 1 + IOS


def test_a_cgroup_is_meant_with_those_in_it(recorded: tuple[Path, Path, str, int], opline: Run) -> None:
    run, _, top, _ = recorded
    where = ("--class", "io_submit write")
    lines = {
        glob: len(opline("csv", run, "--cgroup", glob, *where).stdout.splitlines()) - 1
        for glob in (top, top[1:], f"{top}/a", "[b]", "elsewhere")
    }
    assert lines == {top: 2 * IOS, top[1:]: 2 * IOS, f"{top}/a": IOS, "[b]": IOS, "elsewhere": 0}


def test_processes_in_a_cgroup_are_also_those_further_down(cgroups: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            (cgroups / "b" / "cgroup.procs").write_text(str(process.pid))
            path = f"/{cgroups.name}"
            found = {glob: in_cgroup(glob) for glob in (path, cgroups.name, f"{path}/b", f"{path}/a", f"{path}/?/*")}
        finally:
            process.kill()
    inside = [process.pid]
    assert found == {path: inside, cgroups.name: inside, f"{path}/b": inside, f"{path}/a": [], f"{path}/?/*": []}


def test_the_object_of_a_call_is_the_files_path(recorded: tuple[Path, Path, str, int], opline: Run) -> None:
    run, folder, _, _ = recorded
    found = _rows(opline, run, "SELECT object, count(*) AS n FROM ops WHERE class = 'pwrite64' GROUP BY 1 ORDER BY 1")
    assert found == [{"object": f"{folder}/w{name}", "n": FILE // 4096} for name in "ab"]
    rows = opline("csv", run, "--object", f"{folder}/w*", "--cgroup", "*/a").stdout.splitlines()
    assert len(rows) == 1 + FILE // 4096
    assert not _rows(opline, run, "SELECT object FROM ops WHERE regexp_matches(object, '^[0-9]+$')")


def test_a_recording_of_a_cgroup(cgroups: Path, tmp_path: Path, opline: Run) -> None:
    code = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
while True:
    os.pwrite(fd, b"x", 0)
    time.sleep(0.01)
"""
    programs = []
    try:
        for name in "ab":
            argv = [sys.executable, "-c", code, str(tmp_path / name)]
            programs.append(subprocess.Popen(argv))
            (cgroups / name / "cgroup.procs").write_text(str(programs[-1].pid))
        done = opline(
            "record", "-o", tmp_path / "run", "--quiet", "--model", "syscalls", "--cgroup", f"/{cgroups.name}/b",
            "--duration", "1",
        )  # fmt: skip
        assert status(done) == 0, done.stderr
    finally:
        for program in programs:
            program.kill()
            program.wait()
    # Calls of the moment before the collector has looked through the threads that run already are of no known cgroup.
    found = _rows(
        opline, tmp_path / "run", "SELECT pid, max(cgroup) AS cgroup FROM ops WHERE class = 'pwrite64' GROUP BY 1"
    )
    assert found == [{"pid": programs[1].pid, "cgroup": f"/{cgroups.name}/b"}]
    other = f"SELECT count(*) AS n FROM ops WHERE cgroup <> '/{cgroups.name}/b'"
    assert _rows(opline, tmp_path / "run", other) == [{"n": 0}]
    nothing = opline("record", "-o", tmp_path / "none", "--cgroup", "/no/such/*", "--duration", "1")
    assert nothing.returncode == 1 and "no process is in such a cgroup" in nothing.stderr


def test_the_path_of_proc() -> None:
    assert cgroup_of("0::/system.slice/nginx.service\n") == "/system.slice/nginx.service"
    assert cgroup_of("5:cpu,cpuacct:/x\n4:memory:/docker/12\n0::/\n") == "/docker/12"
    assert cgroup_of("4:memory:/docker/12\n0::/a:b\n") == "/a:b"
    assert cgroup_of("") is None


def test_hierarchies(tmp_path: Path) -> None:
    btf = Btf.of_kernel()
    controllers, mounts = tmp_path / "cgroups", tmp_path / "mounts"
    (tmp_path / "cgroup.subtree_control").write_text("cpu io memory\n")
    mounts.write_text(f"cgroup2 {tmp_path} cgroup2 rw 0 0\n")
    controllers.write_text("#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t45\t1\nblkio\t0\t1\t1\n")
    found = definitions(btf, controllers, mounts)
    assert {"MEMORY_V2", "IO_V2"} <= found.keys() and "MEMORY_V1" not in found
    controllers.write_text("memory\t4\t45\t1\nblkio\t7\t1\t1\n")
    found = definitions(btf, controllers, mounts)
    assert found["MEMORY_V1"] == 4 and not {"MEMORY_V2", "IO_V2"} & found.keys()
