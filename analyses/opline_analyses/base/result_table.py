# SPDX-License-Identifier: MIT
"""The one table of results: typed columns, each with a unit, a name for machines and a heading for people.

An analysis gives a `ResultTable`. All outputs are made of it here, and nowhere else (docs/internals/outputs.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from opline.paths import stored
from opline.talk import shown
from opline_analyses.base.extras import frame, polars_frame, pyarrow
from opline_analyses.base.screen import BOLD, DIM, PAPER
from opline_analyses.base.text import duration, json_shown, level, percent, shortened, us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from opline_analyses.base.screen import Screen

    Row: TypeAlias = Sequence[Any]
    Rows: TypeAlias = Iterable[Row] | Callable[[], Iterable[Row]]
    Part: TypeAlias = "str | ResultTable"  # of a text: a sentence, or a table
    Cell: TypeAlias = Callable[[Any], str]

CHUNK = 1 << 16  # characters of CSV that are written at once
SMALL = 0.01  # rows with a smaller share are dim on a terminal
UNITS = {"_ns": "ns", "_bytes": "bytes", "_ppm": "ppm", "share": "of 1", "bytes": "bytes"}


def plain(value: object) -> str:
    """A value as it is; an empty cell for unknown."""
    return "" if value is None else str(value)


class Column(NamedTuple):
    """One column. ``name``: an identifier that ends in its unit. ``title``: the heading for people; None where only
    machines get the column, and a column without a name is for people alone.
    """

    name: str
    title: str | None = None
    cell: Cell = plain  # a value as people read it
    type: str = "i64"  # as in opline.store.schema: i64, f64, bool, text; list: of i64
    left: bool = False  # aligned to the left
    cut: bool = False  # a name of the trace: shortened where a line would be too long

    @property
    def unit(self) -> str:
        """The unit of the values; empty for texts and counts."""
        return next((unit for end, unit in UNITS.items() if self.name.endswith(end)), "")


def text(name: str, title: str | None = None, cell: Cell = plain) -> Column:
    """A column of texts."""
    return Column(name, title, cell, "text", left=True)


def lapse(ns: float | None) -> str:
    """A duration in the unit that suits it; an empty cell for unknown."""
    return "" if ns is None else duration(ns)


def label(name: str, title: str | None = None, cell: Cell = plain) -> Column:
    """A column of names that come from a trace, which may be long."""
    return Column(name, title, cell, "text", left=True, cut=True)


def time(name: str, title: str | None, digits: int = 3, type: str = "f64") -> Column:
    """A column of nanoseconds that people read as microseconds."""
    return Column(name, title, lambda ns: us(ns, digits), type)


def share(name: str = "share", title: str | None = "share%", digits: int = 1) -> Column:
    """A column of parts of 1 that people read in per cent."""
    return Column(name, title, lambda part: percent(part, 1, digits), "f64")


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """A name of the trace as the name of a column: `begin → end` is begin_to_end. It needs no quotes in SQL and Python,
    and is none of those that are ``taken``.
    """
    found = re.sub(r"\W+", "_", name.replace("→", " to ")).strip("_") or "unnamed"
    found = f"n{found}" if found[0].isdigit() else found
    known, number = set(taken), 2
    while found in known:
        found, number = f"{found.removesuffix(f'_{number - 1}')}_{number}", number + 1
    return found


def json_text(document: object, *, indent: int | None = 1, ascii: bool = True) -> str:
    """A document as JSON with a newline. Without ``ascii`` other scripts' letters stay what they are, and what a
    terminal would obey is escaped.
    """
    import json

    found = json.dumps(document, indent=indent, ensure_ascii=ascii, default=str)
    return f"{found if ascii else json_shown(found)}\n"


def csv_header(names: Sequence[str]) -> bytes:
    """The first line of CSV: of rows that never are Python objects (the core's, and DuckDB's of any query)."""
    return "".join(ResultTable([Column(name) for name in names], ()).csv()).encode()


class ResultTable:
    """Rows of values in the order of the columns; None is unknown."""

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Rows,
        *,
        people: Sequence[str] | None = None,
        totals: int = 0,
        gap: str = "  ",
        indent: int = 0,
        below: Callable[[int], str | None] = lambda _: None,
        text: Callable[[ResultTable], Iterable[Part]] | None = None,
        document: Callable[[ResultTable], object] | None = None,
        records: Callable[[ResultTable], Iterable[object]] | None = None,
        ascii: bool = True,
        found: Any = None,
        notes: Sequence[str] = (),
        lines: tuple[Sequence[int], Callable[[], Iterable[str]]] | None = None,
    ) -> None:
        """``rows``: all of them, or what gives them anew each time, for tables that are too long for the memory.
        ``people``: names of the columns that people see, in their order; ``totals``: so many rows at the end are sums;
        ``below``: a line below a row, by the row's number; ``text``, ``document``: all that people read, and the JSON
        document, where that is more than the table; ``records``: the objects of JSON lines, in place of one document;
        ``found``: what the analysis found, as a value of its own; ``notes``: what a command says after it. ``lines``:
        of rows that are too many to be cells, how wide the columns are, and the lines below the headings.
        """
        self.columns = tuple(columns)
        self._rows = rows if callable(rows) else list(rows)
        self.totals, self.gap, self.indent = totals, gap, indent
        self._below = below
        self._people, self._text, self._document, self._records = people, text, document, records
        self._ascii, self._lines = ascii, lines
        self.found, self.notes = found, tuple(notes)

    def with_rows(self, rows: Rows, totals: int | None = None) -> ResultTable:
        """The same table of other rows."""
        return ResultTable(
            self.columns, rows, people=self._people, totals=self.totals if totals is None else totals, gap=self.gap,
            indent=self.indent, below=self._below, text=self._text, document=self._document, records=self._records,
            ascii=self._ascii, found=self.found, notes=self.notes,
        )  # fmt: skip

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        if callable(self._rows):
            self._rows = list(self._rows())
        return self._rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def kept(self) -> bool:
        """Whether the rows are in memory."""
        return not callable(self._rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, for machines."""
        return tuple(c.name for c in self.columns if c.name)

    def place(self, name: str) -> int:
        """Where a column is. Raises UsageError for one that there is not."""
        from opline.errors import UsageError

        if name not in self.names:
            raise UsageError(f"There is no column {name}. Columns: {', '.join(self.names)}.")
        return [c.name for c in self.columns].index(name)

    def column(self, name: str) -> list[Any]:
        """The values of a column. Raises UsageError for one that there is not."""
        place = self.place(name)
        return [row[place] for row in self.rows]

    def sorted(self, name: str | None) -> ResultTable:
        """By a column: numbers from the largest, texts from A, unknown ones last; sums stay at the end. None: as it is.
        Raises UsageError for a column that there is not.
        """
        if name is None:
            return self
        place = self.place(name)
        numbers = self.columns[place].type != "text"
        end = len(self.rows) - self.totals
        known = [row for row in self.rows[:end] if row[place] is not None]
        known.sort(key=lambda row: row[place], reverse=numbers)
        unknown = [row for row in self.rows[:end] if row[place] is None]
        return self.with_rows([*known, *unknown, *self.rows[end:]])

    def first(self, number: int | None) -> ResultTable:
        """The first rows, and the sums at the end; a note says how many are left out. None: as it is."""
        if number is None:  # rows that a function gives are not all kept
            return self
        end = len(self.rows) - self.totals
        if number >= end:
            return self
        found = self.with_rows([*self.rows[:number], *self.rows[end:]])
        found.notes = (*self.notes, f"not shown: {end - number} rows (--limit)")
        return found

    def without_small(self, least: float) -> ResultTable:
        """Without the rows, but sums, whose share is less; a note says how many these are. Raises UsageError where
        there are no shares.
        """
        place, end = self.place("share"), len(self.rows) - self.totals
        small = [row for row in self.rows[:end] if abs(row[place] or 0.0) < least]
        kept = [row for row in self.rows[:end] if abs(row[place] or 0.0) >= least]
        found = self.with_rows([*kept, *self.rows[end:]])
        if small:
            whole = percent(sum(row[place] or 0.0 for row in small), 1, 2)
            note = f"not shown: {len(small)} rows, each less than {100 * least:g} %, {whole} % in all"
            found.notes = (*self.notes, note)
        return found

    # for people

    def _seen(self) -> list[tuple[int, Column]]:
        """The columns that people see, with their places."""
        found = [(i, c) for i, c in enumerate(self.columns) if c.title is not None]
        if self._people is None:
            return found
        by_name = {c.name: (i, c) for i, c in found}
        return [by_name[name] for name in self._people]

    def _cells(self) -> list[list[str]]:
        """The headings and the rows as people see them."""
        seen = self._seen()
        header = [shown(c.title or "") for _, c in seen]
        return [header, *([shown(c.cell(row[i])) for i, c in seen] for row in self.rows)]

    def widths(self) -> list[int]:
        """How wide the columns are that people see, with their names in full length."""
        return _widest(self._cells())

    def lines(self, screen: Screen = PAPER) -> Iterator[str]:
        """Aligned lines, below the headings. Names are shortened where a line would be wider than the screen."""
        seen = self._seen()
        if self._lines is not None:
            widths, lines = self._lines
            yield screen.styled(self._aligned(seen, [shown(c.title or "") for _, c in seen], widths), BOLD)
            yield from lines()
            return
        header, *rows = self._cells()
        widths = self.widths()
        if cut := [at for at, (_, c) in enumerate(seen) if c.cut]:
            over = sum(widths) + len(self.gap) * (len(widths) - 1) + self.indent - screen.width
            most = level([widths[at] for at in cut], sum(widths[at] for at in cut) - over)
            rows = [[shortened(cell, most) if at in cut else cell for at, cell in enumerate(row)] for row in rows]
            widths = _widest([header, *rows])
        for number, cells in enumerate((header, *rows)):
            yield screen.styled(self._aligned(seen, cells, widths), self._weight(number) if screen.weighs else "")
            if number and (line := self._below(number - 1)) is not None:
                yield shown(line)

    def _aligned(self, seen: Sequence[tuple[int, Column]], cells: Sequence[str], widths: Sequence[int]) -> str:
        each = zip(cells, widths, seen, strict=True)
        padded = (cell.ljust(width) if c.left else cell.rjust(width) for cell, width, (_, c) in each)
        return " " * self.indent + self.gap.join(padded).rstrip()

    def _weight(self, number: int) -> str:
        """Of a line, the header's is 0: bold are headings and sums, dim what hardly counts."""
        if number == 0 or number > len(self.rows) - self.totals:
            return BOLD
        shares = [i for i, c in enumerate(self.columns) if c.name == "share"]
        part = self.rows[number - 1][shares[0]] if shares else None
        return DIM if part is not None and abs(part) < SMALL else ""

    def parts(self) -> Iterable[Part]:
        """All that people read: sentences and tables."""
        return (self,) if self._text is None else self._text(self)

    def text(self, screen: Screen = PAPER) -> str:
        """All that people read, as one text."""
        return "".join(f"{line}\n" for line in rendered(self.parts(), screen))

    def __str__(self) -> str:
        return self.text()

    # for machines

    def items(self) -> Iterator[dict[str, Any]]:
        """The rows by the names of their columns."""
        named = [(i, c.name) for i, c in enumerate(self.columns) if c.name]
        for row in self._rows() if callable(self._rows) else self._rows:
            yield {name: row[i] for i, name in named}

    def csv(self, header: bool = True) -> Iterator[str]:
        """CSV by RFC 4180 with lines that end in LF, in pieces; unknown values are empty cells."""
        import csv
        import io

        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        if header:
            writer.writerow(self.names)
        for item in self.items():
            writer.writerow([_csv_cell(value) for value in item.values()])
            if out.tell() > CHUNK:
                yield stored(out.getvalue())
                out.seek(0)
                out.truncate()
        yield stored(out.getvalue())

    def document(self) -> Any:
        """All of it as plain values, as JSON has it."""
        if self._records is not None:
            return list(self._records(self))
        return list(self.items()) if self._document is None else self._document(self)

    def json(self) -> Iterator[str]:
        """JSON in pieces: one document, or a line for each record."""
        if self._records is None:
            yield json_text(self.document(), ascii=self._ascii)
        else:
            for record in self._records(self):
                yield json_text(record, indent=None, ascii=self._ascii)

    def arrow(self) -> pa.Table:
        """A pyarrow.Table. Raises OplineError where pyarrow is not installed."""
        arrow = pyarrow()
        types = {"i64": arrow.int64(), "f64": arrow.float64(), "bool": arrow.bool_(), "text": arrow.string()}
        types["list"] = arrow.list_(arrow.int64())
        named = [(i, c) for i, c in enumerate(self.columns) if c.name]
        values = {c.name: arrow.array([row[i] for row in self.rows], types[c.type]) for i, c in named}
        return arrow.table(values)

    def df(self) -> pd.DataFrame:
        """A pandas.DataFrame, whose integers stay integers. Raises OplineError where pandas is not installed."""
        return frame(self.arrow())

    def pl(self) -> pl.DataFrame:
        """The rows as a polars.DataFrame. Raises OplineError."""
        return polars_frame(self.arrow())

    def _repr_html_(self) -> str:
        """All that people read, for a notebook."""
        return "".join(
            part._html() if isinstance(part, ResultTable) else f"<p>{_html(part)}</p>" for part in self.parts() if part
        )

    def _html(self) -> str:
        seen = self._seen()
        head = "".join(f"<th>{_html(c.title or '')}</th>" for _, c in seen)
        body = "".join(f"<tr>{''.join(f'<td>{_html(c.cell(row[i]))}</td>' for i, c in seen)}</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html(value: str) -> str:
    import html

    return html.escape(shown(value))


def _widest(cells: list[list[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _csv_cell(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def rendered(parts: Iterable[Part], screen: Screen = PAPER) -> Iterator[str]:
    """Sentences and tables as lines that a terminal shows and does not obey."""
    for part in parts:
        if isinstance(part, ResultTable):
            yield from part.lines(screen)
        else:
            yield shown(part)


def encoded(parts: Iterable[Part], screen: Screen = PAPER) -> bytes:
    """The same as bytes: each sentence stays one line, whatever names are in it."""
    return "".join(f"{line}\n" for line in rendered(parts, screen)).encode()


Items: TypeAlias = "Iterable[Mapping[str, Any]] | Callable[[], Iterable[Mapping[str, Any]]]"


def of_items(columns: Sequence[Column], items: Items, **options: Any) -> ResultTable:
    """A table of mappings that have the columns' names."""
    names = [c.name for c in columns]

    def rows() -> Iterator[Row]:
        return ([item[name] for name in names] for item in (items() if callable(items) else items))

    return ResultTable(columns, rows if callable(items) else list(rows()), **options)
