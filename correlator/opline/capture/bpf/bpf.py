# SPDX-License-Identifier: MIT
"""BPF programs at the block layer's tracepoints and system calls.

What they must know of the running kernel, and how they are attached.

What they record, and how it reaches LTTng, is in :mod:`opline.capture.bpf.bridge`. Needs root and a kernel with BTF; no
kernel headers: what the programs must know of the running kernel is looked up in its BTF and given to them as ``-D``.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from opline.capture.bpf import call_cost, cgroups, event_trace, kernel, syscalls, tasks, tcp, uring, waits
from opline.capture.bpf.bridge import OWN_TGIDS, PERIOD_NS, RING_BYTES, Bridge, pid_namespace, possible_cpus
from opline.capture.bpf.btf import Btf, all_known, span
from opline.capture.bpf.cost import spent
from opline.capture.bpf.own_trace import OwnTrace
from opline.capture.bpf.requests import RequestStream, program_text
from opline.capture.bpf.stacks import PROGRAM as OF_STACKS
from opline.capture.bpf.stacks import TRACEPOINT as WAKING
from opline.capture.bpf.stacks import StackWish, WaitStacks
from opline.errors import OplineError

BRIDGE = Path(__file__).parent.with_name("_bridge.so")
LIVE_BRIDGE = Path(__file__).parent.with_name("_livebridge.so")

# In the order of enum block_kind (tracepoints/block_event.h).
KINDS = (
    "block_bio_queue", "block_getrq", "block_bio_backmerge", "block_bio_frontmerge", "block_split", "block_bio_remap",
    "block_bio_complete", "block_rq_insert", "block_rq_issue", "block_rq_bio", "block_rq_requeue", "block_rq_merge",
    "block_rq_remap", "block_rq_complete", "block_plug", "block_unplug", "syscall_entry", "syscall_exit",
    "off_cpu", "process", "thread", "cgroup", "uring", "follow", "tcp", "ran_instead",
    "lock_wait",
)  # fmt: skip
# block_rq_bio comes from the program of the issue.
TRACEPOINTS = tuple(kind for kind in KINDS if kind.startswith("block_") and kind != "block_rq_bio")
_PLUGS = ("block_plug", "block_unplug")  # which no record tells
# Without these there are no block requests to speak of.
_NEEDED = ("block_bio_queue", "block_rq_issue", "block_rq_complete")

# Number of the bit where it is no enumerator: include/linux/blk-mq.h (blkdev.h before 5.16), RQF_FLUSH_SEQ, from Linux
# 4.10 to 6.10.
_RQF_FLUSH_SEQ_BEFORE_6_11 = 4
_BIO_WALK = 256  # bios of a request that are named at its issue
_BIOS_AT_ONCE = 16  # by one run of the program that walks along them; the kernel allows 33 tail calls
_WALK = "bio_walk"  # that program
_OWN_WALK = 32
_OF_BOTH = ("lost_ring", "cpu_ns", "watermarks", "lost_events", "paths")  # counts of the bridge and of the writer
_RECORD_BYTES = 128  # in the ring buffer, with its header
_STATES_LEAST = 1024  # that may wait there of each CPU, however many CPUs there are


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

    bio = [
        offset("O_BIO_NEXT", "bio", "bi_next"), offset("O_BIO_BDEV", "bio", "bi_bdev"),
        offset("O_BIO_OPF", "bio", "bi_opf"), offset("O_BIO_STATUS", "bio", "bi_status"),
        offset("O_BIO_SECTOR", "bio", "bi_iter.bi_sector"), offset("O_BIO_SIZE", "bio", "bi_iter.bi_size"),
    ]  # fmt: skip
    out |= span("BIO", bio[1:])
    offset("O_BIO_PRIVATE", "bio", "bi_private")
    offset("O_BDEV_DISK", "block_device", "bd_disk")
    offset("O_BDEV_DEV", "block_device", "bd_dev")
    out |= span("DISK", [offset("O_DISK_MAJOR", "gendisk", "major"), offset("O_DISK_MINOR", "gendisk", "first_minor")])
    request = [
        offset("O_RQ_FLAGS", "request", "cmd_flags"), offset("O_RQ_LEN", "request", "__data_len"),
        offset("O_RQ_SECTOR", "request", "__sector"), offset("O_RQ_BIO", "request", "bio"),
        offset("O_RQ_HCTX", "request", "mq_hctx"), offset("O_RQ_RQ_FLAGS", "request", "rq_flags"),
        offset("O_RQ_TAG", "request", "tag"),
    ]  # fmt: skip
    offset("O_RQ_FLUSH_SEQ", "request", "flush.seq")
    offset("O_HCTX_NUMBER", "blk_mq_hw_ctx", "queue_num")
    flush_seq = btf.enumerator("__RQF_FLUSH_SEQ")
    out["RQF_FLUSH_SEQ"] = _RQF_FLUSH_SEQ_BEFORE_6_11 if flush_seq is None else flush_seq
    if btf.offset("request", "rq_disk") is not None:  # before 5.17
        offset("O_RQ_DISK", "request", "rq_disk")
    else:
        request.append(offset("O_RQ_Q", "request", "q"))
        offset("O_Q_DISK", "request_queue", "disk")
    out |= span("RQ", request)
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


def _types(btf: Btf, wanted: bool, names: Iterable[str]) -> dict[str, int]:
    """The types of these tracepoints, by which programs know their arguments' types; empty where that is not known."""
    if not wanted or not kernel.known_here():
        return {}
    return all_known({name: btf.tracepoint_type(name) for name in names if btf.tracepoint(name) is not None}) or {}


