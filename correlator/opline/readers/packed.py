# SPDX-License-Identifier: MIT
"""Inputs that hold another file, or nothing: what they are, and the command that gives what is in them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from opline.readers import pipes

if TYPE_CHECKING:
    from opline.paths import StrPath

#: The first bytes, what the file is, and the command that prints its contents.
_PACKED = (
    (b"\x1f\x8b", "compressed", "gzip -dc {}"),
    (b"\xfd7zXZ\0", "compressed", "xz -dc {}"),
    (b"\x28\xb5\x2f\xfd", "compressed", "zstd -dc {}"),
    (b"BZh", "compressed", "bzip2 -dc {}"),
    (b"\x04\x22\x4d\x18", "compressed", "lz4 -dc {}"),
    (b"PK\x03\x04", "an archive", "unzip -p {}"),
    *((begin, "a log that fio has compressed", "fio --inflate-log={}") for begin in (b"x\x01", b"x\x9c", b"x\xda")),
)
_TAR_AT, _TAR = 257, b"ustar"
_ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2")


def reason(path: StrPath) -> str:
    """Why an input of no known format cannot be read, if it is empty, compressed or an archive; else nothing."""
    try:
        data, whole = pipes.head(path, lambda *_: True)
    except (OSError, ValueError):
        return ""
    if whole and not data:
        return f"{path} is empty: nothing was traced, or the tool that wrote it has failed."
    name = shlex.quote(str(path))
    packed = next((one for one in _PACKED if data.startswith(one[0])), None)
    if data[_TAR_AT:].startswith(_TAR) or (packed is not None and str(path).endswith(_ARCHIVES)):
        return f"{path} is an archive: unpack it (tar -xf {name}), and give what is in it."
    if packed is None:
        return ""
    if not Path(path).is_file():
        return f"{path} is {packed[1]}: put `{packed[2].format('-')} |` before opline."
    return f"{path} is {packed[1]}: write its contents to a file ({packed[2].format(name)} > FILE), and give that."
