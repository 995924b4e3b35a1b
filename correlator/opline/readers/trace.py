# SPDX-License-Identifier: MIT
"""Finds the CTF traces under a path, and says in one line what is wrong where there are none. Finds the maps of files
that lie with a trace.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from opline.errors import TraceError
from opline.folder import readers_of
from opline.losses import Gap
from opline.paths import is_recording, plain
from opline.readers import chunks, registry, stacks
from opline.readers.metadata import declares_nothing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from opline.folder import Access
    from opline.paths import StrPath

_PACKETIZED = (b"\x57\x1d\xd1\x75", b"\x75\xd1\x1d\x57")  # the magic of metadata in packets, both byte orders
_PACKET_HEADER_BYTES = 37
_RECORDING_ABOVE = 8  # folders between a recording and its traces (trace/ust/uid/0/64-bit), with room for a chunk's
_STREAM = (b"\xc1\x1f\xfc\xc1", b"\xc1\xfc\x1f\xc1")  # the magic of data streams, both byte orders
_TEXT_1_8 = b"/* CTF 1.8"
_CTF_2 = b"\x1e"  # JSON text sequences begin with a record separator (RFC 7464)


def find_traces(path: StrPath) -> list[str]:
    """The folders under ``path`` (itself included) that hold a CTF trace: a file ``metadata`` and streams. A file
    or a pipe of a format that has events is a trace by itself.

    Sorted by path, chunks of a rotated session by their number; of a recording that goes on the closed chunks. Raises
    TraceError if there is none, or one that is no CTF.
    """
    path = plain(path)
    try:
        os.stat(path)
    except FileNotFoundError as error:
        raise TraceError(f"{path} does not exist.") from error
    except OSError as error:
        raise TraceError(f"Cannot read {path}: {error.strerror}.") from error
    if not os.path.isdir(path):
        return registry.trace_format(path).files(path)
    found, unreadable = _with_metadata(path)
    if not found and (written := blktraces_in(path)):
        return written
    if not found:
        raise TraceError(_why_none(path, unreadable))
    declared = [folder for folder in found if not declares_nothing(folder)]
    for folder in declared or found:
        _check_metadata(os.path.join(folder, "metadata"))
    if not any(map(_bytes_of, declared or found)):
        raise TraceError(f"{path} has no data in its streams: nothing was recorded there.")
    if not declared:
        raise TraceError(f"{path} has no events: {_UNDECLARED}.")
    return sorted(chunks.closed(declared), key=chunks.place_of)


_UNDECLARED = "its metadata declares no stream (a program that ended before LTTng had registered it, or a cut-off file)"


def traces_under(path: StrPath) -> list[str]:
    """All folders under ``path`` with a file ``metadata``, in any state; none if it is a file."""
    return _with_metadata(plain(path))[0]


def undeclared(path: StrPath) -> list[Gap]:
    """What the traces under ``path`` lack that declare no stream: find_traces leaves them out."""
    path = plain(path)
    gaps = []
    for name in _with_metadata(path)[0]:
        if declares_nothing(name) and (size := _bytes_of(name)):
            why = f"{size:,} bytes of {os.path.relpath(name, path)} cannot be read: {_UNDECLARED}"
            gaps.append(Gap("not_recorded", why))
    return gaps


def _with_metadata(path: str) -> tuple[list[str], list[str]]:
    """The folders under ``path`` with a file ``metadata``, and those that cannot be read."""
    found: list[str] = []
    unreadable: list[str] = []
    for name, folders, files in os.walk(path, onerror=lambda e: unreadable.append(str(e.filename))):
        folders[:] = sorted(f for f in folders if f not in ("index", chunks.REMOVING))
        if "metadata" in files:
            found.append(plain(name))
    return found, unreadable


def _bytes_of(folder: StrPath) -> int:
    return sum(os.stat(p).st_size for p in stream_files(folder))


def blktraces_in(folder: StrPath) -> list[str]:
    """blktrace's files that are not empty, of all devices, right in a folder."""
    from opline.readers.formats import blktrace

    try:
        return [file for file in blktrace.files_in(folder) if registry.format_of(file) is blktrace]
    except OSError:
        return []


def stream_files(folder: StrPath) -> list[str]:
    """The data stream files of a trace, as babeltrace2 sees them: everything that is not metadata nor hidden."""
    with os.scandir(folder) as entries:
        return sorted(e.path for e in entries if e.name != "metadata" and not e.name.startswith(".") and e.is_file())


def readers_of_traces(top: StrPath, traces: Sequence[str]) -> Access:
    """Who may read all of these traces, which were found under ``top``."""
    top = plain(top)
    if not os.path.isdir(top):
        return readers_of(sorted({top, *traces}))
    if any(not os.path.isdir(folder) for folder in traces):  # blktrace's
        return readers_of(sorted({top, *traces}))
    parts = {top}
    for folder in traces:
        parts |= {os.path.join(folder, "metadata"), *stream_files(folder)}
        while folder != top and folder:
            parts.add(folder)
            folder = os.path.dirname(folder)
    return readers_of(sorted(parts))


