# SPDX-License-Identifier: MIT
"""Ceph's own way in: the preloaded shim."""
