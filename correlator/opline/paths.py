# SPDX-License-Identifier: MIT
"""Paths as texts, for what every command does: pathlib takes 5 ms to import, a tenth of a start (docs/design.md)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    StrPath: TypeAlias = str | os.PathLike[str]


def plain(path: StrPath) -> str:
    """A path as pathlib writes it: without `./`, double slashes, and a slash at the end."""
    text = os.fspath(path)
    return ("/" if text[:1] == "/" else "") + "/".join(p for p in text.split("/") if p not in ("", ".")) or "."


def is_recording(folder: StrPath) -> bool:
    """A directory that `opline record` wrote."""
    return os.path.isfile(os.path.join(folder, "recording.json"))
