# SPDX-License-Identifier: MIT
"""What a recording captures: channels, events and contexts of the LTTng session, and how large its buffers are.

Takes the event globs that a model claims; gives the channels to create.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from opline.applications import table
from opline.values import Value

MIB = 1 << 20

APP_CHANNEL = "app"
KERNEL_CHANNEL = "kernel"
BLOCK_CHANNEL = "block"  # of a trace of its own, which the collector writes
CONTROL_CHANNEL = "control"  # by what is enabled there, the session says which events the collector writes
REQUESTS_CHANNEL = "requests"  # likewise
BLOCK_PROVIDER = "block"
CALL_PROVIDER = "syscall"
STATE_PROVIDER = "sched"  # what the recorded threads did, of the same collector
TCP_PROVIDER = "tcp"  # their positions in TCP streams, likewise
RING_CHANNEL = "shim"

#: Besides the records of block requests, which the collector writes by itself. Single block events are recorded if
#: ``block:`` is asked for.
_BLOCK_EVENTS = (f"{BLOCK_PROVIDER}:watermark", f"{BLOCK_PROVIDER}:lost")

#: Which processes are the recorded ones, which program each of them ran when, and who a thread is that has another
#: number in its own PID namespace: a few events per process.
_PROCESS_EVENTS = (f"{STATE_PROVIDER}:process_*",)

#: Recorded when neither a model nor ``--events`` says what the application's events are: opline's own provider.
DEFAULT_GLOBS = ("opline:*",)
#: Recorded besides where no model says what is wanted: the model `syscalls` claims them.
CALL_GLOBS = ("syscall_entry_*", "syscall_exit_*", "io_uring_*")

#: 512 KiB x 4 (LTTng's default) lost 94 k of 2 M events under contention, 4 MiB x 8 none of 20 M.
SUBBUF_BYTES = 4 * MIB
SUBBUF_COUNT = 8
_SMALLEST_SUBBUF = 64 << 10

#: ``vpid`` and ``vtid`` are numbers of the PID namespace whose inode ``pid_ns`` is.
APP_CONTEXTS = ("vpid", "vtid", "procname", "pid_ns")
KERNEL_CONTEXTS = ("pid", "tid", "procname")

#: ``lttng_statedump_block_device`` gives the names of devices, ``lttng_statedump_process_pid_ns`` the numbers that
#: threads have in PID namespaces, ``sched_process_*`` these of later threads, and which processes are the command's.
KERNEL_EVENTS = (
    "block_*", "lttng_statedump_block_device", "lttng_statedump_process_pid_ns", "sched_process_fork",
    "sched_process_exec", "sched_process_exit",
)  # fmt: skip
#: The modules with these events and STATE_EVENTS (lttng-modules 2.13, src/probes); system calls need none.
KERNEL_PROBES = ("block", "sched", "statedump")
#: What threads did, unless that is not wanted.
STATE_EVENTS = ("sched_switch", "sched_wakeup", "sched_wakeup_new", "sched_waking")
KERNEL_SYSCALLS = (
    "read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2",
    "fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs", "io_submit", "io_getevents", "io_pgetevents",
    "io_uring_enter", "sendfile64", "copy_file_range", "splice",
)  # fmt: skip
#: What the BPF collector knows, where no lttng-modules are (tracepoints/calls.h).
BPF_SYSCALLS = (
    "read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2", "fsync",
    "fdatasync", "syncfs", "sync_file_range", "sendfile64", "sync", "msync", "io_submit", "io_getevents",
    "io_pgetevents", "io_uring_enter", "copy_file_range", "splice",
)  # fmt: skip
#: For system calls: the consumer daemon alone makes two per page of user-space buffers when an application registers.
NOT_THE_TRACER = '$ctx.procname != "lttng-*"'


class Channel(Value):
    """One channel of the session."""

    name: str
    kernel: bool
    events: tuple[str, ...]
    contexts: tuple[str, ...] = ()
    syscalls: tuple[str, ...] = ()
    subbuf_bytes: int = SUBBUF_BYTES
    subbuf_count: int = SUBBUF_COUNT

    def memory_bytes(self, cpus: int) -> int:
        """Memory of its buffers: one set per CPU (and per user, for user-space channels)."""
        return self.subbuf_bytes * self.subbuf_count * cpus


class Globs(Value):
    """Event globs sorted by where they are recorded. ``syscalls``: those that are named, ``calls``: all as they are."""

    app: tuple[str, ...]
    kernel_events: tuple[str, ...] = ()
    syscalls: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    block: bool = False
    exclude: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    @property
    def kernel_probes(self) -> tuple[str, ...]:
        """The modules with the kernel events of a recording; empty if they are not known."""
        return () if self.kernel_events else KERNEL_PROBES


def sort_globs(claims: Iterable[str]) -> Globs:
    """Tell user-space globs (``provider:event``) from kernel ones, and from the block events of the collector.

    A kernel system call is ``syscall_entry_NAME`` or ``syscall_exit_NAME``; LTTng enables both at once by name.
    """
    app: dict[str, None] = {}
    kernel: dict[str, None] = {}
    syscalls: dict[str, None] = {}
    calls: dict[str, None] = {}
    block, relayed = False, table.relayed()
    for glob in claims:
        if glob.startswith(f"{BLOCK_PROVIDER}:"):
            block = True
        elif glob.startswith((f"{STATE_PROVIDER}:", *(f"{provider}:" for provider in relayed))):
            continue  # in a collector's channel, and only if they are asked for, or come that way
        elif glob.startswith((f"{CALL_PROVIDER}:", "syscall_", "io_uring_")):
            call = glob.removeprefix(f"{CALL_PROVIDER}:")
            calls[call] = None
            if call.startswith("io_uring_"):
                continue  # of io_uring's requests, which LTTng's kernel domain does not have
            name = call.removeprefix("syscall_").removeprefix("entry_").removeprefix("exit_")
            if name and "*" not in name:
                syscalls[name] = None
        elif ":" in glob or glob == "*":
            app[glob] = None
        else:
            kernel[glob] = None
    ours = (
        f"{BLOCK_PROVIDER}:block_rq_issue", f"{CALL_PROVIDER}:syscall_entry_read",
        f"{STATE_PROVIDER}:off_cpu", *(f"{provider}:aio_submit" for provider in relayed),
    )  # fmt: skip
    providers = (BLOCK_PROVIDER, CALL_PROVIDER, STATE_PROVIDER, *relayed)
    all_of_them = tuple(f"{p}:*" for p in providers)
    exclude = {g: all_of_them for g in app if any(fnmatch.fnmatchcase(name, g) for name in ours)}
    return Globs(tuple(app), tuple(kernel), tuple(syscalls), tuple(calls), block, exclude)


def possible_cpus() -> int:
    """CPUs that the kernel may bring up: LTTng allocates buffers for each."""
    try:
        return int(os.sysconf("SC_NPROCESSORS_CONF"))
    except (ValueError, OSError):
        return os.cpu_count() or 1


def memory_available_bytes() -> int | None:
    """Memory that can be taken without swapping, or None if unknown."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found.group(1)) << 10


