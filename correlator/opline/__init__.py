# SPDX-License-Identifier: MIT
"""Follow one application operation from its tracepoints down to the disk and back.

In Python: `opline.open("run1")` opens a run, `opline.record([...])` records a command, `opline.correlate(trace, model)`
reads a trace (docs/python.md). They are opline_analyses.api's, which is imported when one of them is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from opline_analyses.api.heatmap import Heatmap as Heatmap
    from opline_analyses.api.recorded import Recorded as Recorded
    from opline_analyses.api.recorded import record as record
    from opline_analyses.api.run import LossWarning as LossWarning
    from opline_analyses.api.run import Run as Run
    from opline_analyses.api.run import correlate as correlate
    from opline_analyses.api.run import open as open
    from opline_analyses.api.table import Table as Table
    from opline_analyses.api.what import what as what
    from opline_analyses.base.result_table import ResultTable as ResultTable

_DOOR = {
    "Heatmap": "api.heatmap", "Recorded": "api.recorded", "record": "api.recorded", "LossWarning": "api.run",
    "Run": "api.run", "correlate": "api.run", "open": "api.run", "Table": "api.table",
    "ResultTable": "base.result_table", "what": "api.what",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _DOOR:
        from importlib import import_module

        return getattr(import_module(f"opline_analyses.{_DOOR[name]}"), name)
    raise AttributeError(f"module 'opline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_DOOR])
