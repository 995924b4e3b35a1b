# SPDX-License-Identifier: MIT
"""A packed run (opline.store.packed) as a run: the place of its tables, and the valid paths of its manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.store.packed import unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from opline_analyses.runs.run import Run


def folder_of(path: Path, model: str | None, extents: Sequence[Path]) -> AbstractContextManager[Path]:
    """The temporary folder of a packed run. Raises OplineError."""
    if model is not None or extents:
        raise UsageError(f"{path} is a packed run, without its trace: leave out --model and --extents.")
    return unpacked(path)


def forget_trace(run: Run) -> None:
    """In a packed run, trace and maps of files are not at the paths of the other machine's manifest."""
    run.fresh = False
    run.manifest |= {"trace": str(run.path / "trace"), "traces": [], "extents": []}
