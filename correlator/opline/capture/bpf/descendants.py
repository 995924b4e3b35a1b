# SPDX-License-Identifier: MIT
"""Who is a descendant of a process, also after it has gone: from the kernel's own report of every fork.

The proc connector (Linux, include/uapi/linux/cn_proc.h, connector.h; Documentation/driver-api/connector.rst) needs
root and the initial PID namespace. Without it /proc is asked, where a process that has gone is nobody's.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct

from opline.capture.bpf.bridge import pid_namespace
from opline.capture.machine.processes import parent

_NETLINK_CONNECTOR = 11
_CN_IDX_PROC = _CN_VAL_PROC = 1
_PROC_CN_MCAST_LISTEN = 1
_NLMSG_DONE = 3
_FORK = 1
_NLMSG = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_CN_MSG = struct.Struct("=IIIIHH")  # idx, val, sequence, ack, length, flags
_EVENT = struct.Struct("=IIQIIII")  # what, cpu, time; of a fork: parent's pid and tgid, child's pid and tgid
_BUFFER_BYTES = 8 << 20
_SO_RCVBUFFORCE = 33  # asm-generic/socket.h


def _listen() -> socket.socket | None:
    """A socket that forks are reported on; None if the kernel does not."""
    if pid_namespace():
        return None
    try:
        peer = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _NETLINK_CONNECTOR)
    except OSError:
        return None
    try:
        peer.bind((0, _CN_IDX_PROC))
        with contextlib.suppress(OSError):
            peer.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        order = struct.pack("=I", _PROC_CN_MCAST_LISTEN)
        head = _CN_MSG.pack(_CN_IDX_PROC, _CN_VAL_PROC, 0, 0, len(order), 0)
        peer.send(_NLMSG.pack(_NLMSG.size + len(head) + len(order), _NLMSG_DONE, 0, 0, os.getpid()) + head + order)
        if select.select([peer], [], [], 1.0)[0]:  # its answer, or a first event
            peer.setblocking(False)
            return peer
    except OSError:
        pass
    peer.close()
    return None


class Descendants:
    """Those that ``root`` forks from now on, and whom they fork."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._forks = _listen()
        self._ours: set[int] = set()
        self.overflows = 0

    @property
    def exact(self) -> bool:
        """Are forks reported? Else a process that has gone is nobody's."""
        return self._forks is not None

    def close(self) -> None:
        """Listen no longer."""
        if self._forks is not None:
            self._forks.close()
            self._forks = None

    def update(self) -> None:
        """Take what was reported. Call it after an event has come and before ``has`` is asked about it."""
        while self._forks is not None:
            try:
                data = self._forks.recv(8192)
            except BlockingIOError:
                return
            except OSError:  # ENOBUFS: reports were dropped
                self.overflows += 1
                continue
            if len(data) < _NLMSG.size + _CN_MSG.size + _EVENT.size:
                continue
            what, _, _, _, parent, _, child = _EVENT.unpack_from(data, _NLMSG.size + _CN_MSG.size)
            if what != _FORK or parent == child:  # a thread has its process' number
                continue
            if parent == self._root or parent in self._ours:
                self._ours.add(child)
            else:
                self._ours.discard(child)  # a number that came back

    def has(self, pid: int) -> bool:
        """Is it one?"""
        if self.exact and not self.overflows:
            return pid in self._ours
        return pid in self._ours or self._walk(pid)

    def _walk(self, pid: int) -> bool:
        chain = []
        while pid not in (0, 1, self._root) and pid not in self._ours:
            chain.append(pid)
            above = parent(pid)
            if above is None:
                return False
            pid = above
        return bool(chain) and pid > 1
