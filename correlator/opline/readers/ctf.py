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
from opline.errors import OplineError, TraceError
from opline.readers.metadata import environment, metadata_text
from opline.readers.streams import examine, mend
from opline.readers.trace import is_ctf_2, no_stream
from opline.scratch import scratch

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


class Bt2Reader:
    """Reads the traces into a consumer, as NativeReader does."""

    name = "bt2"

    def __init__(self, folders: list[str]) -> None:
        """Looks for damaged files. Raises TraceError for what this babeltrace2 can't read."""
        traces = [Path(folder) for folder in folders]
        for trace in traces:
            if is_ctf_2(trace) and not reads_ctf_2():
                raise TraceError(
                    f"babeltrace2 {version()} cannot read CTF 2: {trace}. Install babeltrace2 2.1 or later."
                )
        self.traces = traces
        for trace in traces:
            try:
                metadata_text(trace)  # babeltrace 2.0 never comes back from metadata that is cut off
            except ValueError as error:
                raise TraceError(f"Cannot read {trace / 'metadata'}: {error}. Copy the trace again.") from error
            except OSError as error:
                raise TraceError(f"Cannot read {error.filename}: {error.strerror}.") from error
        self._known = examine(traces)

    def read(self, consumer: Consumer) -> Iterator[None]:
        """Push all events, in slices: one per ``next()``. Raises TraceError with babeltrace2's own first cause."""
        with scratch("mended") as folder:
            folders = []
            for i, trace in enumerate(self.traces):
                folders.append(trace)
                if self._known:  # without LTTng's index, too: babeltrace 2.0 believes it, and aborts for some
                    folders[-1] = Path(folder) / str(i)
                    mend(trace, self._known.files, folders[-1])
            try:
                graph = self._compose(folders, consumer)
                while True:
                    try:
                        graph.run_once()
                    except bt2.Stop:
                        return
                    except bt2.TryAgain:
                        pass
                    yield
            except bt2._Error as error:
                raise TraceError(self._one_line(error)) from error

    def _compose(self, folders: list[Path], consumer: Consumer) -> Any:
        plugins = bt2.find_plugins_in_path(str(PLUGIN)) if PLUGIN.exists() else None
        if not plugins:
            raise OplineError(f"Cannot load the babeltrace2 plug-in {PLUGIN}: build opline again (make build).")
        graph = bt2.Graph()
        place = {str(trace): folder for trace, folder in zip(self.traces, folders, strict=True)}

        def mended(streams: dict[str, Any]) -> dict[str, Any]:
            return {str(place[str(Path(path).parent)] / Path(path).name): what for path, what in streams.items()}

        params = {"core": consumer.address(), "cookie": _core.COOKIE, "tolerant": True}
        if self._known:
            params |= {"damaged": mended(self._known.damaged), "rests": mended(self._known.rests)}
        sink = graph.add_component(plugins[0].sink_component_classes["ops"], "opline", params)
        fs = bt2.find_plugin("ctf").source_component_classes["fs"]
        used = 0
        for i, folder in enumerate(folders):
            source = graph.add_component(fs, f"trace{i}", {"inputs": [str(folder)]})
            for port in list(source.output_ports.values()):
                graph.connect_ports(port, sink.input_ports[f"in{used}"])
                used += 1
        if used == 0:
            raise no_stream(self.traces)
        return graph

    def _one_line(self, error: Any) -> str:
        """The most specific cause: babeltrace2 appends causes from the inside out."""
        causes = list(error)
        said = " ".join(str(causes[0].message).split()) if causes else "no cause was given"
        where = str(self.traces[0]) if len(self.traces) == 1 else f"{self.traces[0]} and {len(self.traces) - 1} more"
        return f"babeltrace2 {version()} cannot read {where}: {said}"

    def losses(self) -> tuple[dict[str, int], list[str]]:
        """Counts of what was wrong with the bytes, and a line for each of the first."""
        return (self._known.losses, self._known.messages) if self._known else ({}, [])

    def survey(self) -> dict[str, Any]:
        """What the trace says was there and is not."""
        return self._known.survey if self._known else {}

    def version(self) -> str:
        """babeltrace2's."""
        return version()

    def environment(self) -> list[dict[str, Any]]:
        """Path, environment and clock of each trace."""
        return [environment(trace) for trace in self.traces]
