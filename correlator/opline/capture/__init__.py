# SPDX-License-Identifier: MIT
"""Capture: what `opline record` and `opline doctor` do. See docs/capture.md."""
