# SPDX-License-Identifier: MIT
"""The tracer's buffers of a recording, where they outlive the daemons: in files of ours on a tmpfs (``--shm-path``).

What a consumer daemon had not written when it died is still there. ``lttng-crash`` makes packets of it, and they are
put behind those that the trace has. LTTng removes the files itself where a session ends in order.
"""

from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

from opline.capture.directory.place import Place
from opline.errors import OplineError
from opline.readers import chunks
from opline.readers.layout import Layout, layout_of
from opline.readers.metadata import metadata_text
from opline.readers.trace import stream_files

_TMPFS = Path("/dev/shm")
_EXTRACT_WITHIN_S = 60.0
_MAGIC = 0xC1FC1FC1
_INDEX = struct.Struct(
    ">IIII"
)  # magic, major, minor, bytes per record (lttng-tools 2.13, src/common/index/ctf-index.h)
_INDEX_HEAD = (0xC1F1DCC1, 1, 1, 72)
_RECORD = struct.Struct(
    ">QQQQQQQQQ"
)  # offset, packet bits, content bits, begin, end, discarded, stream, instance, number


class Buffers:
    """The buffers of one recorder's session."""

    def __init__(self, name: str) -> None:
        """``name``: of the recorder's folder in the runtime directory (leftovers.State)."""
        self._folder = _TMPFS / f"opline-{os.geteuid()}-{name}"
        self.path = self._folder / "lttng"  # for LTTng

    def make(self) -> bool:
        """Make their folder; False if it can't be: LTTng has buffers without a name then, which die with it."""
        try:
            self._folder.mkdir(mode=0o700)
            self.path.mkdir(mode=0o700)
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove what is left of them. Never raises."""
        if self.there():
            shutil.rmtree(self._folder, ignore_errors=True)

    def there(self) -> bool:
        """Is there such a folder, and is it ours? Anybody can make folders on that tmpfs."""
        try:
            about = self._folder.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()

    def rescue(self, trace: Path) -> int:
        """Put what is in them behind what ``trace`` has; how many packets. Before the daemon is told to do anything:
        it would remove the metadata that lttng-crash wants. Raises OplineError: what is missing then, and why.
        """
        if not self.there():
            return 0
        out = self._folder / "extract"
        try:
            return self._extract(out, trace)
        except OSError as error:
            raise OplineError(f"not all that was in the buffers could be written: {error.strerror}") from error
        finally:
            shutil.rmtree(out, ignore_errors=True)

    def _extract(self, out: Path, trace: Path) -> int:
        sessions = list(self.path.iterdir())
        now = Path(chunks.open_in(trace))
        self._lend_metadata(now, sessions)
        try:
            done = subprocess.run(
                ["lttng-crash", f"--extract={out}", str(self.path)],
                capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=_EXTRACT_WITHIN_S,
            )  # fmt: skip
            said = done.stderr.strip().splitlines()
        except (OSError, subprocess.TimeoutExpired) as error:
            said = [str(error)]
        found = [p for p in out.rglob("metadata") if p.is_file()] if out.is_dir() else []
        if not found and any(p.is_file() for s in sessions for p in s.rglob("*_[0-9]*")):
            raise OplineError(f"what was in the buffers could not be had: {said[-1] if said else 'lttng-crash failed'}")
        room = Place(trace.parent, made=False)
        return sum(_join(m.parent, now.joinpath(*m.parent.relative_to(out).parts[1:]), room) for m in found)

    @staticmethod
    def _lend_metadata(trace: Path, sessions: list[Path]) -> None:
        """Where LTTng has removed a stream's metadata already, the trace's own will do."""
        for session in sessions:
            for folder in {p.parent for p in session.rglob("*_[0-9]*") if p.is_file()}:
                written = trace / folder.relative_to(session) / "metadata"
                if not (folder / "metadata").exists() and written.is_file():
                    shutil.copyfile(written, folder / "metadata")


def _join(found: Path, folder: Path, room: Place) -> int:
    """Put the packets of ``found``, a trace, behind those of the same streams in ``folder``. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _join_metadata(found / "metadata", folder / "metadata")
    except OSError:  # without it nothing can be read: it gets of what is kept for the manifest
        room.release()
        _join_metadata(found / "metadata", folder / "metadata")
        room.reserve()
    layout = layout_of(found)
    if layout is None or not layout.counters:
        return 0
    return sum(_join_stream(Path(path), folder, layout) for path in stream_files(found))


def _join_metadata(found: Path, written: Path) -> None:
    """The longer one is the newer one: it only grows, and is written in pieces."""
    try:
        have = len(metadata_text(written.parent))
    except (OSError, ValueError):
        have = 0
    if len(found.read_text(errors="replace")) > have:
        part = written.with_name(written.name + ".part")
        try:
            shutil.copyfile(found, part)
            part.replace(written)
        finally:
            part.unlink(missing_ok=True)


def _join_stream(found: Path, folder: Path, layout: Layout) -> int:
    """What is not whole at the end of the stream that was written gives way; its index is made anew."""
    written = folder / found.name
    written.touch()
    records = list(_packets(written, layout))
    end = records[-1][0] + records[-1][1] // 8 if records else 0
    number = records[-1][8] if records else -1
    with written.open("r+b") as out, found.open("rb") as source:
        out.truncate(end)
        new = [record for record in _packets(found, layout) if record[8] > number]
        try:
            for record in new:
                source.seek(record[0])
                out.seek(end)
                out.write(source.read(record[1] // 8))
                out.flush()
                records.append((end, *record[1:]))
                end += record[1] // 8
        except OSError:
            os.ftruncate(out.fileno(), end)  # no room: whole packets only
            raise
        finally:
            if new:
                _write_index(folder / "index" / f"{found.name}.idx", records)
    return len(new)


def _packets(path: Path, layout: Layout) -> Iterator[tuple[int, ...]]:
    """An index record per packet that is whole, up to the first that is not."""
    size, at = path.stat().st_size, 0
    header = layout.sizes_at - 16
    with path.open("rb") as file:
        while at + layout.header_bytes <= size:
            file.seek(at)
            head = file.read(layout.header_bytes)
            content, packet = layout.sizes(head)
            sound = struct.unpack_from(layout.order + "I", head)[0] == _MAGIC and packet >= layout.header_bytes * 8
            if not sound or packet % 8 or content > packet or at + packet // 8 > size:
                return
            number, discarded = struct.unpack_from(layout.order + "QQ", head, layout.sizes_at + 16)
            (stream,) = struct.unpack_from(layout.order + "I", head, 20)
            instance = struct.unpack_from(layout.order + "Q", head, 24)[0] if header == 32 else 0
            yield at, packet, content, *layout.times(head), discarded, stream, instance, number
            at += packet // 8


def _write_index(path: Path, records: list[tuple[int, ...]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(_INDEX.pack(*_INDEX_HEAD) + b"".join(_RECORD.pack(*record) for record in records))
