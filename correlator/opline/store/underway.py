# SPDX-License-Identifier: MIT
"""Whether a recording is still going on, and whether a folder has a run that is of all of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from opline.locks import is_held
from opline.paths import LOCK_NAME, is_recording
from opline.shapes import read_json
from opline.store.manifest import AGAIN, MANIFEST, RECORDING

if TYPE_CHECKING:
    from opline.paths import StrPath


def is_underway(folder: StrPath) -> bool:
    """Whether a recorder is still writing this recording: it holds the lock in the folder.

    Raises OplineError for a damaged one.
    """
    if not is_recording(folder):
        return False
    note = read_json(os.path.join(folder, "recording.json"), RECORDING)
    return note.get("state") == "recording" and is_held(os.path.join(folder, LOCK_NAME))


def has_run(folder: StrPath) -> bool:
    """Whether the folder has a whole run, and one of all that was recorded: what was made while the recording was going
    on is none. Raises OplineError for damaged manifests.
    """
    manifest = os.path.join(folder, "manifest.json")
    if not os.path.isfile(manifest) or is_underway(folder):
        return False
    if not is_recording(folder):
        return True
    then = (read_json(manifest, MANIFEST, AGAIN).get("recording") or {}).get("state")
    now = read_json(os.path.join(folder, "recording.json"), RECORDING).get("state")
    return then != "recording" or now == "recording"
