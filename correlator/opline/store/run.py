# SPDX-License-Identifier: MIT
"""Finds the run behind a path: a run as it is; a recording or a trace is correlated first."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opline.correlation import SCHEMA_VERSION, correlate, digest, recording_of
from opline.errors import OplineError, UsageError
from opline.model import load_model
from opline.paths import is_recording, plain, recorded_model
from opline.readers.registry import trace_format
from opline.readers.trace import find_traces
from opline.shapes import fault_in, read_json
from opline.store.chosen import chosen, of_version, say
from opline.store.manifest import AGAIN, MANIFEST, RECORDING
from opline.store.underway import has_run, is_underway
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from opline.model import Model
    from opline.paths import StrPath
    from opline.store.chosen import Choice


BLOCKS_MODEL = "generic"  # where block events alone count: there is no op, whichever model


class RunOnDisk(Value):
    """A run's directory and its manifest."""

    path: Path
    manifest: dict[str, Any]


class BareTrace(Value):
    """A trace that no run is kept of, and the model that it is to be correlated with."""

    path: str
    model: Model


def locate(
    path: StrPath,
    model: str | None = None,
    *,
    reader: str | None = None,
    extents: Sequence[Path] = (),
    otherwise: str | None = None,
) -> RunOnDisk | BareTrace:
    """The run at ``path``, or the trace that is to be correlated first. A recording (``recording.json`` beside
    ``trace/``) is correlated in place at first need, with the model that it was recorded with; a bare trace, another
    model, further ``extents`` or a recording that is still going on are the caller's to correlate. ``otherwise``: the
    model where none is named or known.

    Raises OplineError.
    """
    path = plain(path)
    recorded = _recorded_model(path)
    if model is None and recorded is not None and (extents or is_underway(path)):
        model = recorded
    elif model is None and recorded is not None:
        with _alone(path):  # two commands at once: the second takes what the first has made
            if not has_run(path):
                correlate(os.path.join(path, "trace"), load_model(recorded), path, reader=reader)
    trace = os.path.join(path, "trace") if is_recording(path) else path
    if has_run(path):
        from pathlib import Path  # 5 ms to import: what counts a trace alone does without

        manifest = read_manifest(path)
        if not extents and (model is None or manifest["model"]["sha256"] == digest(load_model(model))):
            return RunOnDisk(Path(path), manifest)
        if trace == path:
            trace = manifest["trace"]
            if not os.path.isdir(trace):
                raise OplineError(
                    f"{path} was correlated with the model {manifest['model']['name']}, and its trace {trace} is gone: "
                    "leave out --model and --extents."
                )
    traces = find_traces(trace)  # what is wrong with the trace comes before what is missing on the command line
    choice = None
    if model is None:
        model = otherwise if os.path.isdir(traces[0]) else trace_format(traces[0]).MODEL
        if otherwise is None and (choice := _fitting(traces, trace)) is not None:
            model = choice.name
    if model is None:
        import shlex

        what = "a recording without an op model" if is_recording(path) else "a trace"
        proposed = f"`opline model infer {shlex.quote(path)} > mine.toml`"
        raise UsageError(
            f"{path} is {what}: name one with --model: generic for events of opline_tp.h, syscalls for system calls, "
            f"another of `opline model list`, or what {proposed} proposes."
        )
    named = load_model(model)
    fitting = of_version(named, traces)
    if choice is not None and fitting is named:
        say(choice)
    return BareTrace(trace, fitting)


def fitting(path: StrPath) -> Choice | None:
    """The model that a trace's own events leave, where none is named. Raises OplineError."""
    trace = plain(path)
    trace = os.path.join(trace, "trace") if is_recording(trace) else trace
    return _fitting(find_traces(trace), trace)


def _fitting(traces: Sequence[str], trace: StrPath) -> Choice | None:
    """None for a file whose format has a model of its own, too."""
    named = None if os.path.isdir(traces[0]) else trace_format(traces[0]).MODEL
    return chosen(traces, recording_of(trace)) if named in (None, BLOCKS_MODEL) else None


@contextmanager
def open_or_correlate(
    path: StrPath,
    model: str | None = None,
    *,
    reader: str | None = None,
    extents: Sequence[Path] = (),
    otherwise: str | None = None,
    tables: Sequence[str] | None = None,
) -> Iterator[RunOnDisk]:
    """The run that ``locate`` finds; a trace is correlated into a temporary one that is removed afterwards, with rows
    of these ``tables`` only.

    Raises OplineError.
    """
    found = locate(path, model, reader=reader, extents=extents, otherwise=otherwise)
    if isinstance(found, RunOnDisk):
        yield found
        return
    from pathlib import Path

    from opline.scratch import scratch

    with scratch("run") as folder:
        manifest = correlate(
            found.path, found.model, Path(folder), reader=reader, extents=extents, tables=tables, durable=False
        )
        yield RunOnDisk(Path(folder), manifest)


def read_manifest(path: StrPath) -> dict[str, Any]:
    """A run's manifest. Raises OplineError."""
    file = os.path.join(path, "manifest.json")
    manifest: dict[str, Any] = read_json(file, {}, AGAIN)
    if manifest.get("schema") != "opline-run" or manifest.get("schema_version") != SCHEMA_VERSION:
        raise OplineError(
            f"{file} is not the manifest of a run that this opline reads (version {SCHEMA_VERSION}). {AGAIN}"
        )
    if fault := fault_in(manifest, {"model": dict, "trace": str, **MANIFEST}):
        raise OplineError(f"Cannot read {file}: it is damaged: {fault}. {AGAIN}")
    return manifest


@contextmanager
def _alone(path: StrPath) -> Iterator[None]:
    """Nobody else correlates into this folder meanwhile."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _recorded_model(path: StrPath) -> str | None:
    """The model of a recording; None if it is none, or was recorded without a model."""
    if not is_recording(path):
        return None
    note = read_json(os.path.join(path, "recording.json"), RECORDING).get("model")
    if not note:
        return None
    return recorded_model(path, str(note["argument"]))
