# SPDX-License-Identifier: MIT
"""Views of application operations: their transitions, stages, threads, and what they waited for."""
