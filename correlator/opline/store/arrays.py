# SPDX-License-Identifier: MIT
"""Columns of a query of DuckDB as numpy's arrays, a batch of rows at a time, and a core's rows as what DuckDB reads:
through Arrow's C interface (native/python/arrow_in.cpp, arrow_out.cpp), without pyarrow and without an object per cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opline import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from opline.store.schema import TableSpec

    Piece = tuple[int, list[Any], tuple[int, bytes, bytes]]

ABSENT = -(1 << 63)  # in a column of int64, where the core knows no other way to say it

Array = np.ndarray[Any, np.dtype[Any]]


class Numbers(NamedTuple):
    """Numbers or flags. ``absent``: which rows have none, whose values mean nothing; None: all have one."""

    values: Array
    absent: Array | None

    def plain(self, absent: int = 0) -> Array:
        """Absent ones as ``absent``, in the column's own type."""
        if self.absent is None:
            return self.values
        return np.where(self.absent, self.values.dtype.type(absent), self.values)

    def filled(self, dtype: Any, absent: int = 0) -> Array:
        """Contiguous numbers of this type, absent ones as ``absent``."""
        if absent == ABSENT:
            unsigned = self.values.dtype == np.uint64  # 2^63 has the same bits
            whole = Numbers(self.values.astype(np.uint64 if unsigned else np.int64, copy=False), self.absent)
            return np.ascontiguousarray(whole.plain(-ABSENT if unsigned else ABSENT)).view(dtype)
        return np.ascontiguousarray(self.plain(absent), dtype)

    def array(self) -> Array:
        """Numbers; of a column with absent ones floats, these as NaN."""
        if self.absent is None:
            return self.values
        if self.values.dtype == bool:
            return self.plain()
        return np.where(self.absent, np.nan, self.values.astype(np.float64))

    def coded(self) -> Codes:
        """The different numbers as texts are, in the order in which they come."""
        known = self.values if self.absent is None else self.values[~self.absent]
        different, first, places = np.unique(known, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order))
        codes = np.full(len(self.values), -1, np.int32)
        codes[slice(None) if self.absent is None else ~self.absent] = rank[places]
        return Codes(codes, different[order].tolist())


class Codes(NamedTuple):
    """Texts: of each row the number of its text among the different ones, -1 where it has none."""

    codes: Array
    texts: list[Any]

    def numbers(self, number_of: Callable[[str], int]) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """Each text as the number that ``number_of`` gives it; absent ones as 0."""
        by_code = np.array([*map(number_of, self.texts), 0], np.uint32)
        found: np.ndarray[Any, np.dtype[np.uint32]] = by_code[self.codes]
        return found

    def array(self) -> Array:
        """The texts as objects, absent ones as None."""
        return np.array([*self.texts, None], object)[self.codes]

    def coded(self) -> Codes:
        """These."""
        return self


class Texts(NamedTuple):
    """Texts one after the other in UTF-8, those of absent rows empty; ``ends``: i32, 0 and where each row's ends."""

    data: bytes
    ends: Array

    def only(self, wanted: Array) -> Texts:
        """Those of the rows that are ``wanted`` (flags)."""
        lengths = np.diff(self.ends)
        data = np.frombuffer(self.data, np.uint8)[np.repeat(wanted, lengths)]
        return Texts(data.tobytes(), np.concatenate(([0], np.cumsum(lengths[wanted]))).astype(np.int32))


class Batch:
    """Rows of some columns."""

    def __init__(self, rows: int, columns: dict[str, Any]) -> None:
        self._rows, self._columns = rows, columns

    def __len__(self) -> int:
        return self._rows

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._columns)

    def numbers(self, name: str) -> Numbers:
        """A column of numbers or flags."""
        found: Numbers = self._columns[name]
        return found

    def codes(self, name: str) -> Codes:
        """A column by its different values."""
        found: Codes = self._columns[name].coded()
        return found

    def column(self, name: str) -> Any:
        """A column as it was read."""
        return self._columns[name]

    def texts(self, name: str) -> Texts:
        """A column that was asked for ``whole``."""
        found: Texts = self._columns[name]
        return found

    def array(self, name: str) -> Array:
        """A column as numpy has it: floats with NaN, or objects with None, where values are absent."""
        found: Array = self._columns[name].array()
        return found


def read(relation: Any, whole: Sequence[str] = ()) -> Iterator[Batch]:
    """The rows of a query, in order. Until the last is taken its connection answers no other question. ``whole``: the
    columns of texts of which almost each is another. Raises duckdb.Error.
    """
    stream = _opened(relation, whole)
    names = stream.names()
    while (found := _next(stream)) is not None:
        rows, columns = found
        yield Batch(rows, {name: _column(*column) for name, column in zip(names, columns, strict=True)})


