# SPDX-License-Identifier: MIT
"""Block events as blktrace would have written them: a file for each CPU, with sequence numbers and notes of names."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from opline import _core

ACTIONS = {
    "block_bio_queue": 1, "block_bio_backmerge": 2, "block_bio_frontmerge": 3, "block_getrq": 4, "block_rq_requeue": 6,
    "block_rq_issue": 7, "block_rq_complete": 8, "block_bio_complete": 8, "block_rq_insert": 12, "block_split": 13,
    "block_bio_remap": 15,
}  # fmt: skip


def category(rwbs: str) -> int:
    """The bits of an action that rwbs is made of; a write-zeroes is a write here."""
    first = 1 << 2 if rwbs[0] == "F" else 0
    operation, after = (rwbs[1], rwbs[2:]) if first else (rwbs[0], rwbs[1:])
    found = first | {"R": 1, "W": 2, "D": 1 << 13 | 2, "F": 1, "N": 1}[operation]
    return found | sum({"F": 1 << 15, "A": 1 << 11, "S": 1 << 3, "M": 1 << 12}[letter] for letter in after)


def files(lines: Iterable[str], folder: Path, name: str, order: str = "<") -> list[bytes]:
    """Writes NAME.blktrace.N of the lines of `perf script`; gives the records of CPU 0."""
    by_cpu: dict[int, list[bytes]] = defaultdict(list)
    names: dict[int, str] = {}
    sequence: dict[int, int] = defaultdict(int)

    def add(
        cpu: int, ns: int, number: int, kind: int, tid: int, fields: tuple[int, int, int, int], more: bytes
    ) -> None:
        sequence[cpu] += 1
        sector, size, dev, error = fields
        action = number | kind << 16
        head = (0x65617407, sequence[cpu], ns, sector, size, action, tid, dev, cpu, error & 0xFFFF, len(more))
        by_cpu[cpu].append(struct.pack(order + "IIQQIIIIIHH", *head) + more)

    for line in lines:
        found = _core.parse_block_line(line.encode())
        if found is None:
            continue
        event, ns, cpu, comm, tid, payload = found
        if names.get(tid) != comm:
            add(cpu, ns, 0, 1 << 10, tid, (0, 0, 0, 0), comm.encode().ljust(16, b"\0"))
            sequence[cpu] -= 1  # the kernel does not number notes
            names[tid] = comm
        values = {key: int(value) for key, value in payload.items() if key != "rwbs"}
        more = b""
        if event == "block_split":
            more = struct.pack(">Q", values["new_sector"] & 0xFFFFFFFF)
        elif event == "block_bio_remap":
            more = struct.pack(">IIQ", values["old_dev"], values["dev"], values["old_sector"])
        fields = values["sector"], values.get("nr_sector", 8) * 512, values["dev"], values.get("error", 0)
        add(cpu, ns, ACTIONS[event], category(str(payload["rwbs"])), tid, fields, more)
    for cpu, written in by_cpu.items():
        (folder / f"{name}.blktrace.{cpu}").write_bytes(b"".join(written))
    return by_cpu[0]
