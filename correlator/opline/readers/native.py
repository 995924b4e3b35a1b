# SPDX-License-Identifier: MIT
"""The native front end: CTF 1.8 and CTF 2. What it does not recognise is ``Unsupported``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opline import _core
from opline.errors import TraceError
from opline.readers.threads import threads_wanted
from opline.readers.trace import cpus_recorded, first_kept, no_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeAlias

    HostClock: TypeAlias = tuple[str, list[tuple[int, int]]]

Unsupported = _core.Unsupported
EVENTS_PER_SLICE = 1 << 15


def _one_line(error: ValueError) -> str:
    """It may quote metadata, line breaks and all."""
    return " ".join(str(error).split())


class NativeReader:
    """Reads the traces into a consumer. ``losses`` and ``environment`` are known after reading."""

    name = "native"

    def __init__(self, traces: Sequence[str], hosts: Sequence[HostClock] = ()) -> None:
        """Maps the files and compiles the metadata. ``hosts``: of each trace, if they are of several: its host's name,
        and the knots of the map from the host's clock to that of all. Raises Unsupported or TraceError.
        """
        self.traces, self._hosts = traces, hosts
        self.threads: int | None = None  # from 2 on, one decodes; None: as many as are wanted
        cpus = 0 if hosts else cpus_recorded(traces[0])
        self._reader = self._guard(lambda: _core.NativeReader(list(traces), cpus, list(hosts), first_kept(traces)))
        if self.survey()["streams"] == 0:
            raise no_stream(traces, self.losses()[1])

    @staticmethod
    def _guard(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Unsupported as error:
            raise Unsupported(_one_line(error)) from error
        except ValueError as error:
            raise TraceError(f"Cannot read the trace: {_one_line(error)}") from error

    def read(self, consumer: object) -> Iterator[float]:
        """Push all events, in slices: each ``next()`` gives the share of the bytes read so far."""
        try:
            self._guard(lambda: self._reader.open(consumer, self.threads or threads_wanted()))
        except Unsupported as error:  # what no event had told before
            raise TraceError(f"The native reader does not read this: {error}. Use --reader bt2.") from error
        while self._guard(lambda: self._reader.run(EVENTS_PER_SLICE)):
            done, total = self._reader.progress()
            yield done / total if total else 1.0

    def again(self) -> NativeReader:
        """Another one of the same traces."""
        return NativeReader(self.traces, self._hosts)

    def losses(self) -> tuple[dict[str, int], list[str]]:
        """Counts of what was wrong with the bytes, and a line for each of the first."""
        counts = dict(self._reader.losses())
        messages: list[str] = counts.pop("messages")
        return counts, messages

    def survey(self) -> dict[str, Any]:
        """What the trace says was there and is not. Once it is read, also ``unreadable``: what could not be decoded."""
        return dict(json.loads(self._reader.survey()))

    def fast_count(self) -> int:
        """How many events the fast path has read, for fields at whole bytes (native/src/ctf/aligned_events.cpp)."""
        return int(self._reader.aligned())

    def plugs(self) -> list[dict[str, Any]]:
        """The events name no device."""
        return []

    def version(self) -> None:
        """Our own: as opline's."""

    def environment(self) -> list[dict[str, Any]]:
        """Path, environment and clock of each trace."""
        return list(json.loads(self._reader.environment()))
