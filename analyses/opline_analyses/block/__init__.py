# SPDX-License-Identifier: MIT
"""Views of the block layer: which I/Os are meant, and what is counted of them."""
