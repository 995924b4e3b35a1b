# SPDX-License-Identifier: MIT
"""``-o FILE``: what is a file is replaced when it is complete; what is something else stays what it is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.build_run import small_run

from opline_analyses.base.files import complete_file
from opline_analyses.cli import main

#: every command that has -o, and what it needs to write something
COMMANDS = (
    ["ops"], ["stages"], ["stages", "--csv"], ["csv"], ["sql", "SELECT op_id FROM ops"], ["graph"], ["losses"], ["btt"],
    ["requests"], ["coverage"],
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> str:
    return str(small_run(tmp_path / "run"))


def say(run: str, command: list[str], out: Path) -> int:
    return main([command[0], run, *command[1:], "-o", str(out)])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: "-".join(c[:2])[:14])
def test_a_link_is_written_through(command: list[str], run: str, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old" * 10_000)
    inode = target.stat().st_ino
    link.symlink_to(target)
    assert say(run, command, link) == 0
    assert link.is_symlink() and target.stat().st_ino == inode
    assert say(run, command, tmp_path / "plain") == 0
    assert target.read_bytes() == (tmp_path / "plain").read_bytes()
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("command", "name"),
    [(["csv"], "-"), (["stages"], "/dev/stdout"), (["heatmap"], "-"), (["export", "--to", "folded"], "-")],
)
def test_a_dash_is_standard_output(name: str, command: list[str], run: str, tmp_path: Path) -> None:
    """Whatever that is: what stood there before stays."""
    words = [sys.executable, "-m", "opline_analyses", command[0], run, *command[1:], "-o"]
    subprocess.run([*words, tmp_path / "plain"], check=True, stderr=subprocess.DEVNULL)
    (tmp_path / "all").write_bytes(b"before\n")
    with (tmp_path / "all").open("ab") as out:
        subprocess.run([*words, name], stdout=out, check=True, cwd=tmp_path, stderr=subprocess.DEVNULL)
    assert (tmp_path / "all").read_bytes() == b"before\n" + (tmp_path / "plain").read_bytes()
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_fifo_and_a_device_are_written_to(suffix: str, run: str, tmp_path: Path) -> None:
    fifo = tmp_path / f"fifo{suffix}"
    os.mkfifo(fifo)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    assert main(["plot", run, "-o", str(fifo)]) == 0
    reader.join(20)
    assert stat.S_ISFIFO(fifo.lstat().st_mode) and len(got[0]) > 1000


@pytest.fixture
def device(tmp_path: Path) -> Callable[[int], Path]:
    """Makes a device of its own: one of /dev would be gone from this machine where the test fails."""
    if os.geteuid() != 0:
        pytest.skip("makes a device")

    def make(minor: int) -> Path:
        path = tmp_path / f"device-{minor}"
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        try:
            path.open("rb").close()
        except PermissionError:
            pytest.skip("the file system has no devices")
        return path

    return make


def test_root_does_not_replace_a_device(run: str, device: Callable[[int], Path]) -> None:
    null = device(3)
    for command in COMMANDS:
        assert say(run, command, null) == 0
        assert stat.S_ISCHR(null.lstat().st_mode)


def test_a_full_device_is_one_line(run: str, device: Callable[[int], Path], capfd: pytest.CaptureFixture[str]) -> None:
    full = device(7)
    assert say(run, ["stages"], full) == 1
    assert capfd.readouterr().err == f"opline: Cannot write {full}: No space left on device.\n"
    assert stat.S_ISCHR(full.lstat().st_mode)


@pytest.mark.parametrize("option", ["-o", "--per-op"])
def test_a_directory_is_refused_before_any_work(
    option: str, tmp_path: Path, opline: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The run is not even looked for."""
    for where in (".", "", str(tmp_path), f"{tmp_path}/"):
        done = opline("coverage", "no-such-run", option, where, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith("opline: Cannot write ") and "is a directory" in done.stderr
        assert done.stderr.count("\n") == 1
    done = opline("plot", "no-such-run", "-o", "none/x.svg", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "opline: Cannot write none/x.svg: none is not there.\n")


def test_what_fails_half_way_leaves_nothing_half_written(tmp_path: Path) -> None:
    before, free, link = tmp_path / "before", tmp_path / "free", tmp_path / "link"
    before.write_text("old")
    (tmp_path / "target").write_text("old")
    link.symlink_to("target")
    for path in (before, free, link):
        with pytest.raises(KeyboardInterrupt), complete_file(path) as out:
            out.write(b"new" * 100_000)
            raise KeyboardInterrupt
    assert before.read_text() == "old" and not free.exists()
    assert (tmp_path / "target").read_text() == ""
    assert not list(tmp_path.glob("*.part"))


def test_a_link_that_lies_in_the_way_is_not_followed(run: str, tmp_path: Path) -> None:
    """In a folder where others may write: PATH.part, planted."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "out.csv.part").symlink_to(precious)
    assert say(run, ["csv"], tmp_path / "out.csv") == 0
    assert precious.read_text() == "mine"
    assert (tmp_path / "out.csv").read_text().startswith("op_id,") and not (tmp_path / "out.csv").is_symlink()


def test_a_file_keeps_its_mode(run: str, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.touch(mode=0o600)
    assert say(run, ["csv"], out) == 0
    assert out.stat().st_size and stat.S_IMODE(out.stat().st_mode) == 0o600


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: "-".join(c[:2])[:14])
def test_what_is_read_is_not_written(
    command: list[str], run: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in Path(run).iterdir()}
    (tmp_path / "link").symlink_to(run)
    for inside in (Path(run) / "manifest.json", tmp_path / "link" / "ops.parquet"):
        assert say(run, command, inside) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert line == f"opline: Cannot write {inside}: it is part of {run}, which is read. Name another file."
    assert {path: path.read_bytes() for path in Path(run).iterdir()} == before
