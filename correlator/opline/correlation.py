# SPDX-License-Identifier: MIT
"""From a trace to a run, or to statistics alone: chooses a front end, drives the core, writes tables and manifest."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from opline import __version__, _core, losses
from opline.disks import disk_facts, joined_disks
from opline.errors import OplineError
from opline.gaps import FLUSHED_WITHIN_NS, gaps_of
from opline.losses import Gap
from opline.paths import is_recording, plain
from opline.population import counts_alone, recorded_commands, recorded_processes
from opline.readers import chunks
from opline.readers.front import found as found_traces
from opline.readers.front import reader_wanted
from opline.readers.native import NativeReader
from opline.readers.stream_ends import closed_until_ns, last_packet_end_ns
from opline.readers.threads import threads_wanted
from opline.readers.trace import (
    find_extents,
    find_stacks,
    find_traces,
    readers_of_traces,
    traces_under,
    undeclared,
)
from opline.reading import ReadAgainError, push
from opline.shapes import read_json
from opline.store.manifest import RECORDING
from opline.talk import talk
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from opline.folder import Access
    from opline.model import Model
    from opline.paths import StrPath
    from opline.readers.extents import FileMap
    from opline.readers.front import Front
    from opline.reading import Unreadable

SCHEMA_VERSION = 1


class Source(Value):
    """What a run is made of: some traces, the front end that reads them, and what is known besides their events."""

    path: str
    traces: list[str]
    front: Front
    why: str  # this front end
    maps: Mapping[Path, list[FileMap]]
    recording: Mapping[str, Any] | None
    gaps: Sequence[Gap]
    access: Access  # who may read the run
    of_cluster: Mapping[str, Any] | None = None  # what the plan says of several hosts
    stacks: Sequence[Mapping[str, Any]] = ()  # what the plan says of kernel stacks
    disks: Mapping[str, Sequence[Mapping[str, Any]]] | None = None  # of several hosts, by host


def source_of(trace: StrPath, reader: str | None = None, extents: Sequence[Path] = ()) -> Source:
    """The trace under ``trace``. ``extents``: maps of files besides those that lie with it. Raises OplineError."""
    traces, front, why = found_traces(trace, reader_wanted(reader))
    maps = _maps(trace, extents)
    recording = recording_of(trace)
    gaps = gaps_in(trace, recording, traces)
    access = readers_of_traces(trace, traces)
    stacks = _stacks(trace)
    return Source(os.path.abspath(trace), traces, front, why, maps, recording, gaps, access, stacks=stacks)


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
    durable: bool = True,
) -> dict[str, Any]:
    """Correlate the trace under ``trace`` into the run ``out``; gives the manifest. ``extents``: maps of files besides
    those that lie with the trace. With ``tables`` only these of the core's tables get rows: for a run that answers one
    question and is forgotten.

    Raises OplineError (one line); then nothing of the run is left behind.
    """
    source = source_of(trace, reader, extents)
    return correlate_source(source, model, out, match=match, progress=progress, tables=tables, durable=durable)


def correlate_source(
    source: Source,
    model: Model,
    out: StrPath,
    *,
    match: str = "pointer",
    progress: bool = True,
    tables: Sequence[str] | None = None,
    durable: bool = True,
) -> dict[str, Any]:
    """``correlate`` of traces that are found already."""
    front: Front = source.front
    unreadable: Unreadable = ()
    while True:
        try:
            return _correlate(source, front, unreadable, model, out, match, progress, tables, durable)
        except ReadAgainError as found:
            front, unreadable = found.front, found.unreadable


def _correlate(
    source: Source,
    front: Front,
    unreadable: Unreadable,
    model: Model,
    out: StrPath,
    match: str,
    progress: bool,
    tables: Sequence[str] | None,
    durable: bool,
) -> dict[str, Any]:
    """``correlate_source`` by one reading. Raises ReadAgainError; nothing of the run is left behind then."""
    # what statistics alone do not need
    import datetime
    from pathlib import Path

    from opline.store.writer import RunWriter

    began_ns = time.monotonic_ns()
    gaps = source.gaps
    core = _core.Core(_plan(model, match, source.maps, gaps, source.recording, source.of_cluster, source.stacks))
    if tables is not None:
        core.keep_tables((*tables, "losses"))
    if (threads := threads_wanted(2)) > 1:
        core.write_beside(max(1, threads - 2))
    if isinstance(front, NativeReader):
        front.threads = max(1, threads - 1)
    try:
        writer = RunWriter(Path(out), source.access, durable)
    except OSError as error:
        raise _not_written(out, error) from error

    try:
        done = push(
            front, core, progress, gaps, lambda: writer.write(core) if core.take_ready() else None,
            unreadable, source.recording,
        )  # fmt: skip
        for name, count in sorted(done.losses.items()):
            loss = losses.BY_NAME[name]
            core.loss(name, loss.severity.value, loss.origin.value, count)
        writer.write(core)
        manifest = {
            "schema": "opline-run",
            "schema_version": SCHEMA_VERSION,
            "opline": __version__,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "trace": source.path,
            "traces": source.traces,
            "reader": front.name,
            "reader_version": front.version(),
            "reader_reason": source.why,
            "reader_fast_events": front.fast_count() if isinstance(front, NativeReader) else None,
            "match": match,
            "extents": [{"file": str(path), "maps": [m.path for m in found]} for path, found in source.maps.items()],
            "model": {
                "name": model.name,
                "text": model.text,
                "sha256": digest(model),
            },
            "environment": front.environment(),
            "core": done.summary,
            "losses": done.losses,
            "plugs": front.plugs(),
            "read_messages": done.messages,
            "recording": source.recording,
            "gaps": [vars(gap) for gap in gaps],
            "took_ns": time.monotonic_ns() - began_ns,
        }
        if source.disks is not None:
            manifest["devices"] = joined_disks(done.summary.get("host_devices", ()), source.disks)
        writer.commit(manifest)
    except BaseException as error:
        writer.abort()
        if isinstance(error, OSError):
            raise _not_written(out, error) from error
        raise
    for message in done.messages:
        talk(message)
    return manifest


def _not_written(out: StrPath, error: OSError) -> OplineError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return OplineError(f"Cannot write the run {out}: {reason}.")


def _maps(trace: StrPath, named: Sequence[Path]) -> dict[Path, list[FileMap]]:
    """Maps of files by the file that has them: those that are named, and those that lie with the trace."""
    beside = find_extents(trace)
    if not named and not beside:
        return {}

    from pathlib import Path

    from opline.readers.extents import read_extents

    maps = {path.absolute(): read_extents(path) for path in named}
    own = _recording_folder(trace) is not None
    for path in map(Path, beside):
        if path.absolute() not in maps:
            maps[path.absolute()] = read_extents(path)
            if not own:  # of a recording that is what anybody expects
                talk(f"using the file map {path}")
    return maps


def _plan(
    model: Model,
    match: str,
    maps: Mapping[Path, list[FileMap]],
    gaps: Sequence[Gap],
    recording: Mapping[str, Any] | None,
    of_cluster: Mapping[str, Any] | None = None,
    stacks: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The model's plan, with what is known of this trace besides its events."""
    files = [m.plan() for found in maps.values() for m in found]
    lost = [gap.plan() for gap in gaps if gap.taints]
    about = recorded_processes(recording), disk_facts(recording)
    return model.plan_json(match, files, lost, *about, of_cluster, stacks, recorded_commands(recording))


