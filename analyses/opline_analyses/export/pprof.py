# SPDX-License-Identifier: MIT
"""Waits for pprof: its profile, gzipped, with a sample per stack (https://github.com/google/pprof, profile.proto).

The stacks are those of `waits-folded`: class, stage, functions of the kernel. Each name is a function, and each
function a location without an address. Values are nanoseconds: the sum `off-cpu`, or of slow ops against typical ones
the means per op, `typical` and `slow`, and `difference`, slow minus typical.

Protocol Buffers (https://protobuf.dev/programming-guides/encoding) are written here: three kinds of fields are all that
a profile needs, and no Python package has pprof's message.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from opline_analyses.export.wait_stacks import waited, waited_against_typical
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection
from opline_analyses.why.sets import Rule

UNIT = "nanoseconds"
SUM, MEANS = ("off-cpu",), ("typical", "slow", "difference")
# Numbers of the fields of Profile, in profile.proto.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING, _DEFAULT_TYPE = 1, 2, 4, 5, 6, 14
_BYTES = 2  # the wire type of texts, messages and packed numbers


def _varint(value: int) -> bytes:
    """A number in groups of 7 bits, the lowest first; a negative one as its 64 bits."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, values)))


class _Strings:
    """The table of texts; the first is empty."""

    def __init__(self) -> None:
        self._numbers = {"": 0}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def encoded(self) -> Iterator[bytes]:
        return (_bytes(_STRING, text.encode()) for text in self._numbers)


class _Profile:
    """A profile that is written sample by sample. ``types``: names of the values of a sample."""

    def __init__(self, out: BinaryIO | gzip.GzipFile, types: tuple[str, ...]) -> None:
        self._out = out
        self._strings = _Strings()
        self._functions: dict[str, int] = {}
        for name in types:
            kind = _number(1, self._strings.number(name)) + _number(2, self._strings.number(UNIT))
            out.write(_bytes(_SAMPLE_TYPE, kind))
        out.write(_number(_DEFAULT_TYPE, self._strings.number(types[-1])))

    def sample(self, frames: tuple[str, ...], values: tuple[int, ...]) -> None:
        """``frames``: outermost first. The message has the innermost first."""
        places = [self._functions.setdefault(name, len(self._functions) + 1) for name in reversed(frames)]
        self._out.write(_bytes(_SAMPLE, _packed(1, places) + _packed(2, values)))

    def end(self) -> None:
        """Locations, functions, texts."""
        for name, number in self._functions.items():
            line = _bytes(4, _number(1, number))
            self._out.write(_bytes(_LOCATION, _number(1, number) + line))
            text = self._strings.number(name)
            self._out.write(_bytes(_FUNCTION, _number(1, number) + _number(2, text) + _number(3, text)))
        for one in self._strings.encoded():
            self._out.write(one)


def write(run: Run, which: Selection, out: BinaryIO, against: Rule | None = None) -> int:
    """Writes the profile; gives the number of ops that count. ``against``: which of them are slow."""
    samples: Iterable[tuple[tuple[str, ...], tuple[int, ...]]]
    if against is None:
        ops, stacks = waited(run, which)
        samples = (((one.op_class, *one.frames), (one.ns,)) for one in stacks)
    else:
        ops, both = waited_against_typical(run, which, against)
        samples = (
            ((one.op_class, *one.frames), (one.typical_ns, one.slow_ns, one.slow_ns - one.typical_ns)) for one in both
        )
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed:
        profile = _Profile(packed, SUM if against is None else MEANS)
        for frames, values in samples:
            profile.sample(frames, values)
        profile.end()
    return ops