def gathered(relation: Any) -> Batch:
    """All rows of a query. Raises duckdb.Error."""
    stream = _opened(relation, ())
    names = stream.names()
    parts: list[list[Any]] = [[] for _ in names]
    rows = 0
    while (found := _next(stream)) is not None:
        rows += found[0]
        for part, column in zip(parts, found[1], strict=True):
            part.append(_column(*column))
    if not rows:  # numbers of the column's type, still: with others they are joined to that type
        return Batch(0, {name: Numbers(_none_of(array), None) for name, array in relation.fetchnumpy().items()})
    return Batch(rows, {name: _joined(part) for name, part in zip(names, parts, strict=True)})


def _none_of(array: Array) -> Array:
    return np.empty(0, np.int64 if array.dtype == object else array.dtype)


def read_table(file: Path, order: str | None = None) -> Batch:
    """All rows of a Parquet file, by a column if ``order`` names one. Raises OSError and duckdb.Error."""
    import duckdb

    with file.open("rb") as opened, duckdb.connect() as con:  # a path may be a pattern
        by = "" if order is None else f" ORDER BY {order}"
        return gathered(con.sql(f"SELECT * FROM read_parquet('/proc/self/fd/{opened.fileno()}'){by}"))


def _opened(relation: Any, whole: Sequence[str]) -> _core.ArrowStream:
    found: _core.ArrowStream = _asked(lambda: _core.ArrowStream(relation.__arrow_c_stream__(), tuple(whole)))
    return found


def _next(stream: _core.ArrowStream) -> tuple[int, list[tuple[str, bytes, Any]]] | None:
    found: tuple[int, list[tuple[str, bytes, Any]]] | None = _asked(stream.next)
    return found


def _asked(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except ValueError as error:
        import duckdb

        raise duckdb.Error(str(error)) from error


def _column(kind: str, data: bytes, more: Any) -> Numbers | Codes | Texts:
    if kind == "codes":
        return Codes(np.frombuffer(data, np.int32), more)
    if kind == "text":
        return Texts(data, np.frombuffer(more, np.int32))
    return Numbers(np.frombuffer(data, kind), None if more is None else np.frombuffer(more, bool))


def _joined(parts: list[Any]) -> Numbers | Codes:
    if isinstance(parts[0], Codes):
        known: dict[Any, int] = {}
        codes = []
        for part in parts:
            again = [known.setdefault(text, len(known)) for text in part.texts]
            codes.append(np.array([*again, -1], np.int32)[part.codes])
        return Codes(np.concatenate(codes), list(known))
    absent = None
    if any(part.absent is not None for part in parts):
        absent = np.concatenate(
            [np.zeros(len(part.values), bool) if part.absent is None else part.absent for part in parts]
        )
    return Numbers(np.concatenate([part.values for part in parts]), absent)


_TYPES = {"i64": np.int64, "u64": np.uint64, "i32": np.int32, "u32": np.uint32, "bool": np.uint8}


def append(file: _core.TableFile, spec: TableSpec, batch: Batch) -> None:
    """The rows as one more row group; columns that the batch has not are absent. Raises OSError."""
    if len(batch):
        file.add_columns(len(batch), [_written(batch, c.name, c.type) for c in spec.columns])


def _written(batch: Batch, name: str, kind: str) -> tuple[Any, Any]:
    known = name in batch.names
    if kind in ("dict", "text"):
        codes, texts = batch.codes(name) if known else (np.full(len(batch), -1, np.int32), [])
        return np.ascontiguousarray(codes, np.int32), [text.encode() for text in texts]
    if not known:
        return np.zeros(len(batch), _TYPES[kind]), np.ones(len(batch), bool)
    numbers = batch.numbers(name)
    return numbers.filled(_TYPES[kind]), numbers.absent


class TableRows:
    """Rows of a table, as pieces that a core gave (Core.take): DuckDB reads such an object as it reads a table."""

    def __init__(self, spec: TableSpec, pieces: Sequence[Piece] = (), only: str = "") -> None:
        """A piece: the number of rows, the columns, and the words of columns of the type dict: how many, where each
        ends, and their bytes. ``only``: of the rows those count for which this SQL holds; empty: all.
        """
        self._columns = [(c.name, c.type) for c in spec.columns]
        self.pieces = list(pieces)
        self.only = only

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's PyCapsule interface."""
        return _core.arrow_capsule(self._columns, self.pieces)
