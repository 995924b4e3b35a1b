# SPDX-License-Identifier: MIT
"""Chooses what reads a trace: the native reader for what LTTng writes, babeltrace2 for everything else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from opline import _core
from opline.errors import TraceError, UsageError
from opline.readers import chunks
from opline.readers.clock import clock_ahead_ns, wall_offset_ns
from opline.readers.native import NativeReader, Unsupported
from opline.readers.registry import trace_format
from opline.readers.trace import find_traces, host_recorded
from opline.talk import explain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    from opline.paths import StrPath

    class Front(Protocol):
        """A front end, opened on some traces."""

        name: str

        def read(self, consumer: _core.Core | _core.Printer | _core.Dropper) -> Iterator[float | None]:
            """Push all events, in slices; each ``next()`` gives the share that is read, None if it is not known."""

        def survey(self) -> dict[str, Any]:
            """What the trace says was there and is not (NativeReader.survey); known before reading."""

        def losses(self) -> tuple[dict[str, int], list[str]]:
            """Counts of what was wrong with the bytes, by names of opline.losses, and a line for each of the first."""

        def environment(self) -> list[dict[str, Any]]:
            """Path, environment and clock of each trace."""

        def plugs(self) -> list[dict[str, Any]]:
            """How often and how long each device was plugged (plugs.py); known after reading."""

        def version(self) -> str | None:
            """Of the library that decodes; None for our own."""


READERS = ("auto", "native", "bt2")
_ATTEMPTS = 5  # chunks are removed once in a second at most


def reader_wanted(argument: str | None) -> str:
    """``--reader``, else ``OPLINE_READER``, else auto."""
    wanted = argument or os.environ.get("OPLINE_READER") or "auto"
    if wanted not in READERS:
        raise UsageError(f"There is no reader {wanted!r}: one of {', '.join(READERS)}.")
    return wanted


def found(path: StrPath, wanted: str) -> tuple[list[str], Front, str]:
    """The traces under a path (find_traces), and what ``choose`` gives for them. If a recorder removes a chunk
    meanwhile (`record --keep`): what is there then. Raises TraceError.
    """
    for _ in range(_ATTEMPTS):
        there = chunks.all_closed(path) or chunks.all_closed(os.path.join(path, "trace"))
        try:
            traces = find_traces(path)
            return (traces, *choose(traces, wanted))
        except (FileNotFoundError, TraceError):
            if all(os.path.isdir(chunk) for chunk in there):
                raise
    raise TraceError(f"{path}: chunks are removed faster than they can be read. Keep more of them (--keep).")


def choose(traces: list[str], wanted: str) -> tuple[Front, str]:
    """The front end, and why this one. A forced reader that can't is an error, never a silent other one."""
    front, why = _choose(traces, wanted)
    library = front.version()
    name = f"the {front.name} reader" if library is None else f"babeltrace2 {library}"
    explain(f"{' and '.join(traces)}: read by {name}: {why}")
    _check_clocks(front.environment())
    return front, why


#: How far apart two readings of one offset may be: lttng-sessiond 2.13 takes the tightest of ten (clock-class), while
#: lttng-modules 2.13 takes one (measure_clock_offset): on a virtual machine that waits in between it is wrong by ms.
_SAME_OFFSET_NS = 1_000_000


def _ahead_ns(trace: dict[str, Any]) -> int | None:
    """How far the clock of a trace is ahead of the root time namespace's, as its recording says; None: not known. The
    kernel's tracer has the root one's clock, the application's the recorder's.
    """
    known = clock_ahead_ns(host_recorded(trace["path"]), trace["clock"]["uuid"])
    return 0 if known is not None and trace["env"].get("domain") == "kernel" else known


def _check_clocks(environments: list[dict[str, Any]]) -> None:
    """Raw times compare only within one boot, whose uuid LTTng gives the clock, and one time namespace of it: another
    one's clock is ahead by a constant (time_namespaces(7)). Where the recordings do not say it, the offsets that LTTng
    measured do: they change only if the wall clock is set, as NTP slews both clocks alike.
    """
    timed = [trace for trace in environments if trace["clock"].get("uuid")]
    if len(timed) < 2:
        return
    first, first_ahead_ns = timed[0], _ahead_ns(timed[0])
    for trace in timed[1:]:
        if first["clock"]["uuid"] != trace["clock"]["uuid"]:
            raise TraceError(
                f"{first['path']} and {trace['path']} have different clocks (another boot, or another host): "
                "their times do not compare. Give them one by one, or to `opline join`."
            )
        ahead_ns = _ahead_ns(trace)
        if first_ahead_ns is not None and ahead_ns is not None:
            apart_ns = ahead_ns - first_ahead_ns
        else:
            measured_ns = (wall_offset_ns(trace["clock"]) or 0) - (wall_offset_ns(first["clock"]) or 0)
            apart_ns = measured_ns if abs(measured_ns) > _SAME_OFFSET_NS else 0
        if apart_ns:
            raise TraceError(
                f"{first['path']} and {trace['path']} have clocks of one boot that are {abs(apart_ns) / 1e9:.9g} s "
                "apart (two time namespaces, or the wall clock was set in between): their times do not compare. "
                "Give them one by one."
            )


def _choose(traces: list[str], wanted: str) -> tuple[Front, str]:
    if not os.path.isdir(traces[0]):
        found = trace_format(traces[0])
        if wanted != "auto":
            raise TraceError(f"{traces[0]} is {found.CALLED}, and --reader {wanted} reads CTF traces.")
        return found.front(traces), f"it is no CTF trace but {found.CALLED}"
    if wanted == "bt2":
        return _bt2(traces), "it was asked for"
    try:
        return NativeReader(traces), "it was asked for" if wanted == "native" else "it recognised the trace"
    except Unsupported as error:
        if wanted == "native":
            raise TraceError(f"The native reader does not read this: {error}. Use --reader bt2.") from error
        try:
            return _bt2(traces, str(error)), f"the native reader does not recognise the trace: {error}"
        except TraceError as other:
            raise TraceError(f"{other} The native reader does not recognise it: {error}.") from error


def _bt2(traces: list[str], unrecognised: str = "") -> Front:
    from opline.readers.babeltrace import Bt2Reader  # few traces need it

    return Bt2Reader(traces, unrecognised)
