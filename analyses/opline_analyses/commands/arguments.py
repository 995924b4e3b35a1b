# SPDX-License-Identifier: MIT
"""Arguments of options: each takes a text, and gives a value or raises argparse.ArgumentTypeError; and the option
--period. Machines that only record have these, too, and no native core.
"""

from __future__ import annotations

import argparse
import math
import re

MOST_PERCENT = 1000
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


def share_of_all(text: str) -> float:
    """A part of all, from per cent: 0.01 of `1` and of `1%`."""
    found = finite(text.removesuffix("%")) / 100
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"{text}: must lie between 0 and 100 per cent")
    return found


def finite(text: str) -> float:
    """The argument of an option that is any number."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise argparse.ArgumentTypeError(f"{text}: not a number")
    return found


def processor_share(text: str) -> float:
    """A share of one processor's time, from ``2%``: 0.02."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text, re.ASCII)
    if found is None or not 0 < float(found[1]) <= MOST_PERCENT:
        raise argparse.ArgumentTypeError(f"{text}: a share of one processor's time is wanted, as 2%")
    return float(found[1]) / 100


def add_period(parser: argparse._ActionsContainer) -> None:
    """--period, which sets ``model`` to a model of one line (``opline.model.period``): of a group with --model, where
    one excludes the other.
    """
    parser.add_argument(
        "--period", metavar="BEGIN,END[,KEY]", dest="model", type=_period,
        help="instead of a model: an op lasts from the event BEGIN to the event END of the same thread, or with the "
        "same value of the field KEY",
    )  # fmt: skip


def _period(text: str) -> str:
    return f"period:{text}"
