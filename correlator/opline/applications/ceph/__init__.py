# SPDX-License-Identifier: MIT
"""Ceph: its model, the preloaded shim with its collector, and what a recording of Ceph finds on a machine."""
