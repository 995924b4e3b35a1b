# SPDX-License-Identifier: MIT
"""Answers about many recordings: a task per recording, run beside the recording, and sums with exact addition
(docs/internals/engine.md).
"""
