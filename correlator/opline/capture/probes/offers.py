# SPDX-License-Identifier: MIT
"""What a program or library offers to a recording without being rebuilt: LTTng tracepoints, USDT probes, functions."""

from __future__ import annotations

import fnmatch
from pathlib import Path

from opline.capture.machine.elf import Elf
from opline.capture.probes.hit_programs import UnreadableError, demangled, operand
from opline.values import Value


class Usdt(Value):
    """One USDT probe. ``arguments``: as its first place has them; ``readable``: as many of them, from the first on."""

    name: str
    places: int
    semaphore: bool
    arguments: tuple[str, ...]
    readable: int


class Function(Value):
    """A function by its name in the source. ``stepped``: the kernel single-steps its first instruction."""

    name: str
    symbol: str
    stepped: bool


class Offers(Value):
    """Everything; ``functions`` are those that were asked for, of ``function_count``."""

    path: str
    lttng: tuple[str, ...]
    usdt: tuple[Usdt, ...]
    functions: tuple[Function, ...]
    function_count: int

    def record(self) -> dict[str, object]:
        """As plain JSON types."""
        return {**vars(self), "usdt": [vars(u) for u in self.usdt], "functions": [vars(f) for f in self.functions]}


def offers(path: Path, functions: str | None = None) -> Offers:
    """What that file offers; of the functions those that match a glob. Raises OplineError."""
    file = Elf(path)
    by_name: dict[str, list[tuple[str, int]]] = {}
    for place in file.places():
        by_name.setdefault(f"{place.provider}:{place.name}", []).append((place.arguments, place.semaphore))
    usdt = []
    for name, places in sorted(by_name.items()):
        arguments = tuple(places[0][0].split())
        readable = min(sum(_readable(text) for text in some.split()) for some, _ in places)
        usdt.append(Usdt(name, len(places), any(counter for _, counter in places), arguments, readable))
    symbols = file.functions()
    found = []
    for symbol, offset in symbols.items() if functions is not None else ():
        name = demangled(symbol) if symbol.startswith("_Z") else symbol
        if any(fnmatch.fnmatchcase(text, functions or "") for text in (symbol, name, name.partition("(")[0])):
            found.append(Function(name, symbol, file.steps(file.entry(offset, 0))))
    return Offers(str(path), tuple(file.lttng_events()), tuple(usdt), tuple(sorted(found, key=_name)), len(symbols))


def _name(function: Function) -> str:
    return function.name


def _readable(text: str) -> bool:
    try:
        operand(text)
    except UnreadableError:
        return False
    return True
