# SPDX-License-Identifier: MIT
"""How many ops a second are due on each of fio's threads, by its options.

`rate_iops` is a number for each direction, `rate` so many bytes for each, of blocks of one size (`bs`). One value
counts for each direction; several are for reads, writes and trims, the last one for the rest; an empty one is no limit.
Source: fio's HOWTO ("I/O rate", "Parameter types") and parse.c; 1k is 1024 and 1ki is 1000, unless kb_base=1000.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

DIRECTIONS = ("read", "write", "trim")
OPTIONS = ("rate", "rate_iops", "bs", "blocksize", "bsrange", "bssplit", "kb_base", "rate_process")
_NUMBER = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([kmgtp]?)(i?)b?")
_DEFAULT_SIZE = "4k"
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def _number(text: str, kb_base: str) -> float | None:
    found = _NUMBER.fullmatch(text.strip().lower())
    if found is None:
        return None
    base = 1024 if (kb_base == "1000") == bool(found[3]) else 1000
    return float(found[1]) * float(base ** _POWERS[found[2]])


def _each(text: str, kb_base: str) -> list[float | None]:
    """The number of each direction, None where there is none."""
    parts = text.split(",")
    parts += parts[-1:] * (len(DIRECTIONS) - len(parts))
    return [_number(part, kb_base) for part in parts[: len(DIRECTIONS)]]


def rates_of(options: Mapping[str, str]) -> tuple[dict[str, float], str]:
    """Ops per second by direction, and the option with the rate; empty without a known schedule."""
    kb_base = options.get("kb_base", "1024")
    if options.get("rate_process", "linear") != "linear":
        return {}, ""
    if given := options.get("rate_iops"):
        rates = _each(given, kb_base)
        said = f"rate_iops={given}"
    elif (given := options.get("rate")) and not ("bsrange" in options or "bssplit" in options):
        sizes = _each(options.get("bs") or options.get("blocksize") or _DEFAULT_SIZE, kb_base)
        rates = [n / size if n and size else None for n, size in zip(_each(given, kb_base), sizes, strict=True)]
        said = f"rate={given}"
    else:
        return {}, ""
    return {name: rate for name, rate in zip(DIRECTIONS, rates, strict=True) if rate}, said


def options_in(words: list[str]) -> dict[str, str]:
    """fio's options about rates on a command line; an option given twice, as for several jobs, is left out."""
    found: dict[str, set[str]] = {}
    for word, after in pairwise([*words, ""]):
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and name in OPTIONS:
            found.setdefault(name, set()).add(value if equals else after)
    if any(len(values) > 1 for values in found.values()):
        return {}
    return {name: values.pop() for name, values in found.items()}
