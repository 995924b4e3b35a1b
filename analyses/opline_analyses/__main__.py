# SPDX-License-Identifier: MIT
"""`python -m opline_analyses` is `opline`."""

from __future__ import annotations

import sys

from opline_analyses.cli import main

sys.exit(main())
