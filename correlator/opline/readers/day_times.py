# SPDX-License-Identifier: MIT
"""Times of the day that go on after midnight, for texts without dates."""

from __future__ import annotations

DAY_NS = 24 * 3600 * 10**9


def after(last_ns: int, of_day_ns: int) -> int:
    """A time of the day, in ns from the first midnight. ``last_ns``: the time before, or 0. A time more than half a day
    earlier than that is of the next day: lines may stand a little out of order.
    """
    found = last_ns // DAY_NS * DAY_NS + of_day_ns
    return found + DAY_NS if found < last_ns - DAY_NS // 2 else found
