# SPDX-License-Identifier: MIT
"""Answers about many recordings: a task per recording, where the recording lies, and sums that add exactly
(docs/internals/engine.md).
"""
