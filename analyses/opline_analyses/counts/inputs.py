# SPDX-License-Identifier: MIT
"""What an input is that is neither a run nor a trace: histograms of other tools, or single latencies without requests.

One place knows how each is recognised: by what it begins with, of a pipe too. `hist` and `heatmap` take them; of what
there is no I/O the other commands can say nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import OplineError, UsageError
from opline.readers import pipes
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opline.paths import StrPath
    from opline_analyses.counts.snapshot import Snapshot

COUNTS = "counts"  # histograms
VALUES = "values"  # a time and a latency each


class Kind(Value):
    """A kind of input: what it is called, whether it has counts or values, and which of its lines shows what it is."""

    name: str
    called: str
    has: str
    shows: re.Pattern[str]


def _kinds() -> tuple[Kind, ...]:
    from opline_analyses.counts import dictionaries, netapp, oracle_trace, records, tables, two_columns

    table = re.compile("|".join(p.pattern for p in (tables.SYSTEMTAP, tables.DTRACE, tables.BCC, tables.BPFTRACE)))
    return (
        Kind("records", "PyLatencyMap's records", COUNTS, records.BEGIN),
        Kind("oracle", "Oracle's trace of waits (10046)", VALUES, oracle_trace.LINE),
        Kind("netapp", "NetApp's latency counters", COUNTS, netapp.LINE),
        Kind("dictionaries", "the dictionaries of biolatency -j", COUNTS, dictionaries.LINE),
        Kind("tables", "histograms as text", COUNTS, table),
        Kind("columns", "two columns, a time and a value", VALUES, two_columns.LINE),
    )


def kind_of(path: StrPath) -> Kind | None:
    """What an input is; None of a run, a trace, block events as text, and what nobody knows."""

    def lines(first: bytes) -> list[str]:
        return first.decode("utf-8", "replace").splitlines()

    def decided(first: bytes) -> bool:
        return first.endswith(b"\n") and (_of(lines(first)) is not None or _is_trace(lines(first)))

    try:
        found = lines(pipes.head(path, decided))
    except (OSError, ValueError):
        return None
    return None if _is_trace(found) else _of(found)


def kind_as_asked(path: StrPath, unitstime: str | None) -> Kind | None:
    """What an input is; two columns where --unitstime says so, whatever it begins with."""
    found = kind_of(path)
    return _kinds()[-1] if found is None and unitstime is not None else found


def _is_trace(lines: list[str]) -> bool:
    from opline.readers.text import shows_block_events

    return shows_block_events("\n".join(lines).encode())


def _of(lines: list[str]) -> Kind | None:
    *sure, columns = _kinds()
    for kind in sure:
        if any(kind.shows.fullmatch(line) for line in lines):
            return kind
    begun = [line for line in lines if line.strip()][:2]
    return columns if any(columns.shows.fullmatch(line) for line in begun) else None


def refuse(path: StrPath) -> None:
    """Raises UsageError where the input has nothing that a command for I/Os and ops could work on."""
    kind = kind_of(path)
    if kind is not None:
        has = "counts, and no single I/O" if kind.has == COUNTS else "times and latencies, and no I/O"
        raise UsageError(f"{path} has {has} ({kind.called}): only `opline hist` and `opline heatmap` can show it.")


def lines_of(path: StrPath) -> Iterator[str]:
    """The lines of an input, as they come. Raises OplineError."""
    import io

    try:
        with io.TextIOWrapper(pipes.opened(path), encoding="utf-8", errors="replace") as text:
            yield from text
    except OSError as error:
        raise OplineError(f"Cannot read {path}: {error.strerror}.") from error


def snapshots_of(
    path: StrPath, kind: Kind, unit: str | None = None, datasource: str | None = None
) -> Iterator[Snapshot]:
    """The histograms of an input that has counts, as they come. Raises OplineError."""
    from opline_analyses.counts import dictionaries, netapp, records, tables

    readers: dict[str, Callable[[], Iterator[Snapshot]]] = {
        "records": lambda: records.snapshots(lines_of(path), str(path), datasource),
        "netapp": lambda: netapp.snapshots(lines_of(path), str(path)),
        "dictionaries": lambda: dictionaries.snapshots(lines_of(path), str(path)),
        "tables": lambda: tables.snapshots(lines_of(path), str(path), unit),
    }
    return readers[kind.name]()
