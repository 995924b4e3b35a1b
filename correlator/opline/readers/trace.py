# SPDX-License-Identifier: MIT
"""Finds the CTF traces under a path, and says in one line what is wrong where there are none. Finds the maps of files
that lie with a trace.
"""

from __future__ import annotations

import os
from pathlib import Path

from opline.errors import OplineError

_PACKETIZED = (b"\x57\x1d\xd1\x75", b"\x75\xd1\x1d\x57")  # the magic of metadata in packets, both byte orders
_PACKET_HEADER_BYTES = 37
_STREAM = (b"\xc1\x1f\xfc\xc1", b"\xc1\xfc\x1f\xc1")  # the magic of data streams, both byte orders
_TEXT_1_8 = b"/* CTF 1.8"
_CTF_2 = b"\x1e"  # JSON text sequences begin with a record separator (RFC 7464)


class TraceError(OplineError):
    """A trace that can't be read: what, where, what to do."""


def find_traces(path: Path) -> list[Path]:
    """The folders under ``path`` (itself included) that hold a CTF trace: a file ``metadata`` and streams.

    Sorted by path. Raises TraceError if there is none, or one that is no CTF.
    """
    try:
        path.stat()
    except FileNotFoundError as error:
        raise TraceError(f"{path} does not exist.") from error
    except OSError as error:
        raise TraceError(f"Cannot read {path}: {error.strerror}.") from error
    if not path.is_dir():
        raise TraceError(f"{path} is a file: give the folder of a CTF trace (the one with `metadata` at or below it).")
    unreadable: list[str] = []
    found: list[Path] = []
    for name, folders, files in os.walk(path, onerror=lambda e: unreadable.append(str(e.filename))):
        folders[:] = sorted(f for f in folders if f != "index")
        if "metadata" in files:
            found.append(Path(name))
    if not found:
        raise TraceError(_why_none(path, unreadable))
    for folder in found:
        _check_metadata(folder / "metadata")
    if not any(p.stat().st_size for folder in found for p in stream_files(folder)):
        raise TraceError(f"{path} has no data in its streams: nothing was recorded there.")
    return sorted(found)


def stream_files(folder: Path) -> list[Path]:
    """The data stream files of a trace, as babeltrace2 sees them: everything that is not metadata nor hidden."""
    return sorted(p for p in folder.iterdir() if p.name != "metadata" and not p.name.startswith(".") and p.is_file())


def find_extents(trace: Path) -> list[Path]:
    """The maps that lie with a trace: ``TRACE.filefrag`` beside it, ``extents.json`` of its recording."""
    places = [Path(f"{trace.absolute()}.filefrag")]
    places += [p / "extents.json" for p in (trace, trace.parent) if (p / "recording.json").is_file()]
    return [p for p in places if p.is_file()]


def _why_none(path: Path, unreadable: list[str]) -> str:
    if unreadable:
        return f"Cannot read {unreadable[0]}: permission denied. Run as the user who recorded it, or as root."
    if not any(path.iterdir()):
        return f"{path} is empty: nothing was recorded there."
    if any(p.suffix == ".idx" or _begins_packet(p) for p in path.rglob("*_[0-9]*")):
        return f"{path} has data streams but no `metadata`: the trace is incomplete. Copy the whole folder again."
    return f"{path} is not a CTF trace: no file `metadata` at or below it."


def _begins_packet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) in _STREAM
    except OSError:
        return False


def _check_metadata(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise TraceError(f"Cannot read {path}: {error.strerror}.") from error
    if not head:
        raise TraceError(f"{path} is empty: the recording was cut off before it said anything. Record again.")
    if not head.startswith((*_PACKETIZED, _TEXT_1_8, _CTF_2)):
        raise TraceError(f"{path} is not the metadata of a CTF trace (it begins with {head[:4].hex(' ')}).")


def is_ctf_2(folder: Path) -> bool:
    """True for a trace whose metadata is CTF 2 (JSON text sequences), as it is or in packets."""
    with (folder / "metadata").open("rb") as file:
        head = file.read(_PACKET_HEADER_BYTES + 1)
    return head[_PACKET_HEADER_BYTES if head.startswith(_PACKETIZED) else 0 :][:1] == _CTF_2
