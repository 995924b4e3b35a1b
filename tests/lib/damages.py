# SPDX-License-Identifier: MIT
"""Damages of a recorded trace: what ``tests.mutants`` does to one, by name."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Of LTTng's packets: where a packet's size in bits lies, and how long header and context are.
SIZE_AT, HEADER = 56, 80


@dataclass
class Files:
    """A mutant's files, to be damaged."""

    folder: Path
    chance: random.Random

    def some(self, kind: str) -> Path | None:
        """A file: stream, index or metadata. None if there is none."""
        found = sorted(p for p in self.folder.rglob("*") if p.is_file() and p.stat().st_size and kind_of(p) == kind)
        return self.chance.choice(found) if found else None


def kind_of(path: Path) -> str:
    """What a trace's file is."""
    if path.suffix == ".idx":
        return "index"
    if (path.parent / "metadata").exists():
        return "metadata" if path.name == "metadata" else "stream"
    return "other"


def packets_of(data: bytes | bytearray) -> list[tuple[int, int]]:
    """Where LTTng's packets lie, as far as the file is sound."""
    at, out = 0, []
    while at + HEADER <= len(data):
        size = struct.unpack_from("<Q", data, at + SIZE_AT)[0] // 8
        if not HEADER <= size <= len(data) - at:
            break
        out.append((at, at + size))
        at += size
    return out


def edit(path: Path | None, change: Callable[[bytearray], object]) -> None:
    """Rewrites a file, if there is one."""
    if path is not None:
        data = bytearray(path.read_bytes())
        change(data)
        path.write_bytes(data)


def flip(data: bytearray, chance: random.Random, first: int = 0, past: int | None = None) -> None:
    """One to eight bits of a part."""
    past = len(data) if past is None else min(past, len(data))
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        if first < past:
            data[chance.randrange(first, past)] ^= 1 << chance.randrange(8)


def a_packet(data: bytes | bytearray, chance: random.Random) -> tuple[int, int]:
    """Where one of a file's packets lies."""
    return chance.choice(packets_of(data) or [(0, len(data))])


def flip_header(files: Files) -> None:
    def change(data: bytearray) -> None:
        at, _ = a_packet(data, files.chance)
        flip(data, files.chance, at, at + HEADER)

    edit(files.some("stream"), change)


def extreme_header(files: Files) -> None:
    """A number of a packet's header or context becomes one that programs trip over."""

    def change(data: bytearray) -> None:
        at, _ = a_packet(data, files.chance)
        place = at + files.chance.choice((24, 32, 40, 48, 56, 64, 72))
        value = files.chance.choice((0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1))
        if place + 8 <= len(data):
            struct.pack_into("<Q", data, place, value)

    edit(files.some("stream"), change)


def flip_payload(files: Files) -> None:
    def change(data: bytearray) -> None:
        at, past = a_packet(data, files.chance)
        flip(data, files.chance, at + HEADER, past)

    edit(files.some("stream"), change)


def blank_payload(files: Files) -> None:
    def change(data: bytearray) -> None:
        at = files.chance.randrange(len(data))
        data[at : at + 999] = bytes(len(data[at : at + 999]))

    edit(files.some("stream"), change)


def insert(files: Files) -> None:
    def change(data: bytearray) -> None:
        at = files.chance.randrange(len(data))
        data[at:at] = data[: files.chance.randint(1, 3000)]

    edit(files.some("stream"), change)


def take_out(files: Files) -> None:
    def change(data: bytearray) -> None:
        at = files.chance.randrange(len(data))
        del data[at : at + files.chance.randint(1, 3000)]

    edit(files.some("stream"), change)


def truncate(files: Files) -> None:
    edit(files.some("stream"), lambda data: data.__delitem__(slice(files.chance.randrange(len(data)), None)))


def truncate_at_packet(files: Files) -> None:
    edit(files.some("stream"), lambda data: data.__delitem__(slice(a_packet(data, files.chance)[0], None)))


def packet_out(files: Files) -> None:
    edit(files.some("stream"), lambda data: data.__delitem__(slice(*a_packet(data, files.chance))))


def packet_doubled(files: Files) -> None:
    def change(data: bytearray) -> None:
        at, past = a_packet(data, files.chance)
        place = files.chance.choice([p for _, p in packets_of(data)] or [len(data)])
        data[place:place] = data[at:past]

    edit(files.some("stream"), change)


def packets_swapped(files: Files) -> None:
    def change(data: bytearray) -> None:
        found = packets_of(data)
        if len(found) > 1:
            i = files.chance.randrange(len(found) - 1)
            (a, b), (_, c) = found[i], found[i + 1]
            data[a:c] = data[b:c] + data[a:b]

    edit(files.some("stream"), change)


def files_swapped(files: Files) -> None:
    a, b = files.some("stream"), files.some("stream")
    if a and b:
        first, second = a.read_bytes(), b.read_bytes()
        a.write_bytes(second)
        b.write_bytes(first)


def file_doubled(files: Files) -> None:
    if path := files.some("stream"):
        shutil.copyfile(path, path.with_name(path.name + files.chance.choice((".bak", "_1", "~", " (copy)"))))


def file_missing(files: Files) -> None:
    if path := files.some("stream"):
        path.unlink()


def file_and_index_missing(files: Files) -> None:
    if path := files.some("stream"):
        path.unlink()
        (path.parent / "index" / f"{path.name}.idx").unlink(missing_ok=True)


def file_emptied(files: Files) -> None:
    if path := files.some("stream"):
        path.write_bytes(b"")


def foreign_file(files: Files) -> None:
    if path := files.some("metadata"):
        path.with_name("notes.txt").write_bytes(b"not a stream\n" * files.chance.randint(1, 50))


def trace_doubled(files: Files) -> None:
    if path := files.some("metadata"):
        copy = path.parent.with_name(path.parent.name + ".old")
        if not copy.exists():
            shutil.copytree(path.parent, copy)


def flip_metadata(files: Files) -> None:
    edit(files.some("metadata"), lambda data: flip(data, files.chance))


def truncate_metadata(files: Files) -> None:
    edit(files.some("metadata"), lambda data: data.__delitem__(slice(files.chance.randrange(len(data)), None)))


def flip_index(files: Files) -> None:
    edit(files.some("index"), lambda data: flip(data, files.chance))


def truncate_index(files: Files) -> None:
    edit(files.some("index"), lambda data: data.__delitem__(slice(files.chance.randrange(len(data)), None)))


def longer_index(files: Files) -> None:
    edit(files.some("index"), lambda data: data.extend(data[-files.chance.choice((56, 72)) :]))


def index_missing(files: Files) -> None:
    if path := files.some("index"):
        path.unlink()


DAMAGES: tuple[Callable[[Files], None], ...] = (
    *(flip_header, extreme_header, flip_payload, flip_payload, blank_payload, insert, take_out),
    *(truncate, truncate_at_packet, packet_out, packet_doubled, packets_swapped),
    *(files_swapped, file_doubled, file_missing, file_and_index_missing, file_emptied, foreign_file, trace_doubled),
    *(flip_metadata, truncate_metadata, flip_index, truncate_index, longer_index, index_missing),
)