def _stacks(trace: StrPath) -> list[dict[str, Any]]:
    """What the kernel stacks of the recording tell, for the plan. A damaged file is reported, and tells nothing."""
    path = find_stacks(trace)
    if path is None:
        return []
    from pathlib import Path

    from opline.readers.stacks import read_stacks

    try:
        return read_stacks(Path(path)).plan()
    except OplineError as error:
        talk(f"{error} The causes of waits are missing.")
        return []


def stage_statistics(
    trace: StrPath,
    model: Model,
    *,
    reader: str | None = None,
    extents: Sequence[Path] = (),
    tainted: bool = False,
    classes: Sequence[str] = (),
    without: Sequence[str] = (),
    progress: bool = True,
    all_programs: bool = False,
) -> tuple[dict[str, Any], dict[str, int]]:
    """Statistics per stage of the trace under ``trace`` (OpStatistics::json in statistics/op_statistics.hpp), without
    any table of a run, with the ``population`` and the ``ops`` of the core's summary; and the losses that are not zero.
    Tainted ops count if ``tainted``; with ``classes`` only ops of these do; those of classes that begin like one of
    ``without`` do where there are no others, or all programs' ops count; other programs' with ``all_programs``, or
    where the recorded ones did nothing. These two read the trace twice. ``without`` of what is given: what was applied.

    Raises OplineError.
    """
    traces, front, _why = found_traces(trace, reader_wanted(reader))
    recording = recording_of(trace)
    gaps = gaps_in(trace, recording, traces)
    plan = _plan(model, "pointer", _maps(trace, extents), gaps, recording)
    unreadable: Unreadable = ()
    without = () if all_programs else tuple(without)
    while True:
        core = _core.Core(plan)
        core.keep_tables(())
        core.keep_statistics(tainted, classes, without)
        if all_programs:
            core.count_all_programs()
        try:
            done = push(front, core, progress, gaps, lambda: None, unreadable, recording)
        except ReadAgainError as again:
            front, unreadable = again.front, again.unreadable
            continue
        found = json.loads(core.statistics())
        alone = all_programs or "population" not in done.summary or counts_alone(done.summary)
        left_out = bool(without and found["classes"]) and all(c.startswith(tuple(without)) for c in found["classes"])
        if alone and not left_out:
            break
        all_programs, without = all_programs or not alone, ()
        _traces, front, _why = found_traces(trace, reader_wanted(reader))
    for message in done.messages:
        talk(message)
    summary = done.summary
    return found | {"population": summary.get("population"), "ops": summary["ops"], "without": without}, done.losses


