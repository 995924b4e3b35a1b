# SPDX-License-Identifier: MIT
"""How often and how long each device was plugged, with btt's rules: only blktrace's records name a plug's device.

A plug is one of a device, whichever thread has it: a second P before the U changes nothing, and a U without a P counts
nothing. Events before the device's first I/O do not count. A plug that is open at the end lasts to the device's last
event. Source: the figures of btt 2.09 for traces made for the purpose (tests/readers/test_plugs.py).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class DevicePlugs:
    """The plugs of one device; ``observed_ns`` is the time from its first to its last I/O event."""

    dev: int
    plugs: int = 0  # that a U ended, or nothing did
    timers: int = 0  # that a timer ended (UT)
    ios: int = 0  # requests that the U's released
    timer_ios: int = 0
    plugged_ns: int = 0
    observed_ns: int = 0


class Plugs:
    """Counts from events in the order of their time."""

    def __init__(self) -> None:
        self._found: dict[int, DevicePlugs] = {}
        self._first_ns: dict[int, int] = {}
        self._last_ns: dict[int, int] = {}
        self._since_ns: dict[int, int] = {}  # of the devices that are plugged

    def saw(self, dev: int, ts_ns: int) -> None:
        """An event of an I/O."""
        self._last_ns[dev] = ts_ns
        if dev not in self._first_ns:
            self._first_ns[dev] = ts_ns
            self._found[dev] = DevicePlugs(dev)

    def plug(self, dev: int, ts_ns: int) -> None:
        """P."""
        if dev in self._found:
            self._since_ns.setdefault(dev, ts_ns)

    def unplug(self, dev: int, ts_ns: int, ios: int, timer: bool) -> None:
        """U, or UT if ``timer``, which releases ``ios`` requests."""
        since_ns = self._since_ns.pop(dev, None)
        if since_ns is None:
            return
        found = self._found[dev]
        found.plugged_ns += max(0, ts_ns - since_ns)
        if timer:
            found.timers += 1
            found.timer_ios += ios
        else:
            found.plugs += 1
            found.ios += ios

    def told(self) -> list[dict[str, Any]]:
        """A row for each device that was plugged, by number. Called once, after the last event."""
        for dev, since_ns in self._since_ns.items():
            self._found[dev].plugs += 1
            self._found[dev].plugged_ns += max(0, self._last_ns[dev] - since_ns)
        for dev, found in self._found.items():
            found.observed_ns = self._last_ns[dev] - self._first_ns[dev]
        return [asdict(one) for _, one in sorted(self._found.items()) if one.plugs or one.timers]
