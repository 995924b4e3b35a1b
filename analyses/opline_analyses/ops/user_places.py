# SPDX-License-Identifier: MIT
"""The place in the program where a thread waited, in words: functions of the recorded user stacks
(opline.readers.stacks).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from opline.readers.stacks import Stack, Stacks, read_stacks
from opline.readers.trace import find_stacks
from opline.talk import shown

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

#: `function+0xoffset [file]`: one function, for any place inside. Without a known name the offset stays.
OFFSET = re.compile(r"\+0x[0-9a-f]+(?= \[|$)")
_FRAME = re.compile(r"(.*) \[([^[]*)\]")
_UNNAMED = re.compile(r"\[(.+)\]")
# A system call's own function repeats `cause`: of the C library, of the loader, of the kernel in the process
_OF_THE_SYSTEM = re.compile(r"(libc|libpthread|librt|ld-linux|ld-musl|ld|libc-|libpthread-|vdso|uprobes)\b.*|anonymous")


def stacks_of(run: Run) -> Stacks | None:
    """None: the recording has no stacks, or is missing. A joined run has none: each of its recordings has separate
    numbers. Raises OplineError if stacks.json is damaged.
    """
    path = next(filter(None, map(find_stacks, run.places())), None)
    return None if path is None else read_stacks(Path(path))


def _without_arguments(name: str) -> str:
    """Of a C++ function: `a::b(int) const` → `a::b`."""
    end = name.rfind(")")
    depth = 0
    for at in range(end, 0, -1):
        depth += {")": 1, "(": -1}.get(name[at], 0)
        if depth == 0:
            return name[:at]
    return name


def place_of(stack: Stack) -> str | None:
    """The innermost function outside of the C library: `append (store)`; None: no such function in the stack."""
    for frame in stack.user:
        named, unnamed = _FRAME.fullmatch(OFFSET.sub("", frame)), _UNNAMED.fullmatch(frame)
        if named is not None and not _OF_THE_SYSTEM.fullmatch(named[2]):
            return shown(f"{_without_arguments(named[1])} ({named[2]})")
        if unnamed is not None and not _OF_THE_SYSTEM.fullmatch(unnamed[1].partition("+")[0]):
            return shown(unnamed[1])
    return None
