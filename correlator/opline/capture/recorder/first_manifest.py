# SPDX-License-Identifier: MIT
"""The manifest of a recording as it is when tracing begins: what is recorded, of what, with what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opline.capture.bpf import request_trace
from opline.capture.directory import recording
from opline.capture.directory.promises import Promise
from opline.capture.directory.recording import ChannelNote, ModelNote, Recording
from opline.capture.lttng import recipe
from opline.capture.lttng.recipe import Channel
from opline.capture.machine import devices, machine
from opline.capture.probes import hit_trace
from opline.capture.recorder import proof
from opline.capture.recorder.options import Options
from opline.paths import OWN_MODEL
from opline.values import Value

if TYPE_CHECKING:
    from opline.folder import Folder
    from opline.model import Model


class About(Value):
    """The session that traces: its name, whose daemon's it is, where block events come from, whether the model's probes
    are placed, which processes are attached to, and whether block requests have a record each.
    """

    session: str
    sessiond: str
    block_source: str
    probes: bool
    pids: Sequence[int]
    promises: Sequence[Promise]
    records: bool = False


def of(options: Options, about: About, channels: Sequence[Channel], notes: list[str]) -> Recording:
    """The manifest; ``notes`` become its own."""
    model = options.model
    told = [_told(channel) for channel in channels]
    for channel in told:  # the session has its events enabled, and the collector writes them
        if channel.name == recipe.CONTROL_CHANNEL:
            channel.name, channel.subbuf_bytes, channel.subbuf_count = recipe.BLOCK_CHANNEL, 0, 0
    if about.records:
        events = [f"block:{event}" for event in request_trace.EVENTS]
        told.append(ChannelNote(request_trace.CHANNEL, "ust", events, [], [], 0, 0))
    note = Recording(
        command=recording.Command(list(options.command), str(Path.cwd())),
        host=machine.host(),
        versions=machine.versions(),
        clocks_before=machine.sample_clocks(),
        session=about.session,
        sessiond=about.sessiond,
        block_source=about.block_source,
        model=ModelNote(model.name, options.model_argument, recording.digest(model.text)) if model else None,
        channels=[*told, _probes(model)] if model and about.probes else told,
        devices=devices.list_devices(),
        preload=[str(path) for path in options.preload],
        attached=list(about.pids),
        promises=list(about.promises),
        notes=notes,
    )
    proof.tell_not_had(note)
    return note


def write(note: Recording, options: Options, folder: Folder) -> None:
    """Writes the manifest, and before it the model that a file had."""
    if options.model is not None and options.model_argument == OWN_MODEL:
        folder.write(OWN_MODEL, options.model.text)
    note.write(folder)


def _told(channel: Channel) -> ChannelNote:
    domain = "kernel" if channel.kernel else "ust"
    lists = (list(channel.events), list(channel.syscalls), list(channel.contexts))
    return ChannelNote(channel.name, domain, *lists, channel.subbuf_bytes, channel.subbuf_count)


def _probes(model: Model) -> ChannelNote:
    """What the hits' collector writes, told as a channel of the session is."""
    events = [probe.event for probe in model.probes]
    return ChannelNote(hit_trace.CHANNEL, "ust", events, [], list(hit_trace.CONTEXTS), 0, 0)
