# SPDX-License-Identifier: MIT
"""Recordings of several hosts on one clock (docs/internals/hosts.md)."""