def feed_csv(
    trace: StrPath,
    model: Model,
    rows: _core.OpCsv,
    *,
    incomplete: bool = False,
    reader: str | None = None,
    extents: Sequence[Path] = (),
    progress: bool = True,
    all_programs: bool = False,
    unreadable: Unreadable = (),
) -> tuple[dict[str, Any], dict[str, int]]:
    """The ops of the trace under ``trace`` as rows of CSV, without any table of a run; incomplete ones too if
    ``incomplete``, other programs' with ``all_programs``. Gives the core's summary, and the losses that are not zero.

    Raises OplineError, and ReadAgainError: then begin anew, with other ``rows``.
    """
    traces, front, _why = found_traces(trace, reader_wanted(reader))
    recording = recording_of(trace)
    gaps = gaps_in(trace, recording, traces)
    core = _core.Core(_plan(model, "pointer", _maps(trace, extents), gaps, recording))
    core.write_csv(rows, incomplete)
    if all_programs:
        core.count_all_programs()

    def check() -> None:
        try:
            rows.check()
        except OSError as error:
            raise temporary_file_failed(error) from error

    done = push(front, core, progress, gaps, check, unreadable, recording)
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


def digest(model: Model) -> str:
    """SHA-256 of a model's text."""
    import hashlib

    return hashlib.sha256(model.text.encode()).hexdigest()


def recording_of(trace: StrPath) -> dict[str, Any] | None:
    """What `opline record` wrote about the trace, if it recorded it."""
    folder = _recording_folder(trace)
    return None if folder is None else dict(read_json(os.path.join(folder, "recording.json"), RECORDING))


def _recording_folder(trace: StrPath) -> StrPath | None:
    """The recording's directory, where the trace is one or lies in one."""
    return next((folder for folder in (trace, os.path.dirname(plain(trace))) if is_recording(folder)), None)


def gaps_in(trace: StrPath, recording: dict[str, Any] | None, traces: Sequence[str] | None = None) -> list[Gap]:
    """What its recorder knew to be missing from the trace, and what no reader can read. ``traces``: what is read of it;
    None: what find_traces gives. Raises OplineError.
    """
    folder = _recording_folder(trace)
    top = trace if folder is None else os.path.join(folder, "trace")
    found = find_traces(trace) if traces is None else traces
    if chunks.any_newer(traces_under(top), found):  # the state that the recorder wrote since then is of more than these
        recording = {**(recording or {}), "state": "recording"}
    known = gaps_of(recording, lambda: last_packet_end_ns(found), lambda: _closed_ns(top, found))
    return [*known, *(gap for gap in undeclared(top) if gap not in known)]


def _closed_ns(top: StrPath, traces: Sequence[str]) -> int | None:
    """Until when the closed chunks of a recording that goes on are whole; None if all that there is is read. What is
    older than FLUSHED_WITHIN_NS is in the files, whoever writes them.
    """
    if not chunks.any_newer(traces_under(top), traces):
        return None
    end_ns = closed_until_ns(traces)
    return None if end_ns is None else min(end_ns, time.monotonic_ns() - FLUSHED_WITHIN_NS)
