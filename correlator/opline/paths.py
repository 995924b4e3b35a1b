# SPDX-License-Identifier: MIT
"""Paths as texts, for what every command does: pathlib takes 5 ms to import, a tenth of a start
(docs/internals/design.md)."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    StrPath: TypeAlias = str | os.PathLike[str]


#: In a recording's directory: the recorder holds a lock on this file until the recording is over (opline.locks).
LOCK_NAME = ".lock"
#: The first member of a packed run (opline.store.packed).
PACKED_FIRST = "opline-pack.json"
_LOCAL_HEADER = b"PK\x03\x04"  # of a ZIP archive, APPNOTE 4.3.7: the name's length at 26, the name from 30 on


def plain(path: StrPath) -> str:
    """A path as pathlib writes it: without `./`, double slashes, and a slash at the end."""
    text = os.fspath(path)
    return ("/" if text[:1] == "/" else "") + "/".join(p for p in text.split("/") if p not in ("", ".")) or "."


def is_utf8(name: str) -> bool:
    """Whether a name, as Python has it, is text: a byte that is not UTF-8 is a surrogate in it (PEP 383)."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def name_bytes(name: str) -> bytes:
    """The bytes of a name, as Python has it; of a half of a pair that stands for no byte the bytes of its code."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        whole = ("surrogateescape" if "\udc80" <= c <= "\udcff" else "surrogatepass" for c in name)
        return b"".join(c.encode("utf-8", errors) for c, errors in zip(name, whole, strict=True))


def stored(name: str) -> str:
    """A name as tables and outputs have it: `\\xff` for each byte that is not UTF-8 (docs/internals/outputs.md)."""
    return name if is_utf8(name) else name_bytes(name).decode("utf-8", "backslashreplace")


def is_recording(folder: StrPath) -> bool:
    """A directory that `opline record` wrote."""
    return os.path.isfile(os.path.join(folder, "recording.json"))


#: The op model that a recording brings along: that of a file, or one that was proposed from its events.
OWN_MODEL = "model.toml"


def recorded_model(recording: StrPath, argument: str) -> str:
    """What finds the op model of a recording whose manifest has this ``argument``: the recording's own, or a name."""
    return os.path.join(os.path.abspath(recording), OWN_MODEL) if argument == OWN_MODEL else argument


def begins_packed(head: bytes) -> bool:
    """Whether these are the first bytes of a packed run."""
    length = len(PACKED_FIRST).to_bytes(2, "little")
    return head[:4] == _LOCAL_HEADER and head[26:28] == length and head[30:].startswith(PACKED_FIRST.encode())


def is_packed(path: StrPath) -> bool:
    """Whether a path is a packed run. A pipe is not: a packed run is read from its end."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return begins_packed(file.read(30 + len(PACKED_FIRST)))
    except (OSError, ValueError):
        return False
