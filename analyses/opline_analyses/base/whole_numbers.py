# SPDX-License-Identifier: MIT
"""Arguments of options that are numbers: they take a text, give an int, or a float that is a number."""

from __future__ import annotations

import argparse
import math

MOST = (1 << 63) - 1  # what a query can say; nothing has more things


def positive(text: str) -> int:
    """The argument of an option that is a number of things, 1 or more."""
    return _whole(text, 1)


def not_negative(text: str) -> int:
    """The same where none is a number, too."""
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not (text.isdecimal() and text.isascii()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text}: must be {least} or more")
    return min(int(text), MOST)


def finite(text: str) -> float:
    """The argument of an option that is any number."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise argparse.ArgumentTypeError(f"{text}: not a number")
    return found
