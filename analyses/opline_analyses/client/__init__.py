# SPDX-License-Identifier: MIT
"""What the benchmark says itself, and how far a run agrees with it."""
