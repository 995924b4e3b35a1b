# SPDX-License-Identifier: MIT
"""From a trace to a run, or to statistics alone: chooses a front end, drives the core, writes tables and manifest."""

from __future__ import annotations

import json
import os
import sys
import time

from opline import __version__, _core, losses
from opline.errors import OplineError
from opline.paths import is_recording, plain
from opline.readers.front import choose, reader_wanted
from opline.readers.trace import find_extents, find_traces
from opline.talk import talk
from opline.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from opline.model import Model
    from opline.paths import StrPath
    from opline.readers.extents import FileMap
    from opline.readers.front import Front

SCHEMA_VERSION = 1


class Progress:
    """A line on stderr that says how far it is, where stderr is a terminal."""

    def __init__(self, on: bool) -> None:
        self._on = on and sys.stderr.isatty()
        self._next = time.monotonic() + 0.5

    def show(self, events: int, share: float | None) -> None:
        now = time.monotonic()
        if self._on and now >= self._next:
            self._next = now + 0.2
            how_far = "" if share is None else f" {share:4.0%}"
            sys.stderr.write(f"\rcorrelating{how_far}, {events:,} events ")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._on:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def correlate(
    trace: StrPath,
    model: Model,
    out: StrPath,
    *,
    reader: str | None = None,
    match: str = "pointer",
    extents: Sequence[Path] = (),
    progress: bool = True,
    tables: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Correlate the trace under ``trace`` into the run ``out``; gives the manifest. ``extents``: maps of files besides
    those that lie with the trace. With ``tables`` only these of the core's tables get rows: for a run that answers one
    question and is forgotten.

    Raises OplineError (one line); then nothing of the run is left behind.
    """
    # what statistics alone do not need
    import datetime
    from pathlib import Path

    from opline.store.writer import RunWriter

    began_ns = time.monotonic_ns()
    traces = find_traces(trace)
    front, why = choose(traces, reader_wanted(reader))
    maps = _maps(trace, extents)
    core = _core.Core(model.plan_json(match, [m.plan() for found in maps.values() for m in found]))
    if tables is not None:
        core.keep_tables((*tables, "losses"))
    writer = RunWriter(Path(out))

    try:
        done = _push(front, core, progress, lambda: writer.write(core) if core.take_ready() else None)
        for name, count in sorted(done.losses.items()):
            loss = losses.BY_NAME[name]
            core.loss(name, loss.severity.value, loss.origin.value, count)
        writer.write(core)
        manifest = {
            "schema": "opline-run",
            "schema_version": SCHEMA_VERSION,
            "opline": __version__,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "trace": str(Path(trace).absolute()),
            "traces": traces,
            "reader": front.name,
            "reader_version": front.version(),
            "reader_reason": why,
            "match": match,
            "extents": [{"file": str(path), "maps": [m.path for m in found]} for path, found in maps.items()],
            "model": {
                "name": model.name,
                "text": model.text,
                "sha256": digest(model),
            },
            "environment": front.environment(),
            "core": done.summary,
            "losses": done.losses,
            "read_messages": done.messages,
            "recording": recording_of(trace),
            "took_ns": time.monotonic_ns() - began_ns,
        }
        writer.commit(manifest)
    except BaseException as error:
        writer.abort()
        if isinstance(error, OSError):
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise OplineError(f"Cannot write the run {out}: {reason}.") from error
        raise
    for message in done.messages:
        talk(message)
    return manifest


def _maps(trace: StrPath, named: Sequence[Path]) -> dict[Path, list[FileMap]]:
    """Maps of files by the file that has them: those that are named, and those that lie with the trace."""
    beside = find_extents(trace)
    if not named and not beside:
        return {}

    from pathlib import Path

    from opline.readers.extents import read_extents

    maps = {path.absolute(): read_extents(path) for path in named}
    for path in map(Path, beside):
        if path.absolute() not in maps:
            maps[path.absolute()] = read_extents(path)
            talk(f"{path} says where files lie on disk: used.")
    return maps


def stage_statistics(
    trace: StrPath,
    model: Model,
    *,
    reader: str | None = None,
    extents: Sequence[Path] = (),
    tainted: bool = False,
    progress: bool = True,
) -> tuple[dict[str, Any], dict[str, int]]:
    """Statistics per stage of the trace under ``trace`` (StageStatistics::json in stage_stats.hpp), without any table
    of a run; and the losses that are not zero. Tainted ops count if ``tainted``.

    Raises OplineError.
    """
    front, _why = choose(find_traces(trace), reader_wanted(reader))
    maps = _maps(trace, extents)
    core = _core.Core(model.plan_json("pointer", [m.plan() for found in maps.values() for m in found]))
    core.keep_tables(())
    core.keep_statistics(tainted)
    done = _push(front, core, progress, lambda: None)
    for message in done.messages:
        talk(message)
    return json.loads(core.statistics()), done.losses


def feed_csv(
    trace: StrPath,
    model: Model,
    rows: _core.OpCsv,
    *,
    incomplete: bool = False,
    reader: str | None = None,
    extents: Sequence[Path] = (),
    progress: bool = True,
) -> tuple[dict[str, Any], dict[str, int]]:
    """The ops of the trace under ``trace`` as rows of CSV, without any table of a run; incomplete ones too if
    ``incomplete``. Gives the core's summary, and the losses that are not zero.

    Raises OplineError.
    """
    front, _why = choose(find_traces(trace), reader_wanted(reader))
    maps = _maps(trace, extents)
    core = _core.Core(model.plan_json("pointer", [m.plan() for found in maps.values() for m in found]))
    core.write_csv(rows, incomplete)

    def check() -> None:
        try:
            rows.check()
        except OSError as error:
            raise temporary_file_failed(error) from error

    done = _push(front, core, progress, check)
    for message in done.messages:
        talk(message)
    return done.summary, done.losses


def temporary_file_failed(error: OSError) -> OplineError:
    """What to raise for a temporary file that can't be written or read."""
    import tempfile

    return OplineError(
        f"Cannot keep what does not fit into memory in {tempfile.gettempdir()}: {error.strerror}. "
        "The variable TMPDIR names another folder."
    )


class _Done(Value):
    """What is known when the trace has been read: the core's summary, losses that are not zero, the reader's words."""

    summary: dict[str, Any]
    losses: dict[str, int]
    messages: list[str]


def _push(front: Front, core: _core.Core, progress: bool, after_slice: Callable[[], None]) -> _Done:
    """All events through the core; ``after_slice`` is called now and then."""
    line = Progress(progress)
    try:
        for share in front.read(core):
            line.show(core.events_seen(), share)
            after_slice()
    finally:
        line.clear()
    summary = json.loads(core.summary())
    counts, messages = front.losses()
    lost = losses.from_core(summary, counts)
    return _Done(summary, {name: count for name, count in lost.items() if count}, messages)


def digest(model: Model) -> str:
    """SHA-256 of a model's text."""
    import hashlib

    return hashlib.sha256(model.text.encode()).hexdigest()


def recording_of(trace: StrPath) -> dict[str, Any] | None:
    """What `opline record` wrote about the trace, if it recorded it."""
    for folder in (trace, os.path.dirname(plain(trace))):
        if is_recording(folder):
            path = os.path.join(folder, "recording.json")
            try:
                with open(path) as text:
                    return dict(json.load(text))
            except ValueError as error:
                raise OplineError(f"Cannot read {path}: not JSON ({error}).") from error
    return None
