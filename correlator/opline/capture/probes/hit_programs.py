# SPDX-License-Identifier: MIT
"""From declared probes to BPF programs: where each is in a program's file, and the C text that reads its arguments.

Takes a model's probes and the files; gives ``Program`` values, and the reasons why others are not there. Arguments of
a USDT probe are written in its note as the assembler's operands (``-4@%eax 8@-144(%rbp) 4@$5``, SystemTap's
``sys/sdt.h``); those of a function are in registers (System V ABI of x86-64).
"""

from __future__ import annotations

import ctypes
import difflib
import fnmatch
import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opline.capture.machine.elf import Elf, Place
from opline.values import Value

if TYPE_CHECKING:
    from opline.capture.bpf.btf import Btf
    from opline.model import Probe, ProbeField

MAX_PROGRAMS = 250  # KIND_COUNT in tracepoints/hit_event.h, less those that measure
_MOST_PLACES = 64  # of one probe: a glob that means more is a mistake
_X86_64 = 62  # EM_X86_64
_ARGUMENTS = ("di", "si", "dx", "cx", "r8", "r9")
_OPERAND = re.compile(r"(-?[1248])@(.+)")
_SIGNATURE = re.compile(r"\)( const)?$")  # a C++ name with its arguments
_MEMORY = re.compile(r"(-?(?:0x[0-9a-fA-F]+|\d+))?\(%(\w+)(?:,%(\w+)(?:,([1248]))?)?\)")

# No macro: bcc rewrites the calls of a map where they stand.
_PROGRAM = """
struct hit_%(kind)d {
    struct hit_head head;
    u8 payload[%(size)d];
};
int on_hit_%(kind)d(struct %(context)s *ctx) {
    struct bridge_cpu *cpu = this_cpu();
    if (!cpu) return 0;
    struct hit_%(kind)d *e = events.ringbuf_reserve(sizeof(struct hit_%(kind)d));
    if (!e) {
        __sync_fetch_and_add(&cpu->lost, 1);
        return 0;
    }
    begin_hit(&e->head, cpu, %(kind)d);
    %(fill)s
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}
"""


def _registers() -> dict[str, tuple[str, str]]:
    """Names of registers in operands → (member of pt_regs, type of the part that is meant)."""
    found: dict[str, tuple[str, str]] = {}
    for name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp"):
        found |= {f"r{name}": (name, "u64"), f"e{name}": (name, "u32"), name: (name, "u16")}
        found[f"{name[0]}l" if name.endswith("x") else f"{name}l"] = (name, "u8")
    for number in range(8, 16):
        name = f"r{number}"
        found |= {name: (name, "u64"), f"{name}d": (name, "u32"), f"{name}w": (name, "u16"), f"{name}b": (name, "u8")}
    return found


_REGISTERS = _registers()


class UnreadableError(Exception):
    """An argument that can't be read, in a few words."""


class Program(Value):
    """One BPF program: all places of a probe in a file at which the arguments lie alike; or one in the kernel."""

    event: int  # which of the probes
    path: Path | None  # None: in the kernel
    returns: bool
    fill: str  # C statements
    offsets: tuple[int, ...]
    semaphores: tuple[int, ...]
    stepped: bool  # the kernel single-steps an instruction there
    tracepoint: str = ""  # of the kernel


def payload_bytes(fields: Sequence[ProbeField]) -> int:
    """What a hit's fields take; a program always has some."""
    return sum(field.bytes for field in fields) or 8


def is_signed(probe: Probe, field: ProbeField, arguments: Sequence[str]) -> bool:
    """Is it written as a signed number? ``arguments``: of the probe's places, where they are USDT notes."""
    if field.type:
        return field.type.startswith("s")
    if field.offsets or probe.kind != "usdt":
        return False
    operands = [text.split() for text in arguments]
    return any(len(o) >= field.argument and o[field.argument - 1].startswith("-") for o in operands)


