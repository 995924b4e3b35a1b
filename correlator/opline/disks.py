# SPDX-License-Identifier: MIT
"""What the core needs of a recording's disks besides events. Takes ``recording.json`` as plain JSON types."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any


def disk_facts(recording: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """For the core's plan, of each disk with hardware queues: ``dev``, ``queues`` (the CPUs of each queue, by number)
    and, if the recording says so, ``fua``. Nothing of a recording by an opline that did not write the queues down.
    """
    return list(_facts((recording or {}).get("devices", ())))


def all_disks(recording: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The same of every block device of the recording, so that the core of a joined run knows the device's host."""
    facts = {fact["dev"]: fact for fact in disk_facts(recording)}
    devices = (recording or {}).get("devices", ())
    return [facts.get(device["dev"], {"dev": device["dev"], "queues": []}) for device in devices]


def joined_disks(
    numbered: Sequence[Mapping[str, Any]], disks: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """The block devices of a joined run, as a recording lists its own. ``numbered``: from the core's summary, ``dev``
    (the number in the joined run), ``host`` and ``own_dev`` (the kernel's number). ``disks``: of each host's recording.
    Names are HOST:NAME, or HOST:MAJOR:MINOR without a recording.
    """
    return [_joined(row, disks.get(row["host"], ())) for row in numbered]


def _joined(row: Mapping[str, Any], disks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    host, own = str(row["host"]), int(row["own_dev"])
    known = next((dict(disk) for disk in disks if disk["dev"] == own), {"name": f"{own >> 20}:{own & 0xFFFFF}"})
    named = {key: f"{host}:{known[key]}" for key in ("name", "parent") if known.get(key)}
    return known | named | {"dev": int(row["dev"]), "host": host}


def _facts(disks: Any) -> Iterator[dict[str, Any]]:
    for disk in disks:
        if not disk.get("queues"):
            continue
        fua = disk.get("fua")
        yield {"dev": disk["dev"], "queues": disk["queues"]} | ({} if fua is None else {"fua": fua})
