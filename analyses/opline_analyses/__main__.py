# SPDX-License-Identifier: MIT
"""`python -m opline_analyses` is `opline`."""

from __future__ import annotations

from opline_analyses.cli import program

program()
