# SPDX-License-Identifier: MIT
"""A small reader of BTF, the kernel's description of its own types (``/sys/kernel/btf/vmlinux``).

Takes the bytes; gives offsets of structure members, values of enumerators, and the arguments of tracepoints. Only what
those three need is decoded: 0.3 s for 5.5 MB. So answers about a kernel are kept (``kept.py``) under a hash of its
bytes, and the bytes are decoded only for a question that is new. Format: Documentation/bpf/btf.rst of Linux 6.12.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterable
from functools import update_wrapper
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from opline.capture.bpf import kept
from opline.errors import OplineError
from opline.values import Value

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")

KERNEL_BTF = Path("/sys/kernel/btf/vmlinux")

_MAGIC = 0xEB9F
_PTR, _STRUCT, _UNION, _ENUM, _TYPEDEF, _VOLATILE, _CONST, _RESTRICT = 2, 4, 5, 6, 8, 9, 10, 11
_FUNC, _FUNC_PROTO, _TYPE_TAG, _ENUM64 = 12, 13, 18, 19
_TRANSPARENT = (_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG)
# Words (4 bytes) that follow the three of every type: fixed ones, and those per element.
_EXTRA_WORDS = {1: 1, 3: 3, 14: 1, 17: 1}
_ELEMENT_WORDS = {_STRUCT: 3, _UNION: 3, _ENUM: 2, _FUNC_PROTO: 2, 15: 3, _ENUM64: 3}
_LAST_KIND = _ENUM64
_LARGEST_SPAN = 192  # of the BPF stack's 512 bytes


class Argument(Value):
    """One argument of a tracepoint: ``struct`` is the structure that it points to, ``typedef`` the outermost name."""

    struct: str | None
    typedef: str | None


def _once(
    question: Callable[Concatenate[Btf, Asked], Answer],
) -> Callable[Concatenate[Btf, Asked], Answer]:
    """Answers from what is known, else from the types."""

    def ask(self: Btf, /, *asked: Asked.args, **named: Asked.kwargs) -> Answer:
        key = " ".join((question.__name__, *map(str, asked), *map(str, named.values())))
        if key not in self.answers:
            self.decode()
            self.answers[key] = question(self, *asked, **named)
        answer: Answer = self.answers[key]
        return answer

    return update_wrapper(ask, question)


def all_known(found: dict[str, int | None]) -> dict[str, int] | None:
    """None if one of them is."""
    known = {name: value for name, value in found.items() if value is not None}
    return known if len(known) == len(found) else None


def span(prefix: str, members: Iterable[int]) -> dict[str, int]:
    """All members are read at once: from the first one's begin to 8 bytes after the last one's. Raises OplineError."""
    found = tuple(members)
    low = min(found) & ~7
    size = (max(found) + 8 - low + 7) & ~7
    if size > _LARGEST_SPAN:
        raise OplineError(f"kernel {platform.release()}: unusual layout of its structures ({prefix}: {size} bytes)")
    return {f"{prefix}_LOW": low, f"{prefix}_SPAN": size}


class Btf:
    """Types of one kernel. Raises OplineError if the bytes are not BTF that can be read here.

    ``answers``: what is known of it already, by question; then the bytes are decoded when a new question is asked.
    """

    def __init__(self, data: bytes, where: str = "BTF", answers: dict[str, Any] | None = None) -> None:
        self._where = where
        self.answers: dict[str, Any] = {} if answers is None else answers
        self._known = len(self.answers)
        self._kept_as: str | None = None
        self._data: bytes | None = data  # until it is decoded
        if not self.answers:
            self.decode()

    def decode(self) -> None:
        """Go through the bytes, once. Raises OplineError."""
        if self._data is None:
            return
        data, self._data, where = self._data, None, self._where
        if len(data) < 24 or int.from_bytes(data[:2], "little") != _MAGIC:
            raise OplineError(f"{where}: not BTF of this machine's byte order")
        header, types, types_size, strings, strings_size = (
            int.from_bytes(data[i : i + 4], "little") for i in range(4, 24, 4)
        )
        end = header + max(types + types_size, strings + strings_size)
        if end > len(data) or types_size % 4:
            raise OplineError(f"{where}: BTF is cut off at {len(data)} of {end} bytes")
        self._strings = data[header + strings : header + strings + strings_size]
        self._words = memoryview(data[header + types : header + types + types_size]).cast("I")
        self._at = [0]  # word index of each type; type 0 is void
        self._by_name: dict[int, list[int]] = {}  # of structures, unions and typedefs
        self._enums: list[int] = []
        self._walk()

    @classmethod
    def of_kernel(cls, path: Path = KERNEL_BTF) -> Btf:
        """The running kernel's types. Raises OplineError if it has none."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise OplineError(
                f"{path}: {error.strerror}; block events need a kernel built with CONFIG_DEBUG_INFO_BTF"
            ) from error
        name = f"btf-{hashlib.sha256(data).hexdigest()}"
        found = cls(data, str(path), _kept_answers(name))
        found._kept_as = name
        return found

    def keep(self) -> None:
        """Keep what was answered about the running kernel, for the next recording."""
        if self._kept_as is not None and len(self.answers) > self._known:
            told = {key: _to_json(answer) for key, answer in self.answers.items()}
            kept.write(self._kept_as, json.dumps(told))

    def _walk(self) -> None:
        words, at, position, end = self._words, self._at, 0, len(self._words)
        named = (_STRUCT, _UNION, _TYPEDEF)
        while position + 3 <= end:
            info = words[position + 1]
            kind = info >> 24 & 0x1F
            if kind > _LAST_KIND:
                raise OplineError(f"{self._where}: BTF has types of kind {kind}, unknown to this opline")
            at.append(position)
            if kind in named:
                self._by_name.setdefault(words[position], []).append(len(at) - 1)
            elif kind in (_ENUM, _ENUM64):
                self._enums.append(position)
            position += 3 + _EXTRA_WORDS.get(kind, 0) + _ELEMENT_WORDS.get(kind, 0) * (info & 0xFFFF)
        if position != end:
            raise OplineError(f"{self._where}: BTF ends within a type")

    def _string(self, offset: int) -> str:
        return self._strings[offset : self._strings.index(b"\0", offset)].decode()

    def _string_offset(self, text: str) -> int | None:
        found = self._strings.find(b"\0" + text.encode() + b"\0")
        return None if found < 0 else found + 1

    def _kind(self, type_id: int) -> int:
        return self._words[self._at[type_id] + 1] >> 24 & 0x1F if type_id else 0

    def _named(self, name: str, kinds: tuple[int, ...]) -> int | None:
        offset = self._string_offset(name)
        found = (t for t in self._by_name.get(offset, ()) if self._kind(t) in kinds) if offset is not None else ()
        return next(iter(found), None)

    def _bare(self, type_id: int) -> int:
        """Without typedefs and qualifiers."""
        while self._kind(type_id) in _TRANSPARENT:
            type_id = self._words[self._at[type_id] + 2]
        return type_id

    def _member(self, type_id: int, name: str) -> tuple[int, int] | None:
        """(bit offset, type) of a member, also of an anonymous structure or union inside."""
        at, words = self._at[type_id], self._words
        bit_fields = words[at + 1] >> 31
        for i in range(at + 3, at + 3 + 3 * (words[at + 1] & 0xFFFF), 3):
            offset = words[i + 2] & 0xFFFFFF if bit_fields else words[i + 2]
            if words[i]:
                if self._string(words[i]) == name:
                    return offset, words[i + 1]
            else:
                inner = self._bare(words[i + 1])
                found = self._member(inner, name) if self._kind(inner) in (_STRUCT, _UNION) else None
                if found is not None:
                    return offset + found[0], found[1]
        return None

    @_once
    def offset(self, struct: str, path: str) -> int | None:
        """Byte offset of a member (``bi_iter.bi_sector``); None if there is no such structure or member."""
        type_id = self._named(struct, (_STRUCT, _UNION))
        total = 0
        for name in path.split("."):
            if type_id is None or self._kind(type_id) not in (_STRUCT, _UNION):
                return None
            found = self._member(type_id, name)
            if found is None:
                return None
            total += found[0]
            type_id = self._bare(found[1])
        return total // 8

    @_once
    def enumerator(self, name: str) -> int | None:
        """Value of an enumerator of whatever enumeration; None if there is none of that name."""
        offset = self._string_offset(name)
        if offset is None:
            return None
        words = self._words
        for at in self._enums:
            step = 2 if words[at + 1] >> 24 & 0x1F == _ENUM else 3
            for i in range(at + 3, at + 3 + step * (words[at + 1] & 0xFFFF), step):
                if words[i] == offset:
                    return words[i + 1]
        return None

    @_once
    def tracepoints(self) -> list[str]:
        """Names of all tracepoints, of the kernel itself and not of modules, sorted."""
        head = "btf_trace_"
        names = (self._string(at) for at in self._by_name if at)
        return sorted(name.removeprefix(head) for name in names if name.startswith(head))

    @_once
    def tracepoint_type(self, name: str) -> int | None:
        """The number of the type that describes a tracepoint; None if the kernel does not have it."""
        return self._named(f"btf_trace_{name}", (_TYPEDEF,))

    @_once
    def function(self, name: str) -> int | None:
        """The number of the type that describes a function; None if the kernel does not have it."""
        offset, words = self._string_offset(name), self._words
        found = (t for t, at in enumerate(self._at) if words[at] == offset and words[at + 1] >> 24 & 0x1F == _FUNC)
        return None if offset is None else next(found, None)

    @_once
    def tracepoint(self, name: str) -> list[Argument] | None:
        """Arguments of a tracepoint, in order; None if the kernel does not have it."""
        typedef = self.tracepoint_type(name)
        if typedef is None:
            return None
        pointer = self._bare(typedef)
        proto = self._words[self._at[pointer] + 2]
        at = self._at[proto]
        if self._kind(pointer) != _PTR or self._kind(proto) != _FUNC_PROTO:
            return None
        count = self._words[at + 1] & 0xFFFF
        # The first one is the tracepoint's private data, not its argument.
        return [self._argument(self._words[at + 3 + 2 * i + 1]) for i in range(1, count)]

    def _argument(self, type_id: int) -> Argument:
        words = self._words
        typedef = self._string(words[self._at[type_id]]) if self._kind(type_id) == _TYPEDEF else None
        bare = self._bare(type_id)
        if self._kind(bare) != _PTR:
            return Argument(None, typedef)
        target = self._bare(words[self._at[bare] + 2])
        named = self._kind(target) == _STRUCT and words[self._at[target]]
        return Argument(self._string(words[self._at[target]]) if named else None, typedef)


def _to_json(answer: Any) -> Any:
    return {"arguments": [tuple(vars(a).values()) for a in answer]} if _is_arguments(answer) else answer


def _is_arguments(answer: Any) -> bool:
    return isinstance(answer, list) and all(isinstance(item, Argument) for item in answer)


def _kept_answers(name: str) -> dict[str, Any]:
    """What was kept of a kernel; nothing if nothing was, or what was kept is damaged."""
    try:
        found = json.loads(kept.read(name) or b"{}")
        return {
            key: [Argument(*of) for of in answer["arguments"]] if isinstance(answer, dict) else answer
            for key, answer in found.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
