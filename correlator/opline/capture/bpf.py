# SPDX-License-Identifier: MIT
"""BPF programs at the block layer's tracepoints, and the bridge that passes their records on to LTTng.

The only file that imports bcc. Needs root, a kernel with BTF, Debian's ``python3-bpfcc``, and ``_bridge.so`` (built by
``make -C tracepoints bridge``), which has the programs' text inside. No kernel headers: what the programs must know of
the running kernel is looked up in its BTF and given to them as ``-D``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from opline.capture import kernel_stub
from opline.capture.btf import Btf
from opline.errors import OplineError

BRIDGE = Path(__file__).with_name("_bridge.so")
RING_BYTES = 64 << 20
PERIOD_NS = 3_000_000
OWN_TGIDS = 8  # as in tracepoints/block_event.h

# In the order of enum block_kind (tracepoints/block_event.h).
KINDS = (
    "block_bio_queue", "block_getrq", "block_bio_backmerge", "block_bio_frontmerge", "block_split", "block_bio_remap",
    "block_bio_complete", "block_rq_insert", "block_rq_issue", "block_rq_bio", "block_rq_requeue", "block_rq_merge",
    "block_rq_remap", "block_rq_complete", "block_plug", "block_unplug",
)  # fmt: skip
_OWN_EVENTS = ("block_rq_bio",)  # sent by another tracepoint's program
TRACEPOINTS = tuple(kind for kind in KINDS if kind not in _OWN_EVENTS)
# Without these there are no block requests to speak of.
_NEEDED = ("block_bio_queue", "block_rq_issue", "block_rq_complete")

_PID_NAMESPACE = Path("/proc/self/ns/pid")
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO, include/linux/proc_ns.h

_BIO_WALK = 256  # bios of a request that are named at its issue
_OWN_WALK = 32
_LARGEST_SPAN = 192  # of the BPF stack's 512 bytes


_COUNTS = (
    "watermarks", "lost_events", "not_enabled", "lost_ring", "lost_nested", "late", "reordered", "own_bios",
    "own_events", "own_overflow", "chain_cut", "most_bytes", "cpu_ns", "rounds",
)  # fmt: skip


class Counts(ctypes.Structure):
    """``struct bridge_counts`` of tracepoints/bridge.c."""

    _fields_ = (("sent", ctypes.c_uint64 * len(KINDS)), *((name, ctypes.c_uint64) for name in _COUNTS))

    def document(self) -> dict[str, Any]:
        """As plain JSON types; ``sent`` by event name, without zeros."""
        values = {name: getattr(self, name) for name in _COUNTS}
        return {"sent": {kind: n for kind, n in zip(KINDS, self.sent, strict=True) if n}, **values}


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


def pid_namespace() -> dict[str, int]:
    """In a PID namespace (a container) threads shall be numbered as the application sees them: which one it is.

    Empty in the initial one, where the kernel's own numbers are those. Raises OSError.
    """
    seen = _PID_NAMESPACE.stat()
    if seen.st_ino == _INITIAL_PID_NAMESPACE:
        return {}
    return {"PIDNS_DEV": os.major(seen.st_dev) << 20 | os.minor(seen.st_dev), "PIDNS_INO": seen.st_ino}


def possible_cpus() -> int:
    """One more than the highest CPU number that there can be."""
    text = Path("/sys/devices/system/cpu/possible").read_text()
    return 1 + max(int(number) for number in re.findall(r"\d+", text))


@contextlib.contextmanager
def _stderr_kept() -> Iterator[list[str]]:
    """bcc and LLVM write their complaints to descriptor 2: keep them, to say the one that matters."""
    lines: list[str] = []
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as sink:
        os.dup2(sink.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            sink.seek(0)
            lines += sink.read().decode(errors="replace").splitlines()


class Collector:
    """Programs and bridge: ``Collector()``, ``start()``, … ``finish()``. All goes with the process, however it ends.

    ``own``: processes whose I/O is left out. Raises OplineError, one line that says what is missing.
    """

    def __init__(self, own: Sequence[int] = (), ring_bytes: int = RING_BYTES, period_ns: int = PERIOD_NS) -> None:
        if os.geteuid() != 0:
            raise OplineError("block events through BPF need root")
        if ring_bytes < 1 << 16 or ring_bytes & (ring_bytes - 1):
            raise OplineError(f"a ring buffer of {ring_bytes} bytes: it must be a power of two of at least 65536")
        if len(own) > OWN_TGIDS:
            raise OplineError(f"{len(own)} processes to leave out, at most {OWN_TGIDS}")
        self._own = own
        self._ring_bytes = ring_bytes
        self._period_ns = period_ns
        self._definitions = definitions(Btf.of_kernel())
        self._bridge: Any = None
        self._handle: int | None = None
        self._load_bridge()
        self._bpf = self._compile()
        self._programs = self._load()

    def _load_bridge(self) -> None:
        try:
            bridge = ctypes.CDLL(str(BRIDGE))
        except OSError as error:
            raise OplineError(f"{BRIDGE}: {error}; build it with 'make build'") from error
        bridge.bridge_program_text.restype = ctypes.c_char_p
        bridge.bridge_start.restype = ctypes.c_void_p
        bridge.bridge_start.argtypes = (
            ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_int),
            ctypes.c_uint32, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint32),
        )  # fmt: skip
        bridge.bridge_mask.argtypes = (ctypes.c_void_p,)
        bridge.bridge_mask.restype = ctypes.c_uint64
        bridge.bridge_quiet.argtypes = (ctypes.c_void_p,)
        bridge.bridge_finish.argtypes = (ctypes.c_void_p, ctypes.POINTER(Counts))
        self._bridge = bridge

    def _compile(self) -> Any:
        try:
            with _stderr_kept():
                import bcc
        except ImportError as error:
            raise OplineError("Python's bcc module not found: apt install python3-bpfcc") from error
        self._cpus = possible_cpus()
        values = {
            **self._definitions,
            **pid_namespace(),
            "RING_PAGES": self._ring_bytes // os.sysconf("SC_PAGESIZE"),
            "CPU_COUNT": self._cpus,
            "BIO_WALK": _BIO_WALK,
            "OWN_WALK": _OWN_WALK,
        }
        before = os.environ.get("BCC_KERNEL_SOURCE")
        with tempfile.TemporaryDirectory(prefix="opline-bpf-") as folder, _stderr_kept() as said:
            os.environ["BCC_KERNEL_SOURCE"] = str(kernel_stub.write(Path(folder)))
            try:
                return bcc.BPF(
                    text=self._bridge.bridge_program_text(),
                    cflags=[f"-D{name}={value}" for name, value in values.items()],
                )
            except Exception as error:
                failure = error  # bcc raises bare Exception
            finally:
                if before is None:
                    del os.environ["BCC_KERNEL_SOURCE"]
                else:
                    os.environ["BCC_KERNEL_SOURCE"] = before
        raise _failed(f"the BPF programs did not compile with bcc {bcc.__version__}", said, failure)

    def _load(self) -> dict[str, Any]:
        programs = {}
        for name in TRACEPOINTS:
            if not any(key.startswith(f"A_{name}_") for key in self._definitions):
                continue
            with _stderr_kept() as said:
                try:
                    programs[name] = self._bpf.load_func(f"on_{name}".encode(), self._bpf.RAW_TRACEPOINT)
                    continue
                except Exception as error:
                    failure = error
            raise _failed(f"the kernel does not take the BPF program for {name}", said, failure)
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
        return int(self._bridge.bridge_mask(self._handle))

    def start(self) -> None:
        """Attach the programs, start the bridge's thread. Raises OplineError."""
        for name in self._programs:
            with _stderr_kept() as said:
                try:
                    self._bpf.attach_raw_tracepoint(tp=name.encode(), fn_name=f"on_{name}".encode())
                    continue
                except Exception as error:
                    failure = error
            raise _failed(f"cannot attach to tracepoint {name}", said, failure)
        descriptors = (ctypes.c_int * len(self._programs))(*(program.fd for program in self._programs.values()))
        own = (ctypes.c_uint32 * OWN_TGIDS)(*self._own)
        ctypes.set_errno(0)
        self._handle = self._bridge.bridge_start(
            self._bpf[b"events"].map_fd, self._ring_bytes, self._bpf[b"control"].map_fd, self._bpf[b"cpus"].map_fd,
            self._cpus, descriptors, len(descriptors), self._period_ns, own,
        )  # fmt: skip
        if self._handle is None:
            raise OplineError("the BPF ring buffer cannot be mapped")

    def finish(self) -> Counts:
        """Detach, pass on what is left, and say what happened."""
        assert self._handle is not None
        counts = Counts()
        self._bridge.bridge_quiet(self._handle)
        for name in self._programs:
            self._bpf.detach_raw_tracepoint(name.encode())
        self._bridge.bridge_finish(self._handle, ctypes.byref(counts))
        self._handle = None
        self._bpf.cleanup()
        return counts


def _failed(what: str, said: list[str], failure: Exception) -> OplineError:
    """With the line that says why: an error of the compiler, the kernel or the verifier, else bcc's."""
    if any("Operation not permitted" in line for line in [*said, str(failure)]):
        return OplineError(
            "BPF is not permitted here: run as root, outside of a restricted container or kernel lockdown"
        )
    errors = [line.strip() for line in said if "error:" in line]
    return OplineError(f"{what}: {errors[0] if errors else failure}")