def operand(text: str) -> str:
    """The C expression (64 bits) for one argument of a USDT note. Raises UnreadableError."""
    found = _OPERAND.fullmatch(text)
    if found is None:
        raise UnreadableError(f"{text} is no integer of 1 to 8 bytes")
    kind = ("s" if found[1].startswith("-") else "u") + str(8 * abs(int(found[1])))
    where = found[2]
    if re.fullmatch(r"\$-?\d+", where):
        return f"({kind}){where[1:]}LL"
    if where.startswith("%") and where[1:] in _REGISTERS:
        return f"({kind})ctx->{_REGISTERS[where[1:]][0]}"
    memory = _MEMORY.fullmatch(where)
    if memory is None or memory[2] not in _REGISTERS or (memory[3] and memory[3] not in _REGISTERS):
        raise UnreadableError(f"{text} is no register, constant, or memory relative to registers")
    index = f" + ctx->{_REGISTERS[memory[3]][0]} * {memory[4] or 1}" if memory[3] else ""
    return f"at_{kind}(ctx->{_REGISTERS[memory[2]][0]}{index} + ({memory[1] or 0}))"


def _variable(probe: Probe, field: ProbeField, place: Place, file: Elf) -> str:
    """The C expression for the address of a variable: so far from the place, wherever the program was loaded. Raises
    UnreadableError.
    """
    names = file.variables()
    address = names.get(field.variable, dict(field.builds).get(file.build_id()))
    if address is None and field.compared is not None:
        member = file.compared(field.compared[0])
        address = None if member is None else member - field.compared[1]
    here = file.address(place.offset)
    if address is None or here is None:
        build = f"its build, {file.build_id() or 'without an ID'}, is none that the model knows"
        rule = field.compared and f", and {field.compared[0]} compares with no variable, or with several"
        why = (f", and {build}" if field.builds else "") + (rule or "")
        why = why or _instead(field.variable, list(names))
        raise UnreadableError(f"field {field.name}: {file.path} has no variable {field.variable}{why}")
    # Where a function returns, the context has the place to which it does.
    base = "bpf_get_func_ip(ctx)" if probe.kind == "return" else "ctx->ip"
    return f"({base} + ({address - here}LL))"


def _value(probe: Probe, field: ProbeField, place: Place, file: Elf | None) -> str:
    """The C expression for a field at a place. Raises UnreadableError."""
    arguments = place.arguments
    if field.variable and file is not None:
        value = _variable(probe, field, place, file)
    elif field.register:
        value = f"ctx->{field.register}"
    elif probe.kind == "usdt":
        operands = arguments.split()
        if field.argument > len(operands):
            raise UnreadableError(
                f"field {field.name}: it has {len(operands)} arguments, there is no arg{field.argument}"
            )
        value = operand(operands[field.argument - 1])
    elif probe.kind == "return":
        value = "ctx->ax"
    elif probe.kind == "tracepoint":
        value = f"ctx->args[{field.argument - 1}]"
    else:
        value = f"ctx->{_ARGUMENTS[field.argument - 1]}"
    *before, last = field.offsets or (None,)
    reads = "kernel" if probe.kind == "tracepoint" else "at"
    for offset in before:
        value = f"{reads}_u64((u64)({value}) + ({offset}))"
    kind = field.type if field.type not in ("", "text") else ""
    if last is not None:
        value = f"{reads}_{kind or 'u64'}((u64)({value}) + ({last}))"
    if field.plus:
        value = f"(u64)({value}) + ({field.plus}LL)"
    return f"({kind})({value})" if kind and (field.plus or last is None) else value


def fill(probe: Probe, place: Place, file: Elf | None = None) -> str:
    """C statements that write a probe's fields into the record. Raises UnreadableError."""
    at, lines = 0, []
    for field in probe.fields:
        value = _value(probe, field, place, file)
        if field.type == "text":
            where = "KERNEL_TEXT" if probe.kind == "tracepoint" else "HIT_TEXT"
            if field.length is not None:
                where, value = f"{where}_OF", f"{value}, {_value(probe, field.length, place, file)}"
            lines.append(f"{where}({at}, {field.bytes}, {value})")
        else:
            lines.append(f"HIT_NUMBER({at}, (s64)({value}))")
        at += field.bytes
    return " ".join(lines) or "HIT_NUMBER(0, 0)"


def program_text(kind: int, program_fill: str, size: int, tracepoint: bool = False) -> str:
    """The text of the program of that number, whose record has ``size`` bytes behind its head."""
    context = "bpf_raw_tracepoint_args" if tracepoint else "pt_regs"
    return _PROGRAM % {"kind": kind, "size": size, "fill": program_fill, "context": context}


