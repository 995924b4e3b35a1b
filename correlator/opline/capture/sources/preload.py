# SPDX-License-Identifier: MIT
"""Libraries that a recording preloads into its command: tracepoints for programs that have none.

A name is a shim's (opline.capture.sources.shims), a text with a slash a file. The dynamic linker finds them in
``LD_PRELOAD`` (ld.so(8)); what the user has there already stays, behind them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from opline.capture.sources.shims import shims
from opline.errors import OplineError, UsageError


def find(names: Iterable[str]) -> list[Path]:
    """The libraries' files. Raises UsageError for a name that is none, OplineError for a file that is not there."""
    found, known = [], shims()
    for name in names:
        if "/" in name:
            path = Path(name).absolute()
        elif name in known:
            path = known[name].library
        else:
            raise UsageError(
                f"Nothing to preload is called {name}: opline has {', '.join(known)}; a file needs a slash."
            )
        if not path.is_file():
            hint = "; build it with make build" if name in known else ""
            raise OplineError(f"{path}, to be preloaded, is not there{hint}")
        if set(str(path)) & set(" :"):
            raise OplineError(f"{path} cannot be preloaded: LD_PRELOAD takes no path with a blank or a colon")
        found.append(path)
    return list(dict.fromkeys(found))


def has_loaded(pid: int, library: Path) -> bool | None:
    """Has a process this library, by its file's name? None if it may not be asked, or is gone."""
    try:
        with Path(f"/proc/{pid}/maps").open() as maps:
            # a library that was replaced since is followed by " (deleted)"
            return any(line.rstrip("\n").removesuffix(" (deleted)").endswith(f"/{library.name}") for line in maps)
    except OSError:
        return None
