# SPDX-License-Identifier: MIT
"""Block events where no lttng-modules load: the BPF collector as a child process of the recording."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from opline.capture.leftovers import State
from opline.capture.sessiond import Sessiond

MODULE = "opline.capture.collector"


class BlockSource:
    @classmethod
    def find(cls, notes: list[str]) -> BlockSource | None:
        if os.geteuid() != 0:
            notes.append("no block events: not root; the application's events only")
            return None
        if importlib.util.find_spec(MODULE) is None:
            notes.append("no block events: the BPF collector is not installed")
            return None
        return None

    def start(self, daemon: Sessiond, state: State, mask: Iterable[int], directory: Path) -> None: ...

    def stop(self, notes: list[str]) -> dict[str, Any] | None: ...

    def kill(self) -> None: ...
