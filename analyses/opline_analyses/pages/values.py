# SPDX-License-Identifier: MIT
"""Values completed by a shell: models, and the classes and devices of a run. Returned at once or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST_BYTES = 8 << 20  # limit of a trace's size for reading its classes


def _models(_run: str) -> Iterable[str]:
    from opline.model import shipped_models

    return shipped_models()


def _classes(run: str) -> Iterable[str]:
    """The classes of the run's ops; none for a trace with a long reading time."""
    from opline.store.underway import has_run
    from opline_analyses.runs.run import open_run

    if not run or not (has_run(run) or _size(Path(run)) < MOST_BYTES):
        return []
    with open_run(run) as opened:
        found = opened.rows("SELECT DISTINCT class FROM ops WHERE class IS NOT NULL ORDER BY class")
    return [name for (name,) in found if " " not in name]  # a shell would split a name with blanks


def _devices(run: str) -> Iterable[str]:
    """The devices named in the recording."""
    from opline.shapes import parsed

    for name in ("recording.json", "manifest.json"):
        file = Path(run) / name
        if run and file.is_file():
            document = parsed(file.read_text())
            devices = (document.get("recording") or document).get("devices") or []
            if devices:
                return sorted(str(device["name"]) for device in devices)
    return []


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


VALUES: dict[str, Callable[[str], Iterable[str]]] = {"models": _models, "classes": _classes, "devices": _devices}
