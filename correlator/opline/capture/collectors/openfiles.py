# SPDX-License-Identifier: MIT
"""A process beside a recording that notes which files are opened, and where they lie on disk.

    python -P -m opline.capture.collectors.openfiles FILE --recorder PID

Says ``{"ready": true}`` on a line of standard output, or ``{"error": "..."}``. Until SIGTERM it takes fanotify's opens
and closes on every file system of a block device, of whom the recorder forks from then on and their descendants, and
maps each regular file when it is opened or closed, until it has a place, and whenever a writer closes it. At SIGTERM it
maps all files once more, for which the kernel writes out what it still has of them in memory, writes FILE
(docs/internals/stitching.md, "Extents") and says what it did as one line of JSON. Files in FILE's folder are left out.
Needs root; Linux 4.20 (FAN_MARK_FILESYSTEM).

What it can't see: a file opened in the instant in which its file system is mounted; what an overlay (a container's
root) or a btrfs hides of the device; files inherited as open; where a file was that moved twice; in a container, what
processes open that are gone at once.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import signal
import stat
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opline.capture.bpf.descendants import Descendants
from opline.capture.collectors import fiemap
from opline.capture.collectors.collector import die_with_parent
from opline.folder import TRACERS, Folder

VERSION = 1
MOST_FILES = 20_000
# linux/fanotify.h
_FAN_CLOEXEC, _FAN_NONBLOCK, _FAN_UNLIMITED_QUEUE = 0x1, 0x2, 0x10
_FAN_MARK_ADD, _FAN_MARK_FILESYSTEM = 0x1, 0x100
_FAN_OPEN, _FAN_CLOSE_WRITE, _FAN_CLOSE_NOWRITE, _FAN_Q_OVERFLOW = 0x20, 0x8, 0x10, 0x4000
_WATCHED = _FAN_OPEN | _FAN_CLOSE_WRITE | _FAN_CLOSE_NOWRITE
_EVENT = struct.Struct("=IBBHQii")  # length, version, reserved, metadata length, mask, fd, pid
_AT_FDCWD = -100
_LIBC = ctypes.CDLL(None, use_errno=True)


def mounts(text: str) -> dict[int, str]:
    """Device numbers (as stat(2) has them) of mounted file systems on block devices, with one mount point of each.

    ``text`` is that of /proc/self/mountinfo, see proc(5).
    """
    found: dict[int, str] = {}
    for line in text.splitlines():
        fields = line.split()
        major, _, minor = fields[2].partition(":")
        dev = os.makedev(int(major), int(minor))
        if dev not in found and fiemap.place(dev) is not None:
            # The octal escapes of blanks, see getmntent(3).
            found[dev] = fields[4].encode().decode("unicode_escape")
    return found


Key = tuple[int, int, int]


@dataclass(slots=True)
class Mapped:
    """A file: where it was when last seen. ``changed``: a part of it was elsewhere before."""

    path: str
    size_bytes: int
    extents: list[fiemap.Extent]
    changed: bool = False


@dataclass(slots=True)
class OpenFiles:
    """All files noted, by (device, inode, generation), but for those in the folder ``but``."""

    but: Path
    files: dict[Key, Mapped] = field(default_factory=dict)
    too_many: int = 0
    overflows: int = 0
    _places: dict[int, tuple[str, int] | None] = field(default_factory=dict)

    def _place(self, dev: int) -> tuple[str, int] | None:
        if dev not in self._places:
            self._places[dev] = fiemap.place(dev)
        return self._places[dev]

    def see(self, descriptor: int, wrote: bool = False) -> None:
        """Map an open file. Never raises for what a file system can't do."""
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or self._place(about.st_dev) is None:
            return
        key = (about.st_dev, about.st_ino, fiemap.generation(descriptor))
        known = self.files.get(key)
        if known is not None and not wrote and any(e.placed for e in known.extents):
            return
        if known is None and len(self.files) >= MOST_FILES:
            self.too_many += 1
            return
        try:
            extents = fiemap.extents(descriptor)
        except OSError:
            return
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink()).removesuffix(" (deleted)")
        if Path(path).is_relative_to(self.but):
            return
        self._merge(key, path, about.st_size, extents)

    def _merge(self, key: Key, path: str, size_bytes: int, extents: list[fiemap.Extent]) -> None:
        known = self.files.setdefault(key, Mapped(path, size_bytes, extents))
        known.changed |= fiemap.moved(known.extents, extents)
        known.path, known.size_bytes = path, size_bytes
        if any(e.placed for e in extents):
            known.extents = extents

    def finish(self) -> None:
        """Let what is still in memory be written, and map everything where it is now."""
        for key, known in self.files.items():
            try:
                descriptor = os.open(known.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                known.changed = True  # removed or renamed: its place may be another's since
                continue
            try:
                about = os.fstat(descriptor)
                if (about.st_dev, about.st_ino, fiemap.generation(descriptor)) == key:
                    self._merge(key, known.path, about.st_size, fiemap.extents(descriptor, sync=True))
                else:
                    known.changed = True
            except OSError:
                continue
            finally:
                os.close(descriptor)

    def document(self) -> dict[str, Any]:
        """As extents.json has it. Files that never had a place on the disk are left out."""
        return {
            "version": VERSION,
            "files": [
                {
                    "path": f.path,
                    "dev": f"{os.major(dev)}:{os.minor(dev)}",
                    "inode": inode,
                    "generation": generation,
                    "size_bytes": f.size_bytes,
                    **dict(zip(("disk", "start_sector"), self._place(dev) or (None, 0), strict=True)),
                    "changed": f.changed,
                    "extents": [e.document() for e in f.extents],
                }
                for (dev, inode, generation), f in self.files.items()
                if any(e.placed for e in f.extents)
            ],
        }


class Watch:
    """fanotify's opens and closes. Raises OSError where that is not permitted or not known."""

    def __init__(self) -> None:
        flags = _FAN_CLOEXEC | _FAN_NONBLOCK | _FAN_UNLIMITED_QUEUE
        self.descriptor = _LIBC.fanotify_init(flags, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_LARGEFILE", 0))
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._marked: set[int] = set()

    def mark(self, found: dict[int, str]) -> None:
        """Watch these file systems; those that are gone are forgotten."""
        self._marked &= set(found)
        for dev, point in found.items():
            if dev in self._marked:
                continue
            result = _LIBC.fanotify_mark(
                self.descriptor, _FAN_MARK_ADD | _FAN_MARK_FILESYSTEM, ctypes.c_uint64(_WATCHED),
                _AT_FDCWD, os.fsencode(point),
            )  # fmt: skip
            if result == 0:
                self._marked.add(dev)

    def close(self) -> int:
        """Watch no longer; how many file systems it were."""
        os.close(self.descriptor)
        return len(self._marked)

    def events(self, family: Descendants) -> Iterator[tuple[int, int, int]]:
        """(mask, descriptor, pid) of what has come; whoever takes one closes its descriptor (-1: none).

        ``family`` is told of all forks before.
        """
        while True:
            try:
                data = os.read(self.descriptor, 4096)
            except BlockingIOError:
                return
            family.update()
            at = 0
            while at < len(data):
                length, _, _, _, mask, descriptor, pid = _EVENT.unpack_from(data, at)
                at += length
                yield mask, descriptor, pid


def _watch(watch: Watch, files: OpenFiles, family: Descendants, wake: int) -> None:
    with Path("/proc/self/mountinfo").open() as table:
        poll = select.poll()
        poll.register(watch.descriptor, select.POLLIN)
        poll.register(table.fileno(), select.POLLPRI)  # a file system was mounted or unmounted: proc(5)
        poll.register(wake, select.POLLIN)
        watch.mark(mounts(table.read()))
        while True:
            ready = dict(poll.poll())
            if table.fileno() in ready:
                table.seek(0)
                watch.mark(mounts(table.read()))
            for mask, descriptor, pid in watch.events(family):
                if mask & _FAN_Q_OVERFLOW:
                    files.overflows += 1
                if descriptor < 0:
                    continue
                try:
                    if family.has(pid):
                        files.see(descriptor, bool(mask & _FAN_CLOSE_WRITE))
                finally:
                    os.close(descriptor)
            if wake in ready:
                return


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit status."""
    parser = argparse.ArgumentParser(prog="openfiles", description="Where the files lie that are opened.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--recorder", type=int, required=True)
    options = parser.parse_args(arguments)
    parent = os.getppid()
    wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
    folder = Folder(options.file.parent)  # now, before what is recorded runs
    try:
        watch = Watch()
    except (OSError, AttributeError) as error:  # AttributeError: a C library without fanotify
        sys.stdout.write(json.dumps({"error": f"opened files cannot be watched: {error}"}) + "\n")
        return 1
    files, family = OpenFiles(options.file.parent.resolve()), Descendants(options.recorder)
    watch.mark(mounts(Path("/proc/self/mountinfo").read_text()))
    sys.stdout.write(json.dumps({"ready": True}) + "\n")
    sys.stdout.flush()
    _watch(watch, files, family, wake)
    end_ns = time.monotonic_ns()
    files.finish()
    document = files.document()
    folder.write(options.file.name, json.dumps(document) + "\n", TRACERS)
    report = {
        "mapped": len(document["files"]),
        "changed": sum(f["changed"] for f in document["files"]),
        "not_mapped": files.too_many,
        "overflows": files.overflows + family.overflows,
        "forks_reported": family.exact,
        "end_ns": end_ns,
    }
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
