# SPDX-License-Identifier: MIT
"""Ceph's own ways in: the preloaded shim, and the uprobes on builds without tracepoints."""
