# SPDX-License-Identifier: MIT
"""A packed run: one file with the files of a run's folder, to mail and to keep.

It is a ZIP archive (PKWARE APPNOTE 6.3.10) whose members are stored as they are: the tables are compressed already, and
a member is never larger than the archive. The first member is ``opline-pack.json``. Any ZIP program opens the file.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.paths import PACKED_FIRST as FIRST
from opline.paths import plain
from opline.scratch import scratch
from opline.shapes import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO
    from zipfile import ZipFile

    from opline.paths import StrPath

SCHEMA = {"schema": "opline-pack", "version": 1}
#: Of a run: its tables and what explains them; a trace is no part of it. Of a cluster the runs of its hosts as well.
_MEMBER = re.compile(
    r"(runs/host=[^/\x00-\x1f]{1,255}/)?([a-z_]{1,40}\.parquet|clocks\.csv|model\.toml|std(out|err)\.txt"
    r"|(manifest|recording|extents|stacks|cluster)\.json)"
)
_MOST_MEMBERS = 100_000
_CHUNK = 1 << 20


def members(folder: Path) -> list[str]:
    """The files of a run's folder that belong into a packed run, by name. Raises OSError."""
    hosts = [file for host in (folder / "runs").glob("host=*") for file in host.iterdir()]
    found = [str(file.relative_to(folder)) for file in (*folder.iterdir(), *hosts) if file.is_file()]
    return sorted(name for name in found if _MEMBER.fullmatch(name))


def pack(folder: Path, out: BinaryIO, *, anonymous: bool = False) -> list[str]:
    """Writes the packed run of a run's folder; gives the names of its members. Raises OSError."""
    import zipfile

    names = members(folder)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(FIRST), json.dumps(SCHEMA | {"anonymous": anonymous}) + "\n")
        for name in names:  # without the files' times: equal runs are equal files
            file, entry = folder / name, zipfile.ZipInfo(name)
            size = file.stat().st_size
            with file.open("rb") as data, archive.open(entry, "w", force_zip64=size >= 1 << 31) as target:
                while chunk := data.read(_CHUNK):
                    target.write(chunk)
    return names


@contextmanager
def unpacked(path: StrPath) -> Iterator[Path]:
    """A temporary folder with the members of a packed run, removed afterwards. Raises OplineError for a file that is
    damaged, and for one whose members are not those of a run.
    """
    import zipfile

    path = plain(path)
    with scratch("packed") as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                _extract(archive, path, Path(folder))
        except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.filename not in (None, path):
                raise
            why = " ".join(str(error).split()) or type(error).__name__
            raise _damaged(path, why) from error
        yield Path(folder)


def _extract(archive: ZipFile, path: str, folder: Path) -> None:
    entries = archive.infolist()
    if len(entries) > _MOST_MEMBERS:
        raise _damaged(path, f"it has {len(entries)} members")
    left = Path(path).stat().st_size
    for entry in entries:
        left -= entry.file_size
        if entry.compress_type or entry.flag_bits & 1 or entry.file_size != entry.compress_size or left < 0:
            raise _damaged(path, f"a member is compressed or encrypted: {entry.filename[:80]!r}")
        if entry.filename == FIRST:
            about = parsed(archive.read(entry))
            if not isinstance(about, dict) or about.get("schema") != "opline-pack" or about.get("version") != 1:
                raise OplineError(f"{path} is not a packed run that this opline reads (version 1).")
            continue
        if not _MEMBER.fullmatch(entry.filename) or entry.filename.startswith("runs/host=.."):
            raise _damaged(path, f"it has a member that is no file of a run: {entry.filename[:80]!r}")
        target = folder / entry.filename
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with archive.open(entry) as data, target.open("xb") as out:  # x: two members of one name are damage
            while chunk := data.read(_CHUNK):
                out.write(chunk)


def _damaged(path: str, why: str) -> OplineError:
    return OplineError(f"Cannot read {path}: the packed run is damaged: {why}. Ask for the file again.")
