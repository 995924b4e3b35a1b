# SPDX-License-Identifier: MIT
"""What is complete survives a power cut: data is on the disk before the name that vouches for it."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opline.correlation import correlate
from opline.folder import Folder, sync_tree
from opline.model import load_model
from opline.store.run import open_or_correlate

MODEL = str(Path(__file__).parents[1] / "models" / "lab.toml")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is synced, renamed and removed, in its order: (what, name)."""
    seen: list[tuple[str, str]] = []
    fsync, replace, unlink = os.fsync, os.replace, os.unlink

    def noted(what: str, work: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            seen.append((what, name(*args)))
            return work(*args, **named)

        return call

    monkeypatch.setattr(os, "fsync", noted("sync", fsync, lambda fd: Path(f"/proc/self/fd/{fd}").readlink().name))
    monkeypatch.setattr(os, "replace", noted("rename", replace, lambda a, b: str(b)))
    monkeypatch.setattr(os, "unlink", noted("remove", unlink, lambda p: Path(p).name))
    return seen


def test_a_runs_manifest_is_there_last(
    trace: Callable[[str], Path], tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    run = tmp_path / "run"
    for _ in range(2):  # the second time in place of a whole run
        calls.clear()
        correlate(trace("app-sync-qd4-nvme"), load_model(MODEL), run, progress=False)
    tables = sorted(p.name for p in run.glob("*.parquet"))
    first = calls.index(("rename", tables[0])) if ("rename", tables[0]) in calls else -1
    renames = [i for i, (what, _) in enumerate(calls) if what == "rename"]
    assert len(renames) == len(tables) + 1 and first >= 0
    before = calls[: renames[0]]
    assert {name for what, name in before if what == "sync"} == {
        *(f"{t}.part" for t in tables),
        "manifest.json.part",
        "run",
    }
    assert before[-2:] == [("remove", "manifest.json"), ("sync", "run")]
    assert calls[renames[-1] - 1 :] == [("sync", "run"), ("rename", "manifest.json"), ("sync", "run")]


def test_a_run_that_is_forgotten_costs_no_wait(trace: Callable[[str], Path], calls: list[tuple[str, str]]) -> None:
    with open_or_correlate(trace("app-sync-qd4-nvme"), MODEL):
        assert not [name for what, name in calls if what == "sync"]


@pytest.fixture
def no_unnamed_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that has none."""
    opened = os.open

    def refuse(path: Any, flags: int, *args: Any, **named: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return opened(path, flags, *args, **named)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.usefixtures("no_unnamed_files")
def test_a_manifest_of_a_recording(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    with Folder(tmp_path) as folder:
        folder.write("recording.json", "{}", durable=True)
    assert [c for c in calls if c[0] != "remove"] == [
        ("sync", "recording.json.part"), ("rename", "recording.json"), ("sync", tmp_path.name),
    ]  # fmt: skip


def test_a_file_takes_the_place_of_another_one_once_it_is_whole(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    with Folder(tmp_path) as folder:
        folder.write("recording.json", "first", durable=True)
        assert calls[-1] == ("sync", tmp_path.name) and (tmp_path / "recording.json").read_text() == "first"
        calls.clear()
        folder.write("recording.json", "{}", (0o600, None), durable=True)
    assert [c[0] for c in calls if c[0] != "remove"] == ["sync", "rename", "sync"]
    assert calls[-2:] == [("rename", "recording.json"), ("sync", tmp_path.name)]
    assert [p.name for p in tmp_path.iterdir()] == ["recording.json"]
    assert (tmp_path / "recording.json").read_text() == "{}"
    assert stat.S_IMODE((tmp_path / "recording.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("had", [None, "before"])
def test_a_writer_that_is_killed_leaves_nothing(tmp_path: Path, had: str | None) -> None:
    """It is killed while the file is written, before its name vouches for it."""
    if had is not None:
        (tmp_path / "extents.json").write_text(had)
    try:
        os.close(os.open(tmp_path, os.O_WRONLY | os.O_TMPFILE))
    except OSError:
        pytest.skip("the file system has no files without a name")
    killed = (
        "import os, signal, sys\nfrom opline.folder import Folder\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Folder(sys.argv[1]).write('extents.json', 'x' * 100_000, durable=True)"
    )
    done = subprocess.run([sys.executable, "-c", killed, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == ({} if had is None else {"extents.json": had})


def test_a_tree_with_its_names(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "stream_0").write_bytes(b"x")
    (tmp_path / "a" / "link").symlink_to("/dev/null")
    sync_tree(tmp_path)
    assert calls == [("sync", "stream_0"), ("sync", "b"), ("sync", "a"), ("sync", tmp_path.name)]
