# SPDX-License-Identifier: MIT
"""A run in the formats of other programs, one module each: `write(run, which, out)` writes the selected ops."""
