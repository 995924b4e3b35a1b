# SPDX-License-Identifier: MIT
"""The process in which babeltrace2 reads (opline.readers.babeltrace): a graph ``source.ctf.fs`` → our sink, one
connection per data stream, no muxer. The sink sends the events through a socket.

The only file that imports ``bt2``. Its arguments: the socket, and the process that wants the events. Its standard
input: ``traces``, the ``folders`` that stand for them, and what is known of them (Bt2Reader), as JSON. Where it can't
read, its status is REFUSED, and one line of its standard error says why.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

import bt2

from opline import _core
from opline.errors import OplineError
from opline.readers.babeltrace import PLUGIN, REFUSED, version
from opline.readers.trace import no_stream

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def compose(request: dict[str, Any], consumer: _core.WireSink) -> Any:
    """The graph. Raises OplineError."""
    plugins = bt2.find_plugins_in_path(str(PLUGIN)) if PLUGIN.exists() else None
    if not plugins:
        raise OplineError(f"Cannot load the babeltrace2 plug-in {PLUGIN}: build opline again (make build).")
    graph = bt2.Graph()
    params = {"core": consumer.address(), "cookie": _core.COOKIE, "tolerant": True}
    params |= {name: request[name] for name in ("damaged", "rests") if name in request}
    sink = graph.add_component(plugins[0].sink_component_classes["ops"], "opline", params)
    fs = bt2.find_plugin("ctf").source_component_classes["fs"]
    used = 0
    for i, folder in enumerate(request["folders"]):
        source = graph.add_component(fs, f"trace{i}", {"inputs": [folder]})
        for port in list(source.output_ports.values()):
            graph.connect_ports(port, sink.input_ports[f"in{used}"])
            used += 1
    if used == 0:
        raise no_stream(request["traces"])
    return graph


def run(graph: Any) -> None:
    """Until all events have been sent."""
    while True:
        try:
            graph.run_once()
        except bt2.Stop:
            return
        except bt2.TryAgain:
            pass


def one_line(traces: list[str], error: Any) -> str:
    """The most specific cause: babeltrace2 appends causes from the inside out."""
    causes = list(error)
    said = " ".join(str(causes[0].message).split()) if causes else "no cause was given"
    where = traces[0] if len(traces) == 1 else f"{traces[0]} and {len(traces) - 1} more"
    return f"babeltrace2 {version()} cannot read {where}: {said}"


def main(descriptor: int, parent: int) -> int:
    """Reads, and gives the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both; the other one ends this process
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it ended before prctl
        return 1
    request = json.load(sys.stdin)
    consumer = _core.WireSink(descriptor)
    try:
        run(compose(request, consumer))
    except OplineError as error:
        sys.stderr.write(error.message + "\n")
        return REFUSED
    except bt2._Error as error:
        sys.stderr.write(one_line(request["traces"], error) + "\n")
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
