# SPDX-License-Identifier: MIT
"""A cluster's clocks and hosts (docs/internals/hosts.md)."""
