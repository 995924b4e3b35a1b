# SPDX-License-Identifier: MIT
"""Those programs as children of a recording: how each is started, asked and ended."""
