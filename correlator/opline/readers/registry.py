# SPDX-License-Identifier: MIT
"""The registry of formats: what an input that is a file or a pipe is, by what it begins with.

Each format is a module in a folder of formats (docs/internals/inputs.md). It has

    CALLED       what people call such an input, for messages: "blktrace's files"
    HAS          what is in it: EVENTS, COUNTS, VALUES, FIGURES or RUN
    probe(head)  CERTAIN, LIKELY or NO, of an input that begins with ``head``

and a function that reads it. An input is of the one format that is certain, else of the likely one; of several the
first by name. A file and a pipe are looked at in the same way.
"""

from __future__ import annotations

import importlib
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from opline.applications import table
from opline.errors import TraceError
from opline.readers import packed, pipes

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from opline.paths import StrPath
    from opline.readers.front import Front

    class Format(Protocol):
        """A module of a folder of formats."""

        __name__: str

        CALLED: str
        HAS: str

        def probe(self, head: Head) -> int:
            """CERTAIN, LIKELY or NO."""

    class TraceFormat(Format, Protocol):
        """One that has EVENTS."""

        MODEL: str  # a shipped op model that fits, "generic" where the events are of block requests alone

        def names(self, head: Head) -> set[str]:
            """The names of the events that it begins with: for formats of which these decide about the op model."""

        def files(self, path: str) -> list[str]:
            """The files of the trace that ``path`` is one of."""

        def front(self, paths: list[str]) -> Front:
            """What reads them."""


CERTAIN, LIKELY, NO = 2, 1, 0
EVENTS = "events"  # of a trace
COUNTS = "counts"  # histograms
VALUES = "values"  # a time and a latency each
FIGURES = "figures"  # what a benchmark reports
RUN = "run"  # of a trace that is not in it
_LINES = 1 << 14  # different ones, in which a format's line is looked for
HAS_IN = (EVENTS, COUNTS, VALUES, FIGURES, RUN)
TRACES = ("opline.readers.formats", *table.packages("formats"))  # folders of formats


class Head:
    """What an input begins with; ``whole``: all of it. ``earlier``: a shorter head of the same input, which has been
    asked already: its lines are not looked at again.
    """

    def __init__(self, data: bytes, name: str, whole: bool, earlier: Head | None = None) -> None:
        self.data = data
        self.name = name
        self.whole = whole
        self._earlier = earlier
        # of each test, how many of the different lines have failed it; of all heads of the input
        self._failed: dict[Callable[[str], object], int] = earlier._failed if earlier is not None else {}

    @cached_property
    def _end(self) -> int:
        return len(self.data) if self.whole else self.data.rfind(b"\n") + 1

    @cached_property
    def _new_lines(self) -> list[str]:
        begin = self._earlier._end if self._earlier is not None else 0
        return self.data[begin : self._end].decode("utf-8", "replace").splitlines()

    @cached_property
    def lines(self) -> list[str]:
        """Its lines without their ends; the last one only where it is known to be complete."""
        return self._new_lines if self._earlier is None else [*self._earlier.lines, *self._new_lines]

    @cached_property
    def _different(self) -> dict[str, None]:
        """The first different lines."""
        found = {} if self._earlier is None else self._earlier._different
        if len(found) < _LINES:
            found = found | dict.fromkeys(self._new_lines)
        return dict.fromkeys(islice(found, _LINES)) if len(found) > _LINES else found

    def has(self, test: Callable[[str], object]) -> bool:
        """True if some line passes the test. Of a text of many short lines the first different ones are tried."""
        tried = self._failed.get(test, 0)
        if any(map(test, islice(self._different, tried, None))):
            return True
        self._failed[test] = max(tried, len(self._different))
        return False

    def has_line(self, pattern: re.Pattern[str]) -> bool:
        """True if some line is as the pattern says, from its begin to its end."""
        return self.has(pattern.fullmatch)

    def begun(self, number: int) -> list[str]:
        """The first lines that are not blank."""
        return list(islice((line for line in self.lines if line.strip()), number))


