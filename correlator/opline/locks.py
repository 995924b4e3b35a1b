# SPDX-License-Identifier: MIT
"""Who is alive: a process holds a lock on a file (flock(2)) for as long as it lives, and the kernel lets go of the lock
when the process ends, however it ends. Unlike a PID, a lock means the same in every PID namespace and container that
shares the file.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

_PATIENCE_S = 1.0
_AGAIN_S = 0.001
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def take(descriptor: int) -> bool:
    """Lock an open file or directory for as long as it is open; False if another process holds the lock.

    Raises OSError where the file system has no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked(descriptor: int, patience_s: float = 0.0) -> int | None:
    """The descriptor, locked; else it is closed, and another process has the lock, or has removed the file. Raises
    OSError.
    """
    until = time.monotonic() + patience_s
    try:
        while not (taken := take(descriptor)) and os.fstat(descriptor).st_nlink and time.monotonic() < until:
            time.sleep(_AGAIN_S)
        if taken and os.fstat(descriptor).st_nlink:
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def make(name: str, folder: int) -> int | None:
    """The descriptor of a new file of this name in an open directory, locked; None if it is there, or another process
    was faster. Raises OSError.

    Between the making of the file and its lock another process may take the lock: one that only looks (``is_held``)
    has it for an instant, and is waited for; one that cleans up removes the file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, 0o660, dir_fd=folder)
    except FileExistsError:
        return None
    return _locked(descriptor, _PATIENCE_S)


def take_dead(name: str, folder: int | None = None) -> int | None:
    """The lock of a process that is gone, as a descriptor: whoever has it may clean up. None while the process lives,
    or while another process cleans up. Raises FileNotFoundError, other OSErrors.
    """
    descriptor = os.open(name, _FLAGS, dir_fd=folder)
    return _locked(descriptor)


def is_held(name: str, folder: int | None = None) -> bool:
    """Does a process hold the lock on this file? False where the file is not there, or can't be opened.

    Only looks: the lock is not taken, so a recorder that begins at this moment is not disturbed.
    """
    with suppress(OSError):
        descriptor = os.open(name, _FLAGS, dir_fd=folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False
