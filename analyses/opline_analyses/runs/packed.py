# SPDX-License-Identifier: MIT
"""A packed run (opline.store.packed) as a run: where its tables are, and which paths of its manifest count."""

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
    """Of a packed run: its trace and its maps of files are not where the manifest of another machine says."""
    run.fresh = False
    run.manifest |= {"trace": str(run.path / "trace"), "traces": [], "extents": []}
