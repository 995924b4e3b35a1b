# SPDX-License-Identifier: MIT
"""Waits as folded stacks: a line per stack, `class;stage;function;... nanoseconds` (the format: folded.py)."""

from __future__ import annotations

from typing import BinaryIO

from opline_analyses.export.folded import frame
from opline_analyses.export.wait_stacks import waited
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the stacks; gives the number of ops that count."""
    ops, stacks = waited(run, which)
    for op_class, frames, ns in stacks:
        out.write(f"{';'.join(map(frame, (op_class, *frames)))} {ns}\n".encode())
    return ops
