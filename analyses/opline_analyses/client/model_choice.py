# SPDX-License-Identifier: MIT
"""The op model of a recording that was made without one, chosen from what was recorded.

Takes the recording's directory and manifest; gives the model's note for ``recording.json`` and a line that says why.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from opline.capture.directory.recording import ModelNote, Recording, digest
from opline.capture.lttng import recipe
from opline.errors import OplineError
from opline.folder import Folder
from opline.model import load_model
from opline.paths import OWN_MODEL
from opline.talk import shown
from opline_analyses.infer import infer

_GENERIC_EVENTS = "opline:"  # the provider of tracepoints/opline_tp.h


class Choice(NamedTuple):
    """A model, as the manifest names it, and the reason in a line."""

    note: ModelNote
    why: str


def chosen_model(directory: Path, note: Recording) -> Choice | None:
    """``generic`` for events of opline_tp.h, what ``opline model infer`` proposes for other tracepoints (it is written
    into the directory), ``syscalls`` where system calls alone were recorded. None: nothing is known of any op.
    """
    app = next((channel for channel in note.channels if channel.name == recipe.APP_CHANNEL), None)
    why_not = ""
    if app is not None and app.event_count:
        if all(glob.startswith(_GENERIC_EVENTS) for glob in app.events):
            return _shipped("generic", "the command has the events of opline_tp.h")
        try:
            return _inferred(directory)
        except OplineError as error:
            why_not = f"`opline model infer` proposes none for its events ({error.lines[0]}), and "
    calls = f"{recipe.CALL_PROVIDER}:"
    if any(
        channel.event_count and (channel.syscalls or any(glob.startswith(calls) for glob in channel.events))
        for channel in note.channels
    ):
        return _shipped("syscalls", f"{why_not}its system calls were recorded")
    return None


def _shipped(name: str, why: str) -> Choice:
    return Choice(ModelNote(name, name, digest(load_model(name).text)), f"model: {name}, as {why} (--model changes it)")


def _inferred(directory: Path) -> Choice:
    """Raises OplineError where nothing is proposed that can be used."""
    text = infer(directory)
    with Folder(directory) as folder:
        folder.write(OWN_MODEL, text)
    path = directory / OWN_MODEL
    try:
        model = load_model(path if path.is_absolute() else f"./{path}")
        if not any(rule.role in ("begin", "soft_begin") for rule in model.rules):
            raise OplineError("no event begins an op")
    except OplineError:
        path.unlink()
        raise
    at = shown(str(path))
    return Choice(
        ModelNote(model.name, OWN_MODEL, digest(text)),
        f"model: what `opline model infer` proposes for these events, in {at}: read and correct it there",
    )
