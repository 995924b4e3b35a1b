# SPDX-License-Identifier: MIT
"""What an input is that is neither a run nor a trace: histograms of other tools, or single latencies without requests.

The formats are those of the registry (opline.readers.registry), the traces' among them. `hist` and `heatmap` take what
has counts or values; of what there is no I/O the other commands can say nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.readers.registry import COUNTS, FIGURES, TRACES, VALUES, besides, format_of, refusal
from opline.talk import talk

if TYPE_CHECKING:
    from typing import Any, Protocol

    from opline.paths import StrPath
    from opline.readers.registry import Format
    from opline_analyses.counts.asked import Asked

    class Kind(Format, Protocol):
        """A format that has COUNTS or VALUES."""

        def read(self, asked: Asked) -> Any:
            """Of COUNTS the Snapshots, as they come; of VALUES a Batch, of times and latencies in ns, and what one of
            them is called. Raises OplineError.
            """


FOLDERS = (*TRACES, "opline_analyses.counts.formats")


_told: set[str] = set()  # inputs of which it was said what is left out


def _tell_others(path: StrPath, found: Format) -> None:
    """That an input has other tools' output besides, which is left out."""
    if str(path) in _told:
        return
    _told.add(str(path))
    for other in besides(path, FOLDERS):
        talk(f"{path} is {found.CALLED}, and has {other.CALLED}, too: that is left out. Give it in a file of its own.")


def _format_of(path: StrPath) -> Format | None:
    found = format_of(path, FOLDERS)
    if found is not None:
        _tell_others(path, found)
    return found


def kind_of(path: StrPath) -> Kind | None:
    """The format of an input that has counts or values; None of a run, a trace, and what nobody knows."""
    found = _format_of(path)
    return found if found is not None and found.HAS in (COUNTS, VALUES) else None  # type: ignore[return-value]


def kind_as_asked(path: StrPath, unitstime: str | None) -> Kind | None:
    """What an input is; two columns where --unitstime says so, whatever it begins with."""
    found = kind_of(path)
    if found is None and unitstime is not None:
        return importlib.import_module("opline_analyses.counts.formats.two_columns")
    return found


def refuse(path: StrPath) -> None:
    """Raises UsageError where the input has nothing that a command for I/Os and ops could work on."""
    found = _format_of(path)
    if found is not None and found.HAS in (COUNTS, VALUES, FIGURES):
        raise UsageError(refusal(path, found))