class Collector:
    """Programs and bridge: ``Collector()``, ``start()``, … ``finish()``. All goes with the process, however it ends.

    ``own``: processes whose I/O is left out. ``tree``: with the forks, execs and exits of the process that ``follow``
    names and of its descendants; ``calls``: with their system calls, where this architecture's are known; ``states``:
    with the scheduler states of their threads; ``chains``: with who woke them, and the states of these threads, too;
    ``stacks``: with the kernel stacks of long waits; ``streams``: with the positions of their calls in TCP streams. The
    attributes say whether. ``records``: a pipe into which block
    events go as they are, instead of a session (opline.readers.ring). ``requests``: a folder for the trace of whole
    requests, instead of single block events; ``trace``: one for the trace of all else. ``keep``: what took long is kept
    for the next recording. Raises OplineError, one line that says what is missing.
    """

    def __init__(
        self,
        own: Sequence[int] = (),
        ring_bytes: int = RING_BYTES,
        period_ns: int = PERIOD_NS,
        calls: bool = False,
        states: bool = False,
        chains: bool = False,
        stacks: StackWish | None = None,
        records: int | None = None,
        tree: bool = False,
        requests: Path | None = None,
        trace: Path | None = None,
        keep: bool = True,
        streams: bool = False,
    ) -> None:
        if os.geteuid() != 0:
            raise OplineError("block events through BPF need root")
        if len(own) > OWN_TGIDS:
            raise OplineError(f"{len(own)} processes to leave out, at most {OWN_TGIDS}")
        self._own = own
        btf = Btf.of_kernel()
        offsets = tasks.definitions(btf) if records is None else None
        clocks = tasks.time_namespaces(btf) if offsets else None
        registers = syscalls.definitions(btf) if calls and offsets else None
        rings = uring.definitions(btf) if registers else None
        self._uring = uring.programs(btf) if rings else {}
        switches = tasks.states(btf) if states and offsets else None
        wakers = waits.definitions(btf) if chains and switches else None
        self._of_wakers = waits.programs(btf) if wakers else ()
        positions = tcp.definitions(btf) if streams and offsets else {}
        self.threads, self.tree = offsets is not None, tree and offsets is not None
        self.calls, self.states = registers is not None, switches is not None
        self.chains, self.streams = wakers is not None, bool(positions)
        self._stacks = WaitStacks(stacks, btf) if stacks is not None and wakers else None
        self._running = btf.function(tasks.ITERATED) if self.threads else None
        of_cgroups = cgroups.definitions(btf)
        self._more = tuple(cgroups.PROGRAMS) if of_cgroups and self.threads else ()
        dirtied = cgroups.dirtied(btf) if of_cgroups and "MEMORY_V2" not in of_cgroups else None
        self._dirtied = dirtied and dirtied[0]
        if dirtied:
            of_cgroups["A_dirty_mapping"] = dirtied[1]
        self._definitions = {
            **definitions(btf), **of_cgroups,
            **(offsets or {}), **(clocks or {}), **(registers or {}), **(rings or {}),
            **(switches or {}), **(wakers or {}), **positions,
            **(self._stacks.definitions if self._stacks else {}),
            "BIO_WALK": _BIO_WALK, "BIOS_AT_ONCE": _BIOS_AT_ONCE, "OWN_WALK": _OWN_WALK,
            "STATES_MOST": max(ring_bytes // 2 // _RECORD_BYTES // possible_cpus(), _STATES_LEAST),
        }  # fmt: skip
        self._types = _types(btf, self.threads, (*syscalls.PROGRAMS, *self._uring, *tasks.STATES))
        if keep:
            btf.keep()
        self._records = records
        self._walk: int | None = None
        self._call_ns: int | None = None
        self._prefix = "on" if requests is None else "request"
        library = BRIDGE if records is None else LIVE_BRIDGE
        more = "" if requests is None else program_text(library)

        def bridge() -> Bridge:
            given = self._definitions | ({"TYPED": 1} if self._types else {})
            return Bridge(library, "the BPF programs", KINDS, given, ring_bytes, period_ns, more, keep)

        self._bridge, self._programs = self._loaded(bridge)
        if records is not None:
            self._bridge.library.live_open(records)
        self._writes = trace is not None
        self.traces: list[OwnTrace] = []  # its own
        if trace is not None:
            self.traces.append(event_trace.open_stream(self._bridge.library, trace, self._tell_threads_again))
        self._requests: RequestStream | None = None
        if requests is not None:
            self._requests = RequestStream(self._bridge.library, self._bridge.bpf, requests, ring_bytes, KINDS)
            self.traces.append(self._requests.trace)

    def _function(self, program: str) -> str:
        if program == self._dirtied:
            return "on_writeback_dirty"
        if program in self._uring:
            return self._uring[program]
        return f"{self._prefix if program in TRACEPOINTS else 'on'}_{program}"

    def _loaded(self, make: Callable[[], Bridge]) -> tuple[Bridge, dict[str, str]]:
        """With programs that read by plain loads, or, if the kernel refuses one of those, by helpers alone."""
        bridge = make()
        try:
            return bridge, self._load(bridge)
        except OplineError:
            bridge.bpf.close()
            if not self._types:
                raise
        self._types = {}
        bridge = make()
        return bridge, self._load(bridge)

    def _load(self, bridge: Bridge) -> dict[str, str]:
        bpf = bridge.bpf
        programs = {}
        names = [t for t in TRACEPOINTS if any(key.startswith(f"A_{t}_") for key in self._definitions)]
        if self._prefix == "request":
            names = [name for name in names if name not in _PLUGS]
        names += tasks.PROGRAMS if self.threads else ()
        names += [*self._more, *([self._dirtied] if self._dirtied else [])]
        names += [*syscalls.PROGRAMS, *self._uring] if self.calls else ()
        names += [*tasks.STATES, *self._of_wakers] if self.states else ()
        names += tcp.PROGRAMS if self.streams else ()
        if self._stacks is not None and self._stacks.load(bpf):
            programs[WAKING] = OF_STACKS
            names.remove(WAKING)
        for name in names:
            programs[name] = self._function(name)
            what = f"the kernel does not take the BPF program for {name}"
            of = self._types.get(name)
            how = () if of is None else (kernel.TRACING, kernel.TRACE_RAW_TP, of)
            bridge.attempt(what, partial(bpf.load, programs[name], *how))
        if self._prefix == "request":
            what = f"the kernel does not take the BPF program {_WALK}"
            self._walk = bridge.attempt(what, partial(bpf.load, f"request_{_WALK}"))
            bpf.maps["walks"].set(ctypes.c_uint32(0), ctypes.c_uint32(self._walk))
        if OF_STACKS in programs.values() and self._stacks is not None:
            self._stacks.know_functions(bpf)
        missing = [name for name in _NEEDED if name not in programs]
        if missing:
            raise OplineError(f"kernel {platform.release()} has no tracepoint {', '.join(missing)}")
        return programs

    @property
    def tracepoints(self) -> list[str]:
        """Those that this kernel has, in the order of their kinds."""
        return list(self._programs)

    @property
    def programs(self) -> dict[str, int]:
        """The descriptors of all programs, by what they are attached to or called by."""
        found = {name: self._bridge.bpf.load(function) for name, function in self._programs.items()}
        return {**found, **({} if self._walk is None else {_WALK: self._walk})}

    def enabled(self) -> int:
        """What the programs record at the moment because a session has enabled it: a bit per kind, 0 for nothing."""
        return self._bridge.enabled()

    def start(self) -> None:
        """Attach the programs, measure what a call's record costs, start the bridge's thread. Raises OplineError."""
        bpf = self._bridge.bpf
        measures = self.calls and not pid_namespace()  # else the kernel's number of this process is not known
        bare_ns = call_cost.least_ns() if measures else None
        for name, function in self._programs.items():
            tracepoint = None if function == OF_STACKS or name in self._types else name
            self._bridge.attempt(f"cannot attach to tracepoint {name}", partial(bpf.attach, function, tracepoint))
        if bare_ns is not None:
            self._call_ns = call_cost.added_ns(bpf, self._bridge.library, bare_ns)
        told = [bpf.load(function) for name, function in self._programs.items() if name not in self._of_wakers]
        self._bridge.start(told, self._own)

    @property
    def no_stacks(self) -> str | None:
        """Why stacks that are wanted can't be taken, in a few words; None: they can, or aren't wanted."""
        return None if self._stacks is None else self._stacks.why

    @property
    def no_user_stacks(self) -> str | None:
        """The same of user stacks."""
        return None if self._stacks is None else self._stacks.no_user_stacks

    @property
    def look_ns(self) -> int | None:
        """How often :meth:`look` wants to be called; None: there is nothing to look at."""
        return None if self._stacks is None or self._stacks.why is not None else self._stacks.look_ns

    def look(self) -> None:
        """To be called now and then: what is kept until the end is written as far as it is there."""
        if self._stacks is not None and self._stacks.why is None:
            self._stacks.look(self._bridge.bpf)

    def follow(self, pid: int) -> None:
        """Record this process and its descendants, from its next call, switch, fork or exec on."""
        self._bridge.follow(pid)

    def tell_threads(self) -> None:
        """Record who the threads are that run already in other PID namespaces than the root's. Raises OplineError."""
        if self._running is not None:
            self._bridge.run_iterator(tasks.RUNNING, self._running)

    def _tell_threads_again(self) -> None:
        """The same of all that are recorded, and which processes these are. Raises OplineError."""
        self._bridge.retells()
        self.tell_threads()

    def attach(self, pids: Sequence[int]) -> None:
        """Record these processes, which run already, and their descendants; before ``start()``. In a PID namespace,
        where the kernel's own numbers are not known, raises OplineError if calls or states are wanted of them.
        """
        if not pids or not self.tree or (pid_namespace() and not (self.calls or self.states)):
            return
        if pid_namespace():
            raise OplineError("processes that run already can be followed in the initial PID namespace only")
        tree, sets = (self._bridge.bpf.maps[name] for name in ("tree", "thread_sets"))
        known: dict[int, Any] = {}
        for pid in pids:
            tree.set(ctypes.c_uint32(pid), tree.value(1))
            for thread in Path(f"/proc/{pid}/task").glob("[0-9]*"):
                tasks.put_in(known, int(thread.name), sets.value)
        for place, found in known.items():
            sets.set(ctypes.c_uint32(place), found)

    def finish(self) -> dict[str, Any]:
        """Detach, pass on what is left, and say what happened."""
        told: dict[str, Any] = {}
        stacks_told: dict[str, Any] = {}
        cost = spent(self.programs)

        def end() -> None:
            self._bridge.bpf.detach()
            if self._stacks is not None and self._stacks.why is None:
                stacks_told.update(self._stacks.write(self._bridge.bpf))
            if self._requests is not None:
                told.update(self._requests.finish())

        counts = self._bridge.finish(end)
        counts["paths"] = self._bridge.library.paths_told()
        counts |= {"programs": cost, "typed": bool(self._types), "call_ns": self._call_ns, **stacks_told}
        if self._records is not None:
            self._bridge.library.live_close()
        if self._writes:
            counts["unwritten"] = int(self._bridge.library.bridge_close())
        if told:
            both = {name: counts[name] + told[name] for name in _OF_BOTH}
            sent = {
                name: counts["sent"].get(name, 0) + told["sent"].get(name, 0)
                for name in (*counts["sent"], *told["sent"])
            }
            return {
                **counts, **both, "requests": told, "sent": sent, "lost_ring": both["lost_ring"] + told["late"],
            }  # fmt: skip
        return counts
