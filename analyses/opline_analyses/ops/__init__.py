# SPDX-License-Identifier: MIT
"""Views of application operations: transitions, stages, threads, and waits."""
