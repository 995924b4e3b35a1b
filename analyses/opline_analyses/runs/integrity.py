# SPDX-License-Identifier: MIT
"""Whether a run's tables are unchanged since written: the size and checksum of every file, and of every page, to find
the damaged place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.store.checksums import fault_of, is_newer, noted, pages
from opline.store.schema import TABLES
from opline.values import Value
from opline_analyses.base.result_table import Column, ResultTable, of_items, text
from opline_analyses.base.text import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.runs.run import Run


class Checked(Value):
    """A table's file: the number of pages, and the faults; no faults: unchanged."""

    file: str
    bytes: int
    pages: int
    faults: tuple[str, ...]


def tables(run: Run) -> list[Checked]:
    """All of the run's tables, read to the end."""
    return [_checked(run, spec.name) for spec in TABLES if not is_newer(run.manifest, spec.name)]


def _checked(run: Run, table: str) -> Checked:
    file = run.path / f"{table}.parquet"
    try:
        size = file.stat().st_size
        written = noted(run.manifest, table)
        if written is None:
            whole = "the manifest has no checksum of it (an older opline wrote the run)"
        else:
            whole = fault_of(file, *written) or ""
        found = list(pages(file))
    except OSError as error:
        return Checked(file.name, 0, 0, (f"it can't be read: {error.strerror}",))
    faults = [whole] if whole else []
    where = [p for p in found if p.fault]
    faults += [f"row group {p.row_group}, column {p.column}, page at byte {p.offset}: {p.fault}" for p in where]
    if whole and written and not where:
        faults.append("all pages are right: the damage is in the footer or in a page's header")
    return Checked(file.name, size, len(found), tuple(faults))


def text_lines(checked: list[Checked]) -> Iterator[str]:
    """For people: the faults, and the amount of checked data."""
    for t in checked:
        if t.faults:
            yield t.file
            yield from (f"  {fault}" for fault in t.faults)
    looked_at = f"{count_of(sum(t.pages for t in checked), 'page')}, {sum(t.bytes for t in checked):,} bytes"
    bad = sum(1 for t in checked if t.faults)
    result = "none is damaged" if bad == 0 else f"{count_of(bad, 'is', 'are')} damaged"
    yield f"{count_of(len(checked), 'table')}, {looked_at}: {result}"


COLUMNS = (text("file"), Column("bytes"), Column("pages"), text("faults"))


def result(checked: list[Checked]) -> ResultTable:
    """A row per table."""
    return of_items(
        COLUMNS, [vars(t) for t in checked], text=lambda _: text_lines(checked),
        document=lambda t: {"schema": "opline verify 1", "tables": list(t.items())},
    )  # fmt: skip
