# SPDX-License-Identifier: MIT
"""The views of block I/O while it happens: records come in, settled I/Os go through the same SQL and engine."""
