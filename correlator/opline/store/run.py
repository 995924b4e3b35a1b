# SPDX-License-Identifier: MIT
"""Finds the run behind a path: a run as it is; a recording or a trace is correlated first."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opline.correlate import correlate
from opline.errors import OplineError, UsageError
from opline.model import load_model
from opline.readers.trace import find_traces


@dataclass(frozen=True, slots=True)
class RunOnDisk:
    """A run's directory and its manifest."""

    path: Path
    manifest: dict[str, Any]


def is_run(path: Path) -> bool:
    """A directory that has a manifest is a whole run."""
    return (path / "manifest.json").is_file()


@contextmanager
def open_or_correlate(path: Path, model: str | None = None, *, reader: str | None = None) -> Iterator[RunOnDisk]:
    """The run at ``path``. A recording (``recording.json`` beside ``trace/``) is correlated in place at first need,
    with the model that it was recorded with; a bare trace, or another model, into a temporary run that is removed
    afterwards.

    Raises OplineError.
    """
    recorded = _recorded_model(path)
    if is_run(path) and model is None:
        yield RunOnDisk(path, json.loads((path / "manifest.json").read_text()))
        return
    if recorded is not None and model in (None, recorded):
        trace = path / "trace"
        yield RunOnDisk(path, correlate(trace, load_model(recorded), path, reader=reader))
        return
    trace = path / "trace" if (path / "recording.json").is_file() else path
    find_traces(trace)  # what is wrong with the trace comes before what is missing on the command line
    if model is None:
        raise UsageError(f"{path} is a trace: say with --model which op model it has (`opline model list`).")
    with tempfile.TemporaryDirectory(prefix="opline-") as folder:
        yield RunOnDisk(Path(folder), correlate(trace, load_model(model), Path(folder), reader=reader))


def _recorded_model(path: Path) -> str | None:
    """The model of a recording; None if it is none, or was recorded without a model."""
    manifest = path / "recording.json"
    if not manifest.is_file():
        return None
    try:
        note = json.loads(manifest.read_text()).get("model")
    except (ValueError, AttributeError) as error:
        raise OplineError(f"Cannot read {manifest}: not the manifest of a recording.") from error
    return str(note["argument"]) if note else None
