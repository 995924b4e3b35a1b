# SPDX-License-Identifier: MIT
"""A PID namespace as a container's, with a /proc of its own."""

from __future__ import annotations

# unshare makes /proc private before it mounts another one there (util-linux, sys-utils/unshare.c). It leaves / alone:
# a chroot that is no mount point has no propagation to change.
PID_NAMESPACE = (
    "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "unchanged",
)  # fmt: skip
