# SPDX-License-Identifier: MIT
"""The analyses as plain functions with keyword arguments, and what `import opline` gives (docs/python.md).

The commands call these functions, and these call the rooms. `ops` and `block` have the analyses, which take a run and
give result tables; `recording` records. `run`, `heatmap`, `recorded` and `table` are what users of Python have. Times
are integers, nanoseconds of the run's clock. Errors are opline.errors.OplineError, of one line.
"""
