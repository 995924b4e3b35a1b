# SPDX-License-Identifier: MIT
"""The folder in which recordings write down what they would leave behind: ours alone, or not believed.

What is in it says which processes are to be ended. Below /tmp anybody can make a folder of that name first: owner and
mode are looked at by descriptor, before a byte of it is read.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from opline.errors import OplineError
from opline.folder import Folder

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_MOST_BYTES = 1 << 20


def runtime_dir() -> Path:
    """``$OPLINE_RUNTIME_DIR``, else ``/run/opline`` (root), ``$XDG_RUNTIME_DIR/opline``, ``/tmp/opline-UID``.

    Short on purpose: the path of a Unix socket below it must fit into 108 bytes.
    """
    chosen = os.environ.get("OPLINE_RUNTIME_DIR")
    if chosen:
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/run/opline")
    user = os.environ.get("XDG_RUNTIME_DIR")
    if user and os.access(user, os.W_OK):
        return Path(user) / "opline"
    return Path(f"/tmp/opline-{os.geteuid()}")


def folder_mode() -> int:
    """Of root's recordings processes of other users must reach the socket of the session daemon, and list nothing."""
    return 0o711 if os.geteuid() == 0 else 0o700


def is_ours(descriptor: int) -> bool:
    """Belongs to this user, and nobody else can write it."""
    about = os.fstat(descriptor)
    return about.st_uid == os.geteuid() and not about.st_mode & _WRITABLE_BY_OTHERS


def open_runtime(make: bool = False) -> Folder | None:
    """The runtime directory; None if it is not there (``make``: it is made). Raises OplineError if it is not ours."""
    path = runtime_dir()
    try:
        made = make and _make(path)
        folder = Folder(path, follow=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OplineError(f"{path} cannot be used: {error.strerror}; set OPLINE_RUNTIME_DIR") from error
    about = os.fstat(folder.descriptor)
    if not is_ours(folder.descriptor):
        folder.close()
        whose = f"belongs to user {about.st_uid}" if about.st_uid != os.geteuid() else "can be written by others"
        raise OplineError(f"{path} {whose}: what is in it is not believed; set OPLINE_RUNTIME_DIR to a folder of yours")
    chosen = "OPLINE_RUNTIME_DIR" in os.environ
    if made or (not chosen and stat.S_IMODE(about.st_mode) != folder_mode()):
        os.fchmod(folder.descriptor, folder_mode())
    return folder


def _make(path: Path) -> bool:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


def read_own(folder: Folder, name: str, most_bytes: int = _MOST_BYTES) -> bytes:
    """What a small file of ours says. Raises OSError, also where it is somebody else's, or no file."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder.descriptor)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not is_ours(descriptor):
            raise PermissionError
        return file.read(most_bytes)