def shared_memory_free_bytes() -> int | None:
    """What LTTng-UST's buffers may take of ``/dev/shm``: its free space, at most the free memory; None if unknown."""
    memory = memory_available_bytes()
    try:
        free = shutil.disk_usage("/dev/shm").free
    except OSError:
        return memory
    return free if memory is None else min(free, memory)


def fit_subbuf_bytes(wanted: int, count: int, cpus: int, channels: int, free: int | None) -> int:
    """The largest sub-buffer size up to ``wanted``, a power of two, whose buffers fill at most half of ``free``.

    A machine with many CPUs or a container with a small ``/dev/shm`` gets smaller sub-buffers rather than none.
    """
    size = wanted
    while free is not None and size > _SMALLEST_SUBBUF and size * count * cpus * channels > free // 2:
        size //= 2
    return size


def ring_events(app: Iterable[str], relayed: str) -> tuple[str, ...]:
    """Globs of the events by which a shim's collector (its provider: `relayed`) passes on what these globs ask of the
    shim; empty if nothing.
    """
    found: dict[str, None] = {}
    for glob in app:
        provider, _, event = glob.partition(":")
        if fnmatch.fnmatchcase(table.relayed()[relayed], provider):
            found[f"{relayed}:{event or '*'}"] = None
    return (*found, f"{relayed}:lost") if found else ()


def plan_channels(
    globs: Globs,
    *,
    kernel: bool,
    bpf: bool,
    rings: bool = False,
    states: bool = True,
    tcp: bool = False,
    subbuf_bytes: int,
    subbuf_count: int,
    contexts: Sequence[str],
) -> list[Channel]:
    """The channels of a session. ``bpf``: kernel events come from the collector, in a channel of their own; ``rings``
    (the shim's events) likewise: each collector's stream is in order by itself. ``states``: with the scheduler's
    events; ``tcp``: with positions in TCP streams.
    """
    channels: list[Channel] = []
    if globs.app:
        channels.append(Channel(APP_CHANNEL, False, globs.app, tuple(contexts)))
    if bpf:
        calls = tuple(f"{CALL_PROVIDER}:{glob}" for glob in globs.calls)
        events: tuple[str, ...] = (f"{BLOCK_PROVIDER}:*",) if globs.block else _BLOCK_EVENTS
        sched = (f"{STATE_PROVIDER}:*",) if states else _PROCESS_EVENTS
        streams = (f"{TCP_PROVIDER}:*",) if tcp else ()
        channels.append(Channel(CONTROL_CHANNEL, False, (*events, *calls, *sched, *streams)))
    if rings:
        events = tuple(event for relayed in table.relayed() for event in ring_events(globs.app, relayed))
        channels.append(Channel(RING_CHANNEL, False, events))
    free = shared_memory_free_bytes()
    if kernel:
        events = tuple(dict.fromkeys(KERNEL_EVENTS + (STATE_EVENTS if states else ()) + globs.kernel_events))
        syscalls = tuple(dict.fromkeys(KERNEL_SYSCALLS + globs.syscalls))
        channels.append(Channel(KERNEL_CHANNEL, True, events, KERNEL_CONTEXTS, syscalls))
    size = fit_subbuf_bytes(subbuf_bytes, subbuf_count, possible_cpus(), len(channels), free)
    return [c.replaced(subbuf_bytes=size, subbuf_count=subbuf_count) for c in channels]
