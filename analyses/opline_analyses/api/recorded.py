# SPDX-License-Identifier: MIT
"""`opline.record([...])`: a recording, made by the command's own code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.values import Value
from opline_analyses.api import recording
from opline_analyses.api.recording import Wish

if TYPE_CHECKING:
    from opline_analyses.api.run import Run
    from opline_analyses.base.given import Option


class Recorded(Value):
    """A recording: where it lies, and the exit status of `opline record`: the command's own, or 3 where the command is
    well and something is missing.
    """

    path: Path
    status: int

    def open(self) -> Run:
        """The run of it. Raises OplineError."""
        from opline_analyses.api.run import open as open_path

        return open_path(self.path)


def record(command: Sequence[str], output: str | Path, *, model: str | None = None, **options: Option) -> Recorded:
    """Records a command into the new directory ``output``, as `opline record` does, with its options
    (``no_block=True`` is --no-block); what it says goes to standard error. In the main thread only, which gets the
    signals.

    Raises OplineError where nothing could be recorded.
    """
    path = Path(output)
    given = vars(Wish.from_options({"command": (), "model": model, **options}))
    status = recording.record(Wish(**given | {"command": [*map(str, command)], "output": path}))
    if not (path / "recording.json").is_file():
        raise OplineError(f"Nothing was recorded in {path}: opline record ended with status {status}.")
    return Recorded(path, status)
