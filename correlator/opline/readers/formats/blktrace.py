# SPDX-License-Identifier: MIT
"""The front end for blktrace's binary files, version 7: one file for each CPU (sda.blktrace.0, sda.blktrace.1, ...),
or all of them in one, as `blktrace -o -` writes. They go through the block model like the events of any trace. The
core's own code reads the records (correlator/native/src/feed/blktrace_file.hpp has what they are).

What the format does not have: write-zeroes are writes in it, and whether a bio or a request completed is not said: a
device that never issues requests (device mapper) completes bios.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
import struct
from typing import TYPE_CHECKING

from opline import _core, mapped
from opline.errors import TraceError
from opline.readers import pipes
from opline.readers.clock import clock_of_ns
from opline.readers.registry import CERTAIN, EVENTS, NO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from opline.paths import StrPath
    from opline.readers.registry import Head

CALLED, HAS, MODEL = "blktrace's files", EVENTS, "generic"
SLICE = 1 << 13  # events
MAGIC, VERSION = 0x65617400, 7
_SIBLING = re.compile(r"(.*)\.blktrace\.(\d{1,5})")
_TOLD = 3
_NO_RECORD = -1  # in place of a version

_NAMES = (
    "block_bio_queue", "block_bio_backmerge", "block_bio_frontmerge", "block_getrq", "block_rq_requeue",
    "block_rq_issue", "block_rq_complete", "block_rq_insert", "block_split", "block_bio_bounce", "block_bio_remap",
)  # fmt: skip


def probe(head: Head) -> int:
    """CERTAIN where it begins with a record of blktrace."""
    return NO if _byte_order(head.data) is None else CERTAIN


def names(_head: Head) -> set[str]:
    """Of the actions that blktrace records by default."""
    return set(_NAMES)


def front(paths: list[str]) -> BlktraceReader:
    """What reads the files."""
    return BlktraceReader(paths)


def _byte_order(head: bytes) -> str | None:
    for order in "<>":
        if len(head) >= 4 and struct.unpack(order + "I", head[:4])[0] & 0xFFFFFF00 == MAGIC:
            return order
    return None


def files(path: str) -> list[str]:
    """All CPUs' files of the device whose file is named, without empty ones; else the file alone."""
    named = _SIBLING.fullmatch(path)
    if named is None:
        return [path]
    found = files_in(os.path.dirname(named[1]) or ".")
    mine = [p for p in found if (s := _SIBLING.fullmatch(p)) and _same(s[1], named[1])]
    return [file for file in mine if os.stat(file).st_size or file == path]


def _same(one: str, other: str) -> bool:
    return os.path.normpath(one) == os.path.normpath(other)


def files_in(folder: StrPath) -> list[str]:
    """blktrace's files in a folder, by device and CPU."""
    found = [name for name in os.listdir(folder) if re.fullmatch(r".+\.blktrace\.\d+", name)]
    by_cpu = sorted(found, key=lambda name: (name.rpartition(".")[0], int(name.rpartition(".")[2])))
    return [os.path.join(os.fspath(folder), name) for name in by_cpu]


def first_of(name: str) -> str | None:
    """The first file that is not empty of a device, as blkparse -i takes it, or of the set of a file that is named."""
    named = _SIBLING.fullmatch(name)
    device = named[1] if named else name
    try:
        found = files_in(os.path.dirname(device) or ".")
    except (OSError, ValueError):
        return None
    mine = [(path, int(file[2])) for path in found if (file := _SIBLING.fullmatch(path)) and _same(file[1], device)]
    if named and mine and int(named[2]) > mine[-1][1]:
        return None
    return next((path for path, _ in mine if os.path.getsize(path)), None)


def files_missing(paths: list[str]) -> list[str]:
    """The files that a device's set lacks before its last. blktrace makes one for each CPU, empty without events."""
    devices = sorted({file[1] for path in paths if (file := _SIBLING.fullmatch(path))})
    missing = []
    for device in devices:
        named = (_SIBLING.fullmatch(path) for path in files_in(os.path.dirname(device) or "."))
        there = {int(file[2]) for file in named if file and _same(file[1], device)}
        missing += [f"{device}.blktrace.{cpu}" for cpu in range(max(there, default=0)) if cpu not in there]
    return missing


class BlktraceReader:
    """Reads the files of one or several devices together. ``losses`` are known after reading."""

    name = "blktrace"

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths
        self._cut = 0
        self._missing = files_missing(paths)
        self._messages: list[str] = [
            f"{path}: there is no such file, and there are those of other CPUs" for path in self._missing[:_TOLD]
        ]
        self._origin: int | None = None
        self._plugs: list[dict[str, int]] = []

    def read(self, consumer: _core.Core | _core.Printer | _core.Dropper) -> Iterator[float | None]:
        """Push all events, in slices; each ``next()`` gives the share of the bytes read so far, None of a pipe."""
        assert not isinstance(consumer, _core.Dropper), "checks leave out events of CTF traces only"
        try:
            total = sum(os.stat(path).st_size for path in self._paths)
            found = [_bytes_of(path) for path in self._paths]
        except OSError as error:
            raise TraceError(f"Cannot read {error.filename or self._paths[0]}: {error.strerror}.") from error
        # one file may have all CPUs' records, each in its order
        feed = _core.BlktraceFeed(consumer, found, len(found) == 1 and not _SIBLING.fullmatch(self._paths[0]))
        more, pushed = True, 0
        while more:
            more = feed.run(SLICE)
            pushed, read, self._origin = feed.counts()
            yield min(1.0, read / total) if total else None
        for path, data in zip(self._paths, found, strict=True):
            if isinstance(data, mmap.mmap):
                _core.keep_if_shorter(path, len(data))
        mapped.check()
        self._check(feed.files())
        self._plugs = feed.plugs()
        if not pushed:
            raise TraceError(f"{self._paths[0]} has no event of a request: nothing was traced.")
        consumer.finish()

    def _check(self, files: list[tuple[int, int | None]]) -> None:
        """Counts the files that were not read to their end. Raises TraceError for one of another version."""
        known = list(zip(self._paths, files, strict=True))
        for path, (_, version) in known:
            if version == _NO_RECORD:
                raise TraceError(f"{path} does not begin with a record of blktrace.")
            if version is not None:
                raise TraceError(f"{path} is of version {version} of blktrace's format; {VERSION} is read.")
        cut = [(path, unread) for path, (unread, _) in known if unread]
        self._cut = len(cut)
        self._messages += [
            f"{path} is cut off or damaged: the last {unread} bytes are not read." for path, unread in cut[:_TOLD]
        ]

    def survey(self) -> dict[str, Any]:
        """The files say nothing of what is missing before they have been read."""
        return {}

    def losses(self) -> tuple[dict[str, int], list[str]]:
        """How many files are missing, or were not read to their end."""
        counts = {"streams_missing": len(self._missing), "damaged_streams": self._cut}
        return {name: count for name, count in counts.items() if count}, self._messages

    def plugs(self) -> list[dict[str, int]]:
        """Of each device that was plugged."""
        return self._plugs

    def version(self) -> None:
        """Our own: as opline's."""

    def environment(self) -> list[dict[str, Any]]:
        """The files; their clock is the kernel's, from which the time of day is so far as a note in them says."""
        clock = clock_of_ns("kernel", self._origin)
        return [{"path": path, "environment": {}, "clock": clock} for path in self._paths]


def _bytes_of(path: str) -> mmap.mmap | bytes:
    """A file where it lies; of a pipe, which has no place, what comes until its end. Raises OSError."""
    with pipes.opened(path) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read()
        if not os.fstat(file.fileno()).st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
