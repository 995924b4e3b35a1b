# SPDX-License-Identifier: MIT
"""Temporary folders that do not stay behind: each names its process, and the next one of the same user removes what a
killed process has left.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from opline import locks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAME = re.compile(r"opline-[a-z]+-(\d{1,10})-(\d{1,20})-\w+", re.ASCII)
_unfinished: dict[object, Callable[[], object]] = {}  # what removes each thing that must not stay


@contextmanager
def unfinished(remove: Callable[[], object]) -> Iterator[None]:
    """While this lasts, ``remove_unfinished`` calls ``remove``: of a process that ends without its ``finally``."""
    one = object()
    _unfinished[one] = remove
    try:
        yield
    finally:
        del _unfinished[one]


def remove_unfinished() -> None:
    """Remove the files and folders that are not finished, the latest first. Never raises."""
    for remove in reversed([*_unfinished.values()]):
        with suppress(Exception):
            remove()


def stat_fields(pid: int) -> list[bytes] | None:
    """/proc/PID/stat from the state on (proc(5), field 3), or None if the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return text[text.rindex(b")") + 2 :].split()  # comm may contain blanks and brackets


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot (field 22 of stat), or None if it is gone."""
    fields = stat_fields(pid)
    return None if fields is None or fields[0] in (b"Z", b"X") else int(fields[19])


@contextmanager
def scratch(purpose: str) -> Iterator[str]:
    """The path of a new folder in the system's place for such, removed at the end. Raises OSError."""
    sweep()
    made: list[Path] = []

    def remove() -> None:
        for one in made:
            shutil.rmtree(one, ignore_errors=True)

    held = None
    with unfinished(remove):
        try:
            held = _make(f"opline-{purpose}-{os.getpid()}-{start_ticks(os.getpid()) or 0}-", made)
            yield str(made[0])
        finally:
            try:
                remove()
            finally:
                remove()  # a signal may have ended the first
                if held is not None:
                    os.close(held)


def _make(prefix: str, made: list[Path]) -> int:
    """The descriptor that holds the lock of a new folder, which is the one in ``made``: it is there before the folder
    is, as a signal may come between. Raises OSError.
    """
    while True:
        made[:] = [Path(tempfile.gettempdir(), f"{prefix}{os.urandom(8).hex()}")]
        made[0].mkdir(mode=0o700)
        try:
            held = os.open(made[0], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:  # another process took it for a dead one's before it was locked
            continue
        if locks.take(held) and made[0].is_dir():
            return held
        os.close(held)


@contextmanager
def new_folder(path: Path, mode: int = 0o777) -> Iterator[Path]:
    """A folder beside ``path``, under a name of its own, which gets that name when it is complete; else it is removed.
    Raises OSError.
    """
    beside = path.parent / f".{path.name}.part-{os.getpid()}"
    beside.mkdir(mode)
    with unfinished(lambda: shutil.rmtree(beside, ignore_errors=True)):
        try:
            yield beside
            beside.rename(path)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def sweep() -> list[str]:
    """Remove folders of this user's processes that are gone, as the locks say; their paths. Never raises."""
    gone = []
    with suppress(OSError):
        for path in sorted(Path(tempfile.gettempdir()).iterdir()):
            if _NAME.fullmatch(path.name) and _remove(path):
                gone.append(str(path))
    return gone


def _remove(path: Path) -> bool:
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        about = os.fstat(held)
        if about.st_uid != os.geteuid() or not stat.S_ISDIR(about.st_mode):
            return False
        if not locks.take(held):
            return False
        shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(held)
    return True
