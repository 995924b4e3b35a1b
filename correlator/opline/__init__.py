# SPDX-License-Identifier: MIT
"""Follow one application operation from its tracepoints down to the disk and back.

In Python: `opline.open("run1")` opens a run, `opline.record([...])` records a command, `opline.correlate(trace, model)`
reads a trace (docs/python.md). They are opline_analyses.api's, which is imported when one of them is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from opline_analyses.api import Heatmap as Heatmap
    from opline_analyses.api import LossWarning as LossWarning
    from opline_analyses.api import Recorded as Recorded
    from opline_analyses.api import Run as Run
    from opline_analyses.api import Table as Table
    from opline_analyses.api import correlate as correlate
    from opline_analyses.api import open as open
    from opline_analyses.api import record as record

_DOOR = ("Heatmap", "LossWarning", "Recorded", "Run", "Table", "correlate", "open", "record")


def __getattr__(name: str) -> object:
    if name in _DOOR:
        from opline_analyses import api

        return getattr(api, name)
    raise AttributeError(f"module 'opline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_DOOR])
