# SPDX-License-Identifier: MIT
"""Probes that a model declares: the programs' files, the BPF programs at them, and the trace that hits make."""
