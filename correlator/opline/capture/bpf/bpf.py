# SPDX-License-Identifier: MIT
"""BPF programs at the block layer's tracepoints and system calls.

What they must know of the running kernel, and how they are attached.

What they record, and how it reaches LTTng, is in :mod:`opline.capture.bpf.bridge`. Needs root and a kernel with BTF; no
kernel headers: what the programs must know of the running kernel is looked up in its BTF and given to them as ``-D``.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from opline.capture.bpf import syscalls, tasks
from opline.capture.bpf.bridge import OWN_TGIDS, PERIOD_NS, RING_BYTES, Bridge, pid_namespace, possible_cpus
from opline.capture.bpf.btf import Btf
from opline.errors import OplineError

BRIDGE = Path(__file__).parent.with_name("_bridge.so")
LIVE_BRIDGE = Path(__file__).parent.with_name("_livebridge.so")

# In the order of enum block_kind (tracepoints/block_event.h).
KINDS = (
    "block_bio_queue", "block_getrq", "block_bio_backmerge", "block_bio_frontmerge", "block_split", "block_bio_remap",
    "block_bio_complete", "block_rq_insert", "block_rq_issue", "block_rq_bio", "block_rq_requeue", "block_rq_merge",
    "block_rq_remap", "block_rq_complete", "block_plug", "block_unplug", "syscall_entry", "syscall_exit",
    "off_cpu",
)  # fmt: skip
# block_rq_bio comes from the program of the issue.
TRACEPOINTS = tuple(kind for kind in KINDS if kind.startswith("block_") and kind != "block_rq_bio")
# Without these there are no block requests to speak of.
_NEEDED = ("block_bio_queue", "block_rq_issue", "block_rq_complete")

_BIO_WALK = 256  # bios of a request that are named at its issue
_OWN_WALK = 32
_RECORD_BYTES = 128  # in the ring buffer, with its header
_STATES_LEAST = 1024  # that may wait there of each CPU, however many CPUs there are
_LARGEST_SPAN = 192  # of the BPF stack's 512 bytes


def definitions(btf: Btf) -> dict[str, int]:
    """What the programs must know of this kernel: offsets, operations, flags, arguments. Raises OplineError."""
    out: dict[str, int] = {}

    def offset(name: str, struct: str, path: str) -> int:
        found = btf.offset(struct, path)
        if found is None:
            raise OplineError(
                f"kernel {platform.release()}: struct {struct} has no {path}; block events through BPF need Linux 5.12 "
                "or later"
            )
        out[name] = found
        return found

    def span(prefix: str, members: Sequence[int]) -> None:
        """All members are read at once: from the first one's begin to 8 bytes after the last one's."""
        out[f"{prefix}_LOW"] = low = min(members) & ~7
        out[f"{prefix}_SPAN"] = size = (max(members) + 8 - low + 7) & ~7
        if size > _LARGEST_SPAN:
            raise OplineError(
                f"kernel {platform.release()}: unusual layout of block structures ({prefix}: {size} bytes)"
            )

    bio = [
        offset("O_BIO_NEXT", "bio", "bi_next"), offset("O_BIO_BDEV", "bio", "bi_bdev"),
        offset("O_BIO_OPF", "bio", "bi_opf"), offset("O_BIO_STATUS", "bio", "bi_status"),
        offset("O_BIO_SECTOR", "bio", "bi_iter.bi_sector"), offset("O_BIO_SIZE", "bio", "bi_iter.bi_size"),
    ]  # fmt: skip
    span("BIO", bio[1:])
    offset("O_BIO_PRIVATE", "bio", "bi_private")
    offset("O_BDEV_DISK", "block_device", "bd_disk")
    span("DISK", [offset("O_DISK_MAJOR", "gendisk", "major"), offset("O_DISK_MINOR", "gendisk", "first_minor")])
    request = [
        offset("O_RQ_FLAGS", "request", "cmd_flags"), offset("O_RQ_LEN", "request", "__data_len"),
        offset("O_RQ_SECTOR", "request", "__sector"), offset("O_RQ_BIO", "request", "bio"),
    ]  # fmt: skip
    if btf.offset("request", "rq_disk") is not None:  # before 5.17
        offset("O_RQ_DISK", "request", "rq_disk")
    else:
        request.append(offset("O_RQ_Q", "request", "q"))
        offset("O_Q_DISK", "request_queue", "disk")
    span("RQ", request)
    for name in ("READ", "WRITE", "FLUSH", "DISCARD", "SECURE_ERASE", "WRITE_SAME", "DRV_IN", "DRV_OUT"):
        value = btf.enumerator(f"REQ_OP_{name}")
        if value is not None:
            out[f"REQ_OP_{name}"] = value
    for name in ("RAHEAD", "SYNC", "META", "FUA", "PREFLUSH"):
        value = btf.enumerator(f"__REQ_{name}")
        if value is None:
            raise OplineError(f"kernel {platform.release()}: no __REQ_{name} in its BTF")
        out[f"REQ_{name}"] = value
    for name in TRACEPOINTS:
        for number, argument in enumerate(btf.tracepoint(name) or ()):
            if argument.struct in ("bio", "request", "request_queue"):
                out[f"A_{name}_{argument.struct}"] = number
    return out


class Collector:
    """Programs and bridge: ``Collector()``, ``start()``, … ``finish()``. All goes with the process, however it ends.

    ``own``: processes whose I/O is left out. ``calls``: with the system calls of the process that ``follow`` names,
    where this architecture's are known; ``states``: with the scheduler states of its threads. The attributes say
    whether. ``records``: a pipe into which block events go as they are, instead of a session (opline.readers.ring).
    Raises OplineError, one line that says what is missing.
    """

    def __init__(
        self,
        own: Sequence[int] = (),
        ring_bytes: int = RING_BYTES,
        period_ns: int = PERIOD_NS,
        calls: bool = False,
        states: bool = False,
        records: int | None = None,
    ) -> None:
        if os.geteuid() != 0:
            raise OplineError("block events through BPF need root")
        if len(own) > OWN_TGIDS:
            raise OplineError(f"{len(own)} processes to leave out, at most {OWN_TGIDS}")
        self._own = own
        btf = Btf.of_kernel()
        tree = tasks.definitions(btf) if calls or states else None
        registers = syscalls.definitions(btf) if calls and tree else None
        switches = tasks.states(btf) if states and tree else None
        self.calls, self.states = registers is not None, switches is not None
        self._definitions = {
            **definitions(btf), **(tree or {}), **(registers or {}), **(switches or {}),
            "BIO_WALK": _BIO_WALK, "OWN_WALK": _OWN_WALK,
            "STATES_MOST": max(ring_bytes // 2 // _RECORD_BYTES // possible_cpus(), _STATES_LEAST),
        }  # fmt: skip
        self._records = records
        library = BRIDGE if records is None else LIVE_BRIDGE
        self._bridge = Bridge(library, "the BPF programs", KINDS, self._definitions, ring_bytes, period_ns)
        if records is not None:
            self._bridge.library.live_open(records)
        self._programs = self._load()

    def _load(self) -> dict[str, Any]:
        bpf = self._bridge.bpf
        programs = {}
        names = [t for t in TRACEPOINTS if any(key.startswith(f"A_{t}_") for key in self._definitions)]
        names += tasks.PROGRAMS if self.calls or self.states else ()
        names += syscalls.PROGRAMS if self.calls else ()
        names += tasks.STATES if self.states else ()
        for name in names:
            programs[name] = self._bridge.attempt(
                f"the kernel does not take the BPF program for {name}",
                partial(bpf.load_func, f"on_{name}".encode(), bpf.RAW_TRACEPOINT),
            )
        missing = [name for name in _NEEDED if name not in programs]
        if missing:
            raise OplineError(f"kernel {platform.release()} has no tracepoint {', '.join(missing)}")
        return programs

    @property
    def tracepoints(self) -> list[str]:
        """Those that this kernel has, in the order of their kinds."""
        return list(self._programs)

    def enabled(self) -> int:
        """What the programs record at the moment because a session has enabled it: a bit per kind, 0 for nothing."""
        return self._bridge.enabled()

    def start(self) -> None:
        """Attach the programs, start the bridge's thread. Raises OplineError."""
        bpf = self._bridge.bpf
        for name in self._programs:
            self._bridge.attempt(
                f"cannot attach to tracepoint {name}",
                partial(bpf.attach_raw_tracepoint, tp=name.encode(), fn_name=f"on_{name}".encode()),
            )
        self._bridge.start([program.fd for program in self._programs.values()], self._own)

    def follow(self, pid: int) -> None:
        """Record calls and states of this process and its children, from its next call or switch on."""
        self._bridge.follow(pid)

    def attach(self, pids: Sequence[int]) -> None:
        """Record calls and states of these processes, which run already; before ``start()``. Raises OplineError in a
        PID namespace, where the kernel's own numbers are not known.
        """
        if not pids or not (self.calls or self.states):
            return
        if pid_namespace():
            raise OplineError("processes that run already can be followed in the initial PID namespace only")
        tree, threads, marks = (self._bridge.bpf[name] for name in (b"tree", b"threads", b"marks"))
        (marked,) = marks.values()
        for pid in pids:
            tree[tree.Key(pid)] = tree.Leaf(1)
            for thread in Path(f"/proc/{pid}/task").glob("[0-9]*"):
                tid = int(thread.name)
                threads[threads.Key(tid)] = threads.Leaf()
                marked.of[tid & 0xFFFF] = 1
        marks[marks.Key(0)] = marked

    def finish(self) -> dict[str, Any]:
        """Detach, pass on what is left, and say what happened."""
        counts = self._bridge.finish(self._detach)
        if self._records is not None:
            self._bridge.library.live_close()
        return counts

    def _detach(self) -> None:
        for name in self._programs:
            self._bridge.bpf.detach_raw_tracepoint(name.encode())
