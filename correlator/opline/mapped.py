# SPDX-License-Identifier: MIT
"""Mapped files that another program makes shorter while they are read: the kernel ends a process for that (mmap(2),
SIGBUS). The program's own handler reads zeros there instead (native/src/base/lost_pages.hpp), and says so.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from opline.errors import OplineError, TraceError


def outlive() -> None:
    """From here on, in this process. Not for a library: its host process has handlers of its own. Without the core
    (a machine that only records) no file is mapped.
    """
    with suppress(ImportError):
        from opline import _core

        _core.outlive_lost_pages()


def error() -> OplineError | None:
    """What to say, once, if a part of a mapped file was gone when it was read."""
    core = sys.modules.get("opline._core")
    path: str | None = None if core is None else core.take_file_with_lost_pages()
    if path is None:
        return None
    return TraceError(
        f"{path} changed while it was read: a part of it is gone, or its disk cannot read it. "
        "Read it again when no other program writes to it."
    )


def check() -> None:
    """Raises TraceError: what was read is not what the file had."""
    if (found := error()) is not None:
        raise found
