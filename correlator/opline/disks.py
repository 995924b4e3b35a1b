# SPDX-License-Identifier: MIT
"""What the core needs of a recording's disks besides events. Takes ``recording.json`` as plain JSON types."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


def disk_facts(recording: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """For the core's plan, of each disk with hardware queues: ``dev``, ``queues`` (the CPUs of each queue, by number)
    and, if the recording says so, ``fua``. Nothing of a recording by an opline that did not write the queues down.
    """
    return list(_facts((recording or {}).get("devices", ())))


def _facts(disks: Any) -> Iterator[dict[str, Any]]:
    for disk in disks:
        if not disk.get("queues"):
            continue
        fua = disk.get("fua")
        yield {"dev": disk["dev"], "queues": disk["queues"]} | ({} if fua is None else {"fua": fua})
