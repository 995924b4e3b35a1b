# SPDX-License-Identifier: MIT
"""The babeltrace2 front end: a graph ``source.ctf.fs`` → our sink, one connection per data stream, no muxer.

The only file that imports ``bt2``. Reads whatever babeltrace2 reads; it is the reference for the native reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import bt2

from opline import _core
from opline.errors import OplineError
from opline.readers.trace import TraceError, is_ctf_2

PLUGIN = Path(__file__).parent.parent / "babeltrace-plugin-opline.so"


class Consumer(Protocol):
    """What events are pushed into: a Core or a Printer of opline._core."""

    def address(self) -> int:
        """Address of the native object."""


def version() -> str:
    """The version of babeltrace2's library."""
    return str(bt2.__version__)


def reads_ctf_2() -> bool:
    """CTF 2 came with babeltrace 2.1."""
    major, minor = (int(x) for x in version().split(".")[:2])
    return (major, minor) >= (2, 1)


def read(traces: list[Path], consumer: Consumer) -> Iterator[None]:
    """Push all events of the traces into the consumer, in slices: one per ``next()``.

    Raises TraceError with babeltrace2's own first cause.
    """
    for trace in traces:
        if is_ctf_2(trace) and not reads_ctf_2():
            raise TraceError(f"{trace} is a CTF 2 trace; babeltrace2 {version()} cannot read it. Install babeltrace2 2.1 or later.")
    try:
        graph = _compose(traces, consumer)
        while True:
            try:
                graph.run_once()
            except bt2.Stop:
                return
            except bt2.TryAgain:
                pass
            yield
    except bt2._Error as error:
        raise TraceError(_one_line(error, traces)) from error


def _compose(traces: list[Path], consumer: Consumer) -> Any:
    plugins = bt2.find_plugins_in_path(str(PLUGIN)) if PLUGIN.exists() else None
    if not plugins:
        raise OplineError(f"Cannot load the babeltrace2 plug-in {PLUGIN}: build opline again (make build).")
    graph = bt2.Graph()
    params = {"core": consumer.address(), "cookie": _core.COOKIE}
    sink = graph.add_component(plugins[0].sink_component_classes["ops"], "opline", params)
    fs = bt2.find_plugin("ctf").source_component_classes["fs"]
    used = 0
    for i, trace in enumerate(traces):
        source = graph.add_component(fs, f"trace{i}", {"inputs": [str(trace)]})
        for port in list(source.output_ports.values()):
            graph.connect_ports(port, sink.input_ports[f"in{used}"])
            used += 1
    if used == 0:
        raise TraceError(f"{traces[0]} has no data stream: nothing was recorded.")
    return graph


def _one_line(error: Any, traces: list[Path]) -> str:
    """The most specific cause: babeltrace2 appends causes from the inside out."""
    causes = list(error)
    said = " ".join(str(causes[0].message).split()) if causes else "no cause was given"
    where = str(traces[0]) if len(traces) == 1 else f"{traces[0]} and {len(traces) - 1} more"
    return f"babeltrace2 {version()} cannot read {where}: {said}"