def find_extents(trace: StrPath) -> list[str]:
    """The maps that lie with a trace: ``TRACE.filefrag`` beside it, ``extents.json`` of its recording."""
    trace = plain(trace)
    places = [(trace if os.path.isabs(trace) else plain(os.path.join(os.getcwd(), trace))) + ".filefrag"]
    places += [os.path.join(p, "extents.json") for p in (trace, os.path.dirname(trace)) if is_recording(p)]
    return [p for p in places if os.path.isfile(p)]


def find_stacks(trace: StrPath) -> str | None:
    """``stacks.json`` of the recording of which it is the trace, or which it is."""
    trace = plain(trace)
    places = (os.path.join(p, stacks.FILE_NAME) for p in (trace, os.path.dirname(trace)) if is_recording(p))
    return next((p for p in places if os.path.isfile(p)), None)


def no_stream(traces: Sequence[StrPath], messages: Sequence[str] = ()) -> TraceError:
    """None of a trace's files can be read. ``messages``: what is wrong with each."""
    if messages:
        return TraceError(f"{traces[0]} has no data stream that can be read: {messages[0]}.")
    return TraceError(f"{traces[0]} has no data stream that can be read: nothing was recorded, or all is damaged.")


@lru_cache(maxsize=4)
def _manifest(path: str, _inode: int, _written_ns: int) -> Any:
    """Each of a hundred chunks is of one recording. Raises OSError, ValueError."""
    from opline.shapes import parsed

    with open(path) as text:
        return parsed(text.read())


def _recorded(folder: StrPath, what: str) -> dict[str, Any]:
    """What the recording that a trace is part of says of something; empty if there is none, or it says nothing."""
    at = os.path.abspath(folder)
    for _ in range(_RECORDING_ABOVE):
        if is_recording(at):
            try:
                about = os.stat(manifest := os.path.join(at, "recording.json"))
                return dict(_manifest(manifest, about.st_ino, about.st_mtime_ns)[what])
            except (OSError, ValueError, KeyError, TypeError):
                return {}
        at = os.path.dirname(at)
    return {}


def host_recorded(folder: StrPath) -> dict[str, Any]:
    """What the recording that a trace is part of says of its host; empty if there is none, or it says nothing."""
    return _recorded(folder, "host")


def first_kept(traces: Sequence[str]) -> list[str]:
    """Those traces of the first chunk that a recorder has kept: it removed the chunks before (`record --keep`)."""
    first: dict[tuple[str, ...], tuple[int, str]] = {}
    for trace in traces:
        place, number = chunks.place_of(trace)
        first[place] = min((number, trace), first.get(place, (number, trace)))
    return [t for n, t in first.values() if n > 0 and _recorded(t, "removed").get("through", -1) >= n - 1]


def cpus_recorded(folder: StrPath) -> int:
    """How many CPUs the machine had, by the recording that a trace is part of; 0 if it is of none that says so."""
    count = host_recorded(folder).get("cpu_count")
    return count if isinstance(count, int) and count > 0 else 0


def _why_none(path: str, unreadable: list[str]) -> str:
    from pathlib import Path

    if unreadable:
        return f"Cannot read {unreadable[0]}: permission denied. Run as the user who recorded it, or as root."
    if not os.listdir(path):
        return f"{path} is empty: nothing was recorded there."
    if any(p.suffix == ".idx" or _begins_packet(p) for p in Path(path).rglob("*_[0-9]*")):
        return f"{path} has data streams but no `metadata`: the trace is incomplete. Copy the whole folder again."
    if is_recording(os.path.dirname(plain(path))):
        return f"{path} has no events: nothing that was to be recorded happened."
    if compressed := sorted(p.name for p in Path(path).iterdir() if p.suffix in (".gz", ".xz", ".zst", ".bz2")):
        return f"{path} has no trace but {compressed[0]}: unpack what is compressed."
    return f"{path} is not a CTF trace: no file `metadata` at or below it."


def _begins_packet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) in _STREAM
    except OSError:
        return False


def _check_metadata(path: str) -> None:
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except OSError as error:
        raise TraceError(f"Cannot read {path}: {error.strerror}.") from error
    if not head:
        raise TraceError(f"{path} is empty: the recording was cut off before it said anything. Record again.")
    if not head.startswith((*_PACKETIZED, _TEXT_1_8, _CTF_2)) and not _is_tsdl(path):
        raise TraceError(f"{path} is not the metadata of a CTF trace (it begins with {head[:4].hex(' ')}).")


def _is_tsdl(path: str) -> bool:
    """CTF 1.8's text without the comment that it should begin with: it has a block ``trace {``."""
    with open(path, "rb") as file:
        text = file.read()
    return b"\0" not in text and re.search(rb"(?m)^\s*trace\s*\{", text) is not None


def is_ctf_2(folder: StrPath) -> bool:
    """True for a trace whose metadata is CTF 2 (JSON text sequences), as it is or in packets."""
    with open(os.path.join(folder, "metadata"), "rb") as file:
        head = file.read(_PACKET_HEADER_BYTES + 1)
    return head[_PACKET_HEADER_BYTES if head.startswith(_PACKETIZED) else 0 :][:1] == _CTF_2
