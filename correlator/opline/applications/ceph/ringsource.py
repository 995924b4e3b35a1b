# SPDX-License-Identifier: MIT
"""Events of the shim for Ceph in a recording: its collector (tracepoints/ceph/collector.c) as a child process.

The traced threads write into rings of their own, and the collector makes events ``cephring:*`` of what they hold: for
them a call costs a fraction of an event of LTTng's. It listens at a socket beside the session daemon's, where the shim
looks for it at a thread's first event; where nobody listens, threads write events ``cephshim:*`` by themselves.

Its socket is open to all, so that OSDs reach it. It takes rings of root, of the recorder's user, of the user ``ceph``,
and of whomever the recorder has started, and no more than there can be.

The contract. ``opline-ceph-collector SOCKET [UID...]``, with the environment that leads to the session daemon:

- Start it before the session is. ``{"ready": true}`` on standard output: it listens, and is known to the daemon.
  ``{"error": "..."}``: it ends with status 1.
- SIGTERM (or its parent's death): the threads are told to do without it, what they have written is passed on, the
  counts come as one line of JSON, it ends with status 0. Do it before the session is stopped.
"""

from __future__ import annotations

import pwd
from collections.abc import Iterable
from pathlib import Path

from opline.capture.directory.state import State
from opline.capture.lttng.sessiond import Sessiond
from opline.capture.sources.shims import ShimSource
from opline.errors import OplineError

PROGRAM = Path(__file__).with_name("opline-ceph-collector")
SOCKET_NAME = "opline-ceph"  # RING_SOCKET in tracepoints/ceph/ring.h

#: Ceph's daemons run as this user, whoever records (systemd's units, ceph-osd --setuser).
DAEMONS_USER = "ceph"


def _users() -> list[str]:
    """Users besides root and the recorder's own whose threads may hand over rings, as the collector takes them."""
    try:
        return [str(pwd.getpwnam(DAEMONS_USER).pw_uid)]
    except KeyError:
        return []


class RingSource(ShimSource):
    """The shim's collector of one recording."""

    def __init__(self) -> None:
        super().__init__("rings", "the shim's collector")

    def start(self, daemon: Sessiond, state: State, mask: Iterable[int]) -> None:
        """Start it and wait until it listens. Raises OplineError with its own words if it cannot."""
        if not PROGRAM.is_file():
            raise OplineError(f"{PROGRAM.name} is not built (make build)")
        folder = Path(daemon.rundir) if daemon.home is None else daemon.home / ".lttng"
        # bound by a name without its folder: /proc/net/unix shows it to everybody
        self._start([str(PROGRAM), SOCKET_NAME, *_users()], daemon.environment(), state, mask, cwd=str(folder))
        self._await_ready()
