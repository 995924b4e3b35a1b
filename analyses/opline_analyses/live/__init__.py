# SPDX-License-Identifier: MIT
"""Views of current block I/O: records come in, settled I/Os go through the same SQL and engine as a run."""
