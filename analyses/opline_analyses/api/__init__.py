# SPDX-License-Identifier: MIT
"""opline in Python, for notebooks and scripts: what `import opline` gives (docs/python.md).

Everything here is the commands' own code; options are the commands' options, with the same names and errors. Times are
integers, nanoseconds of the run's clock. Errors are opline.errors.OplineError, of one line.
"""

from __future__ import annotations

from opline_analyses.api.heatmap import Heatmap
from opline_analyses.api.recorded import Recorded, record
from opline_analyses.api.run import LossWarning, Run, correlate, open
from opline_analyses.api.table import Table

__all__ = ["Heatmap", "LossWarning", "Recorded", "Run", "Table", "correlate", "open", "record"]
