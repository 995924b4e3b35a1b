# SPDX-License-Identifier: MIT
"""What the texts of filters mean: devices, times, windows. What a device's name is a number of, and when time begins,
the caller knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.values import Value
from opline_analyses.base.quantities import duration_ns, moment_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ABSOLUTE_DIGITS = 10  # a whole number this long is a time of the run's clock, in ns
MAJOR_DIGITS = 4  # the kernel has 12 bits for it


class Instant(Value):
    """A time of the run's clock, or from the beginning on, ns."""

    ns: int
    absolute: bool

    def after(self, zero_ns: int) -> int:
        """As a time of the clock."""
        return self.ns if self.absolute else zero_ns + self.ns


class Devices(Value):
    """Devices by their numbers, and all of a driver by its major number."""

    numbers: Sequence[int] = ()
    majors: Sequence[int] = ()


def is_absolute(text: str) -> bool:
    """Whether it is a time of the run's clock, in ns."""
    return text.isdecimal() and len(text) >= ABSOLUTE_DIGITS


def instant(text: str, option: str) -> Instant:
    """9.5 (seconds) or 10ms from the beginning on, or absolute ns. Raises UsageError."""
    if is_absolute(text):
        return Instant(int(text), True)
    after = moment_ns(text)
    if after is None:
        raise UsageError(f"{option} {text}: not a time (9.5, 9.5s, 10ms) nor absolute nanoseconds.")
    return Instant(after, False)


def window_instants(
    window: str | None, at: str | None, since: str | None = None, until: str | None = None
) -> tuple[Instant | None, Instant | None]:
    """From when until when --window and --at, or --since and --until mean; None is open. Raises UsageError."""
    if window is None:
        if at is not None:
            raise UsageError("--at is the middle of a window: give its length, as --window 10ms.")
        return None if since is None else instant(since, "--since"), None if until is None else instant(
            until, "--until"
        )
    if since is not None or until is not None:
        raise UsageError("--window is --since and --until in one: leave out either.")
    begin, colon, end = window.partition(":")
    if at is not None:
        if colon:
            raise UsageError(f"--window {window} says its begin and end itself: leave out --at.")
        length, middle = duration_ns(window, "--window"), instant(at, "--at")
        begin_ns = middle.ns - length // 2
        return Instant(begin_ns, middle.absolute), Instant(begin_ns + length, middle.absolute)
    if not colon:
        raise UsageError(f"--window {window}: give FROM:TO in seconds, or also --at T, the middle.")
    first, last = (instant(text, "--window") if text else None for text in (begin, end))
    if first and last and first.absolute == last.absolute and first.ns >= last.ns:
        raise UsageError(f"--window {window}: it ends before it begins.")
    return first, last


def major_of(text: str) -> int | None:
    """The number N of a device `N:*`, all devices of a driver; None of a single device."""
    number, separator, minor = text.replace(",", ":", 1).partition(":")
    return int(number) if separator and minor == "*" and number.isdecimal() and len(number) <= MAJOR_DIGITS else None


def number_among(names: dict[int, str], text: str) -> int | None:
    """A device by one of these names or as MAJOR:MINOR or MAJOR,MINOR, kernel-internal; None: there is no such name."""
    for dev, name in names.items():
        if name == text:
            return dev
    major, _, minor = text.replace(",", ":", 1).partition(":")
    return int(major) << 20 | int(minor) if major.isdecimal() and minor.isdecimal() else None


def devices_meant(texts: Sequence[str], number_of: Callable[[str], int]) -> tuple[Devices, Devices]:
    """What the texts of -d mean: one of these, and none of those."""
    found = []
    for negated in (False, True):
        named = [
            t.removeprefix("!").removeprefix("not ").strip() for t in texts if t.startswith(("!", "not ")) == negated
        ]
        majors = [major for t in named if (major := major_of(t)) is not None]
        found.append(Devices([number_of(t) for t in named if major_of(t) is None], majors))
    return found[0], found[1]