def find(probe: Probe, number: int, file: Elf) -> list[Program]:
    """The programs of a probe in that file. Raises UnreadableError: what is wrong, and what the file has."""
    if file.machine != _X86_64:
        raise UnreadableError(f"{file.path} is not for x86-64")
    if probe.kind == "usdt":
        places = _usdt(probe, file)
    else:
        paths = [path for field in probe.fields for path in field.paths()]
        kept = probe.kind == "return" or any(path.register for path in paths)
        used = None if kept else max((path.argument for path in paths), default=0)
        entries = [file.entry(at, used) for _, at in _functions(probe, file)]
        # A USDT probe may be a function's first instruction: the kernel knows one counter for each place.
        counters = {place.offset: place.semaphore for place in file.places()}
        places = [Place("", "", at, counters.get(at, 0), "") for at in entries]
    alike: dict[str, list[Place]] = {}
    for place in places:
        alike.setdefault(fill(probe, place, file), []).append(place)
    return [
        Program(
            number, file.path, probe.kind == "return", text, tuple(p.offset for p in some),
            tuple(p.semaphore for p in some), any(file.steps(p.offset) for p in some),
        )
        for text, some in alike.items()
    ]  # fmt: skip


def find_in_kernel(probe: Probe, number: int, btf: Btf) -> Program:
    """The program of a probe at one of the kernel's tracepoints. Raises UnreadableError."""
    text = fill(probe, Place("", "", 0, 0, ""))
    name = probe.target.rpartition(":")[2]
    arguments = btf.tracepoint(name)
    if arguments is None:
        raise UnreadableError(f"the kernel has no tracepoint {name}{_close(name, btf.tracepoints())}")
    most = max((path.argument for field in probe.fields for path in field.paths()), default=0)
    if most > len(arguments):
        raise UnreadableError(f"the tracepoint {name} has {len(arguments)} arguments, there is no arg{most}")
    return Program(number, None, False, text, (0,), (0,), False, tracepoint=name)


def _usdt(probe: Probe, file: Elf) -> list[Place]:
    provider, _, name = probe.target.partition(":")
    places = file.places()
    found = [place for place in places if (place.provider, place.name) == (provider, name)]
    if not found:
        has = sorted({f"{place.provider}:{place.name}" for place in places})
        raise UnreadableError(f"{file.path} has no USDT probe {probe.target}{_instead(probe.target, has)}")
    return found


def _functions(probe: Probe, file: Elf) -> list[tuple[str, int]]:
    """By the name as it is linked, else by the C++ name. With its arguments that is one function, or its variants;
    without them, and as it is linked, it may be a glob.
    """
    functions = file.functions()
    if probe.target in functions:
        return [(probe.target, functions[probe.target])]
    found = {}
    for name, offset in functions.items():
        plain = demangled(name) if name.startswith("_Z") else name
        if _SIGNATURE.search(probe.target):
            if plain == probe.target:
                found[offset] = name
        elif any(fnmatch.fnmatchcase(text, probe.target) for text in (name, plain, plain.partition("(")[0])):
            found[offset] = name
    if not found:
        names = [demangled(n).partition("(")[0] if n.startswith("_Z") else n for n in functions]
        raise UnreadableError(f"{file.path} has no function {probe.target}{_instead(probe.target, names)}")
    if len(found) > _MOST_PLACES:
        raise UnreadableError(f"{probe.target} means {len(found)} functions of {file.path}, at most {_MOST_PLACES}")
    return [(name, offset) for offset, name in sorted(found.items())]


def _close(wanted: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(wanted, names, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _instead(wanted: str, names: Sequence[str]) -> str:
    if close := _close(wanted, names):
        return close
    return f" (it has {len(set(names))}: `opline doctor --program` lists them)" if names else " (it has none)"


@functools.cache
def _demangler() -> tuple[ctypes.CDLL, ctypes.CDLL] | None:
    """The C++ library, and C's for what it allocates."""
    try:
        library, libc = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
    except OSError:
        return None
    library.__cxa_demangle.restype = ctypes.c_void_p
    libc.free.argtypes = (ctypes.c_void_p,)
    return library, libc


@functools.cache
def demangled(name: str) -> str:
    """A C++ name as it is written in the source; the name itself where there is no C++ library, or it is no such."""
    libraries = _demangler()
    if libraries is None:
        return name
    library, libc = libraries
    status = ctypes.c_int()
    text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    plain = ctypes.string_at(text).decode("utf-8", "replace")
    libc.free(text)
    return plain
