# SPDX-License-Identifier: MIT
"""A recording's directory: its manifest, its buffers, its output, and what it would leave behind if it were killed."""
