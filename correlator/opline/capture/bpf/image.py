# SPDX-License-Identifier: MIT
"""BPF programs as bcc compiles them, in a form that can be kept: instructions, and the maps that they use.

The only file that imports bcc (Debian's ``python3-bpfcc``). bcc makes the maps while it compiles, and writes their
descriptors into the instructions; an image has the map's place in the image instead. Compiling takes seconds of CPU
time, loading an image milliseconds.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import hashlib
import importlib.util
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from opline.capture.bpf import kept, kernel, kernel_stub
from opline.capture.machine.machine import how_to_get
from opline.errors import OplineError
from opline.scratch import scratch
from opline.values import Value

_FORMAT = "opline-bpf-2"
_LD_IMM64, _MAP_FD = 0x18, 1  # BPF_LD | BPF_IMM | BPF_DW, BPF_PSEUDO_MAP_FD; include/uapi/linux/bpf.h


class MapOf(Value):
    """A map of an image. ``kind``: of ``enum bpf_map_type``; ``value``: the type of values as bcc describes it."""

    name: str
    kind: int
    key_bytes: int
    value_bytes: int
    entries: int
    flags: int
    value: str


class Image(Value):
    """Maps, and programs by name: instructions that name a map by its place in ``maps``."""

    maps: Sequence[MapOf]
    programs: Mapping[str, bytes]

    def text(self) -> str:
        """For a file."""
        body = json.dumps(
            {
                "maps": [vars(of) for of in self.maps],
                "programs": {name: base64.b64encode(code).decode() for name, code in self.programs.items()},
            }
        )
        return f"{_FORMAT} {hashlib.sha256(body.encode()).hexdigest()}\n{body}\n"

    @classmethod
    def of_text(cls, text: bytes) -> Image | None:
        """What ``text`` gave; None if it is damaged."""
        head, _, body = text.partition(b"\n")
        if head != f"{_FORMAT} {hashlib.sha256(body.strip()).hexdigest()}".encode():
            return None
        found = json.loads(body)
        programs = {name: base64.b64decode(code) for name, code in found["programs"].items()}
        return cls(tuple(MapOf(**of) for of in found["maps"]), programs)


def image_of(text: bytes, definitions: Mapping[str, object], what: str, keep: bool = True) -> Image:
    """The image of a program text with these ``-D``: the kept one, else it is compiled and, if ``keep``, kept. ``what``
    is said in errors. Raises OplineError.
    """
    flags = [f"-D{name}={value}" for name, value in sorted(definitions.items())]
    key = hashlib.sha256(repr((_FORMAT, text, flags, platform.release(), _compiler())).encode()).hexdigest()
    known = kept.read(key)
    image = None if known is None else Image.of_text(known)
    if image is None:
        image = _compiled(text, flags, what)
        if keep:
            kept.write(key, image.text())
    return image


def _compiler() -> tuple[object, ...]:
    """Which bcc compiles; it is not imported for that."""
    found = importlib.util.find_spec("bcc")
    if found is None or found.origin is None:
        return ()
    return found.origin, Path(found.origin).stat().st_mtime_ns


def _compiled(text: bytes, flags: Sequence[str], what: str) -> Image:
    try:
        with _stderr_kept():
            import bcc
            from bcc.libbcc import lib
    except ImportError as error:
        raise OplineError(f"Python's bcc module not found: {how_to_get('bcc', 'python3-bpfcc')}") from error
    before = os.environ.get("BCC_KERNEL_SOURCE")
    with scratch("bpf") as folder, _stderr_kept() as said:
        os.environ["BCC_KERNEL_SOURCE"] = str(kernel_stub.write(Path(folder)))
        try:
            compiled = bcc.BPF(text=text, cflags=list(flags))
            try:
                return _taken(compiled, lib)
            finally:
                compiled.cleanup()
        except Exception as error:
            failure = error  # bcc raises bare Exception
        finally:
            if before is None:
                del os.environ["BCC_KERNEL_SOURCE"]
            else:
                os.environ["BCC_KERNEL_SOURCE"] = before
    raise failed(f"{what} did not compile with bcc {bcc.__version__}", said, failure)


def _taken(compiled: Any, lib: Any) -> Image:
    lib.bpf_num_tables.argtypes, lib.bpf_num_tables.restype = (ctypes.c_void_p,), ctypes.c_size_t  # bcc has not these
    lib.bpf_table_name.argtypes, lib.bpf_table_name.restype = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_char_p
    module = compiled.module
    maps, place_of = [], {}
    for number in range(lib.bpf_num_tables(module)):
        name = lib.bpf_table_name(module, number)
        descriptor = lib.bpf_table_fd(module, name)
        place_of[descriptor] = number
        value = (lib.bpf_table_leaf_desc(module, name) or b"").decode()
        maps.append(MapOf(name.decode(), *kernel.map_information(descriptor), value))
    names = [lib.bpf_function_name(module, number) for number in range(lib.bpf_num_functions(module))]
    return Image(tuple(maps), {name.decode(): with_maps(compiled.dump_func(name), place_of) for name in names})


def with_maps(code: bytes, number_of: Mapping[int, int]) -> bytes:
    """Instructions with other numbers for their maps."""
    out = bytearray(code)
    at = 0
    while at < len(out):
        wide = out[at] == _LD_IMM64
        if wide and out[at + 1] >> 4 == _MAP_FD:
            number = int.from_bytes(out[at + 4 : at + 8], sys.byteorder)
            out[at + 4 : at + 8] = number_of[number].to_bytes(4, sys.byteorder)
        at += kernel.INSTRUCTION_BYTES * (2 if wide else 1)
    return bytes(out)


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


def failed(what: str, said: Sequence[str], failure: Exception) -> OplineError:
    """With the line that says why: an error of the compiler, the kernel or the verifier."""
    if any("Operation not permitted" in line for line in [*said, str(failure)]):
        return OplineError(
            "BPF is not permitted here: run as root, outside of a restricted container or kernel lockdown"
        )
    errors = [line.strip() for line in said if "error:" in line]
    why = failure.strerror if isinstance(failure, OSError) and failure.strerror else failure
    return OplineError(f"{what}: {errors[0] if errors else why}")


_C_TYPES: dict[str, Any] = {
    "_Bool": ctypes.c_bool, "char": ctypes.c_char, "signed char": ctypes.c_byte, "unsigned char": ctypes.c_ubyte,
    "short": ctypes.c_short, "unsigned short": ctypes.c_ushort, "int": ctypes.c_int, "unsigned int": ctypes.c_uint,
    "long": ctypes.c_long, "unsigned long": ctypes.c_ulong, "long long": ctypes.c_longlong,
    "unsigned long long": ctypes.c_ulonglong,
}  # fmt: skip


def c_type(described: Any) -> Any:
    """The type that bcc describes (b_frontend_action.cc): a name, or [name, [[field, type(, length)]…], what], where
    what is ``struct`` or ``struct_packed``.
    """
    if isinstance(described, str):
        return _C_TYPES[described]
    name, members, kind = described
    fields = []
    for field, of, *length in members:
        member = c_type(of)
        fields.append((field, member * length[0][0] if length else member))
    packed = {"struct": {}, "struct_packed": {"_pack_": 1}}[kind]
    return type(str(name), (ctypes.Structure,), {**packed, "_fields_": fields})
