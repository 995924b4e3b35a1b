# SPDX-License-Identifier: MIT
"""What a cluster says of its hosts' clocks (docs/internals/hosts.md)."""
