# SPDX-License-Identifier: MIT
"""The shim for Ceph as recordings see it. The hook `shim`: SHIM."""

from __future__ import annotations

from opline.applications.ceph import installed
from opline.applications.ceph.ringsource import RingSource
from opline.capture.sources.shims import Shim

SHIM = Shim("ceph", installed.SHIM, "cephring", RingSource, installed.warnings)
