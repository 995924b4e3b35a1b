# SPDX-License-Identifier: MIT
"""Views of the block layer: selection of I/Os, and counts."""
