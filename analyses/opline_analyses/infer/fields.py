# SPDX-License-Identifier: MIT
"""The fields of a trace's events. Takes a trace and events' names; gives the fields of the first event of each name."""

from __future__ import annotations

import json
from pathlib import Path

from opline import _core
from opline.applications import table
from opline.readers.front import choose, reader_wanted
from opline.readers.trace import find_traces
from opline.scratch import scratch

MOST = 100  # events: each is looked for from the trace's begin on


def fields_of(trace: Path, names: list[str]) -> dict[str, frozenset[str]]:
    """By event: fields of the payload and of the context; events not printed under the name are left out. Raises
    TraceError.
    """
    traces = find_traces(trace)
    found = {}
    with scratch("fields") as folder:
        for name in names[:MOST]:
            place = Path(folder) / "event"
            with place.open("wb") as file:
                wanted = {"names": name, "limit": 1, "form": "json"} | table.providers()
                printer = _core.Printer(file.fileno(), json.dumps(wanted))
                for _ in choose(traces, reader_wanted(None))[0].read(printer):
                    if printer.done():
                        break
                printer.finish()
            for line in place.read_text(encoding="utf-8", errors="replace").splitlines():
                event = json.loads(line)
                if event["event"] == name:
                    found[name] = frozenset((*event["fields"], *event["context"]))
    return found