@lru_cache
def formats(folders: Sequence[str]) -> tuple[Format, ...]:
    """All modules of these packages, by name."""
    import pkgutil  # what reads a run of opline asks of no format

    found = []
    for folder in folders:
        package = importlib.import_module(folder)
        found += [(module.name, folder) for module in pkgutil.iter_modules(package.__path__)]
    return tuple(importlib.import_module(f"{folder}.{name}") for name, folder in sorted(found))


@lru_cache(maxsize=32)  # the heads of one input, as it grows to pipes.MOST
def _head(data: bytes, name: str, whole: bool) -> Head:
    global _latest
    grown = _latest is not None and _latest.name == name and not _latest.whole and data.startswith(_latest.data)
    _latest = Head(data, name, whole, _latest if grown else None)
    return _latest


_latest: Head | None = None


@lru_cache(maxsize=8)
def _asked(data: bytes, name: str, whole: bool, folders: Sequence[str]) -> tuple[int, Format | None]:
    head = _head(data, name, whole)
    best, found = NO, None
    for one in formats(folders):
        if (answer := one.probe(head)) > best:
            best, found = answer, one
            if best == CERTAIN:
                break
    return best, found


def format_of(path: StrPath, folders: Sequence[str] = TRACES) -> Format | None:
    """The format of a file or a pipe; None of a folder, of what cannot be read and of what no format is."""
    name = str(path)
    try:
        data, whole = _begin(path, folders)
    except (OSError, ValueError):
        return None
    return _asked(data, name, whole, folders)[1]


def besides(path: StrPath, folders: Sequence[str]) -> list[Format]:
    """Formats of other contents than the one of ``format_of`` that an input's first bytes have, too: a mail with the
    output of several tools. Raises OSError.
    """
    data, whole = _begin(path, folders)
    found = _asked(data, str(path), whole, folders)[1]
    if found is None or found.HAS == RUN:
        return []
    head = _head(data, str(path), whole)  # it knows what the formats have asked
    return [one for one in formats(folders) if one.HAS != found.HAS and one.probe(head) == CERTAIN]


def head_of(path: StrPath, folders: Sequence[str] = TRACES) -> Head:
    """What an input begins with, as its format was found by. Raises OSError."""
    data, whole = _begin(path, folders)
    return Head(data, str(path), whole)


def _begin(path: StrPath, folders: Sequence[str]) -> tuple[bytes, bool]:
    """As much as shows what an input is, LOOKED_AT where a format is likely; and whether it is all. Raises OSError."""

    def enough(data: bytes, whole: bool) -> bool:
        answer = _asked(data, str(path), whole, folders)[0]
        return answer == CERTAIN or (answer == LIKELY and len(data) >= pipes.LOOKED_AT)

    return pipes.head(path, enough)


def trace_format(path: StrPath) -> TraceFormat:
    """The format of a trace that is no folder. Raises TraceError for what is none."""
    found = format_of(path)
    if found is None:
        if reason := packed.reason(path):
            raise TraceError(reason)
        raise TraceError(
            f"{path} is of no format that opline knows. Give a recording, the folder of a CTF trace (with `metadata` "
            "at or below it), blktrace's files (sda.blktrace.0), or text of babeltrace, perf, ftrace, bpftrace or bcc."
        )
    if found.HAS != EVENTS:
        raise TraceError(refusal(path, found))
    return found  # type: ignore[return-value]


def refusal(path: StrPath, found: Format) -> str:
    """What an input is, and which commands take it: for those that don't."""
    import shlex

    named = shlex.quote(str(path))
    return f"{path} is {found.CALLED}: {_TAKEN[found.HAS].replace('{}', named)}."


_TAKEN = {
    EVENTS: "a trace, for most commands; `opline what {}` says which",
    COUNTS: "counts, and no single I/O: only `opline hist` and `opline heatmap` can show it",
    VALUES: "times and latencies, and no I/O: only `opline hist` and `opline heatmap` can show it",
    RUN: "a run without its trace; `opline what {}` says which commands take it",
    FIGURES: "figures of a benchmark: `opline coverage RUN --client {}` compares a run with them",
}
