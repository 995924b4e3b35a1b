# SPDX-License-Identifier: MIT
"""Temporary folders that do not stay behind: each names its process, and the next one of the same user removes what a
killed process has left.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"opline-[a-z]+-(\d{1,10})-(\d{1,20})-\w+", re.ASCII)
_SESSION = re.compile(r"opline-(\d{1,10})-(\d{1,20})", re.ASCII)


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


def session_name(pid: int, ticks: int) -> str:
    """What the recorder with this process and start time calls its LTTng session."""
    return f"opline-{pid}-{ticks}"


def has_recorder(session: str) -> bool:
    """Whether the recorder that a session is named after is still there."""
    named = _SESSION.fullmatch(session)
    return named is not None and start_ticks(int(named[1])) == int(named[2])


@contextmanager
def scratch(purpose: str) -> Iterator[str]:
    """The path of a new folder in the system's place for such, removed at the end. Raises OSError."""
    sweep()
    pid = os.getpid()
    path = tempfile.mkdtemp(prefix=f"opline-{purpose}-{pid}-{start_ticks(pid) or 0}-")
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)  # so that it is seen from another PID namespace, too
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(held)


def sweep() -> list[str]:
    """Remove folders of this user's processes that are gone; their paths. Never raises."""
    gone = []
    with suppress(OSError):
        for path in sorted(Path(tempfile.gettempdir()).iterdir()):
            named = _NAME.fullmatch(path.name)
            if named is not None and start_ticks(int(named[1])) != int(named[2]) and _remove(path):
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
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except OSError:  # somebody holds it
        return False
    finally:
        os.close(held)
    return True
