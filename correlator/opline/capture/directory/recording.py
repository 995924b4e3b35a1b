# SPDX-License-Identifier: MIT
"""``recording.json``: the manifest of a recording. ``docs/capture.md`` explains every field.

Written when tracing begins (``state`` = ``recording``) and again when it has ended, beside and then renamed.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opline.capture.directory.promises import Promise
from opline.capture.machine.devices import BlockDevice
from opline.capture.machine.machine import ClockSample, Host
from opline.errors import OplineError
from opline.folder import TRACERS, Folder
from opline.losses import Gap

FILE_NAME = "recording.json"
TRACE_NAME = "trace"
STDOUT_NAME = "stdout.txt"
STDERR_NAME = "stderr.txt"
SCHEMA = "opline-recording"
SCHEMA_VERSION = 1
FAILURES = (
    "tracer_died", "writes_failed", "collector_died", "streams_stuck", "not_recorded", "events_unaccounted",
    "events_of_others", "maps_missing",
)  # fmt: skip


@dataclass(slots=True)
class Command:
    """The traced command. ``exit_code`` or ``signal`` is None while it runs and where the other applies. ``pid``: its
    process, as the trace's events number it: in the root PID namespace.
    """

    argv: list[str]
    cwd: str
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    begin_monotonic_ns: int | None = None
    end_monotonic_ns: int | None = None
    stdout: str = STDOUT_NAME
    stderr: str = STDERR_NAME


@dataclass(slots=True)
class ModelNote:
    """The op model that chose the events. ``sha256`` is of its text."""

    name: str
    argument: str
    sha256: str


@dataclass(slots=True)
class ChannelNote:
    """One channel: what was asked of it and what came of it. None: not known."""

    name: str
    domain: str
    events: list[str]
    syscalls: list[str]
    contexts: list[str]
    subbuf_bytes: int
    subbuf_count: int
    event_count: int | None = None
    discarded_count: int | None = None
    lost_packet_count: int | None = None
    packet_count: int | None = None
    content_bytes: int | None = None


@dataclass(slots=True)
class Recording:
    """Everything about one recording that is not in the trace."""

    command: Command
    host: Host
    versions: dict[str, str | None]
    clocks_before: ClockSample
    session: str
    sessiond: str
    block_source: str  # "kernel", "bpf", "none"
    model: ModelNote | None = None
    state: str = "recording"  # "recording", "complete", "incomplete"
    trace: str = TRACE_NAME
    trace_bytes: int | None = None
    tracing_ended: str = ""  # before the command did: "size_limit", "disk_space", "sessiond_died", "consumerd_died"
    write_failed: bool = False  # the tracer could not write some packets: what they held is not known
    gaps: list[Gap] = field(default_factory=list)
    removed: dict[str, int] | None = None  # by --keep: how many chunks, up to which number, up to when (until_ns)
    promises: list[Promise] = field(default_factory=list)  # what was to be recorded, and whether it was
    clocks_after: ClockSample | None = None
    channels: list[ChannelNote] = field(default_factory=list)
    devices: list[BlockDevice] = field(default_factory=list)
    completed_before: dict[str, dict[str, int]] = field(default_factory=dict)  # machine.devices.completed
    completed_after: dict[str, dict[str, int]] = field(default_factory=dict)
    preload: list[str] = field(default_factory=list)
    collector: dict[str, Any] | None = None
    probes: dict[str, Any] | None = None  # those that the model declares
    attached: list[int] = field(default_factory=list)  # processes that ran already
    rings: dict[str, Any] | None = None
    files: dict[str, Any] | None = None  # of extents.json: files mapped, changed, not mapped
    took_ns: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def event_count(self) -> int | None:
        """Events of all channels, or None if a channel was not counted."""
        counts = [c.event_count for c in self.channels]
        return None if None in counts else sum(c for c in counts if c is not None)

    def discarded_count(self) -> int | None:
        """Discarded events of all channels, or None if a channel's are unknown."""
        counts = [c.discarded_count for c in self.channels]
        return None if None in counts else sum(c for c in counts if c is not None)

    def failed(self) -> list[str]:
        """Why something is missing that was to be recorded; empty if all is there, or the user wanted no more."""
        gaps = [gap.why for gap in self.gaps if gap.loss in FAILURES or self._no_room(gap)]
        broken = [promise.why for promise in self.promises if promise.kept is False]
        told = [why for why in broken if not any(why in gap for gap in gaps)]
        return list(dict.fromkeys([*gaps, *told, *(why for p in self.promises if (why := p.lost_too_much()))]))

    def _no_room(self, gap: Gap) -> bool:
        return gap.loss == "recording_cut_short" and self.tracing_ended == "disk_space"

    def document(self) -> dict[str, Any]:
        """As it is written: plain JSON types."""
        content = dataclasses.asdict(self)
        begin, end = self.clocks_before, self.clocks_after
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "begin": {"wall": wall_text(begin.realtime_ns), "monotonic_ns": begin.monotonic_ns},
            "end": None if end is None else {"wall": wall_text(end.realtime_ns), "monotonic_ns": end.monotonic_ns},
            "event_count": self.event_count(),
            "discarded_count": self.discarded_count(),
            **content,
            "gaps": [dict(vars(gap)) for gap in self.gaps],
        }

    def write(self, folder: Folder) -> None:
        """Write ``recording.json``, to the disk itself, into the directory; raises OSError."""
        folder.write(FILE_NAME, json.dumps(self.document(), indent=1) + "\n", TRACERS, durable=True)


def wall_text(realtime_ns: int) -> str:
    """UTC in ISO 8601, to the microsecond."""
    seconds, rest = divmod(realtime_ns, 1_000_000_000)
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest // 1000:06d}Z"


def digest(text: str) -> str:
    """SHA-256 of a model's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def load(directory: Path) -> dict[str, Any]:
    """The manifest of a recording as plain JSON types. Raises OplineError if it is not there or not one."""
    path = directory / FILE_NAME
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise OplineError(f"{path}: {error.strerror}; is {directory} a recording?") from error
    except (ValueError, RecursionError) as error:
        raise OplineError(f"{path}: not JSON ({error})") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise OplineError(f"{path}: not the manifest of a recording")
    if document.get("schema_version") != SCHEMA_VERSION:
        raise OplineError(f"{path}: version {document.get('schema_version')}; this opline reads {SCHEMA_VERSION}")
    return document
