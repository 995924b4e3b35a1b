# SPDX-License-Identifier: MIT
"""Shims: libraries that opline preloads into the programs of an application, because these have no tracepoints.

A shim has a collector of its own, which takes the events of the programs' threads and passes them on. Each shim is the
hook `shim` of an application (opline.applications.table).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path

from opline.applications import table
from opline.capture.directory.state import State
from opline.capture.lttng.sessiond import Sessiond
from opline.capture.sources.childsource import ChildSource
from opline.values import Value


class ShimSource(ChildSource, ABC):
    """The collector of a shim in one recording."""

    @abstractmethod
    def start(self, daemon: Sessiond, state: State, mask: Iterable[int]) -> None:
        """Start it and wait until it listens. Raises OplineError with its own words if it cannot."""


class Shim(Value):
    """``name``: what `--preload` and a model's `preload` call it. ``relayed``: the provider of its collector's events.
    ``warnings``: what to tell somebody who records with it; takes whether the recording has its own session daemon.
    """

    name: str
    library: Path
    relayed: str
    source: Callable[[], ShimSource]
    warnings: Callable[[bool], list[str]]


def shims() -> dict[str, Shim]:
    """Every shim by its name."""
    return {hook.SHIM.name: hook.SHIM for hook in table.hooks("shim")}
