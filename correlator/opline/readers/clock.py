# SPDX-License-Identifier: MIT
"""The clock of a trace, as its environment has it: a document with `frequency`, `offset_s`, `offset_cycles` (CTF 1.8's
`offset_s` and `offset`; CTF 2's `offset-from-origin`) and, if the tracer says so, the `uuid` of the boot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_SECOND = 1_000_000_000


def wall_offset_ns(clock: Mapping[str, Any]) -> int | None:
    """The time of day minus the time of the clock, in whole ns; None if the clock is not bound to the time of day."""
    whole, cycles = int(clock.get("offset_s") or 0), int(clock.get("offset_cycles") or 0)
    if not whole and not cycles:
        return None
    return whole * _SECOND + cycles * _SECOND // int(clock.get("frequency") or _SECOND)


def clock_of_ns(name: str, wall_ns: int | None) -> dict[str, Any]:
    """A clock that counts ns; ``wall_ns``: its `wall_offset_ns`."""
    clock: dict[str, Any] = {"name": name, "frequency": _SECOND}
    if wall_ns is not None:
        clock["offset_s"], clock["offset_cycles"] = divmod(wall_ns, _SECOND)
    return clock


def clock_ahead_ns(host: Mapping[str, Any], boot: str) -> int | None:
    """How far CLOCK_MONOTONIC of the recorder's time namespace is ahead of the root one's in this boot, by what its
    recording says of the host; None: not known.
    """
    ahead_ns = host.get("clock_offset_ns")
    return ahead_ns if isinstance(ahead_ns, int) and host.get("boot_id") == boot else None
