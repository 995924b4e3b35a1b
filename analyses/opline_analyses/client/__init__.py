# SPDX-License-Identifier: MIT
"""A benchmark's own figures, and their agreement with a run."""
