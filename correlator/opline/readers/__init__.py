# SPDX-License-Identifier: MIT
"""Front ends: from a trace on disk to events in the core. ``bt2`` is the reference, ``native`` the fast one."""
