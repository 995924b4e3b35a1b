# SPDX-License-Identifier: MIT
"""The core's own writer of Parquet: whatever it writes, pyarrow and DuckDB read."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opline import _core
from opline.store.arrow import arrow_schema, schema_of
from opline.store.schema import BY_NAME, Column, TableSpec

COLUMNS = {
    "i64": (-(2**63), 2**63 - 1),
    "u64": (0, 2**64 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "u32": (0, 2**32 - 1),
    "bool": (0, 1),
}
SPEC = TableSpec("any", "row", tuple(Column(f"c_{t}", t, t) for t in (*COLUMNS, "dict", "text")))


def new(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)


def written(path: Path, groups: list[list[list[Any]]], arrow: str = "") -> None:
    file = _core.TableFile(new(path), [(c.name, c.type) for c in SPEC.columns], arrow)
    for columns in groups:
        file.add(columns)
    file.close()


def check(path: Path, groups: list[list[list[Any]]]) -> None:
    """What both readers find in the file, statistics of the row groups included."""
    written(path, groups)
    table = pq.read_table(path)
    table.validate(full=True)
    whole = [[v for group in groups for v in group[i]] for i in range(len(SPEC.columns))]
    said = duckdb.execute(f"SELECT * FROM read_parquet('{path}')").fetchall()
    for i, column in enumerate(SPEC.columns):
        wanted = [v.decode(errors="backslashreplace") if isinstance(v, bytes) else v for v in whole[i]]
        assert table.column(i).to_pylist() == wanted, column.name
        assert [row[i] for row in said] == wanted, column.name
    meta = pq.read_metadata(path)
    for g, columns in enumerate([group for group in groups if group[0]]):
        for i, column in enumerate(SPEC.columns):
            found = meta.row_group(g).column(i).statistics
            present = [v for v in columns[i] if v is not None]
            assert found.null_count == len(columns[i]) - len(present)
            assert found.has_min_max == (column.type in COLUMNS and column.type != "bool" and bool(present))
            if found.has_min_max:
                assert (found.min, found.max) == (min(present), max(present))


def values(kind: str, pick: random.Random, rows: int, form: str) -> list[Any]:
    """A column of one of the forms that the encodings tell apart."""
    low, high = COLUMNS.get(kind, (0, 300))
    start = pick.randint(low, high)
    period = [pick.randint(low, high) for _ in range(pick.randint(2, 40))]

    def one(n: int) -> int | None:
        if form == "absent" or (form == "holes" and pick.random() < 0.4):
            return None
        if form == "same":
            return start
        if form == "periodic":
            return period[n % len(period)]
        if form == "steps":
            return min(high, max(low, start + n * 3 + pick.randint(0, 5)))
        if form == "runs":
            return period[n // 97 % len(period)]
        return pick.randint(low, high) >> pick.randint(0, 60)

    numbers = [one(n) for n in range(rows)]
    if kind in COLUMNS:
        return [None if v is None else max(low, min(high, v)) for v in numbers]
    return [None if v is None else f"text {v}".encode() for v in numbers]


@pytest.mark.parametrize("form", ["any", "absent", "holes", "same", "periodic", "steps", "runs"])
def test_columns_of_every_form_and_length(form: str, tmp_path: Path) -> None:
    pick = random.Random(form)
    for n, rows in enumerate((1, 2, 8, 31, 32, 33, 128, 129, 130, 257, 1000, 5003)):
        forms = [form, *(["absent", "periodic", form] if rows == 1000 else [])]
        groups = [[values(c.type, pick, rows, f) for c in SPEC.columns] for f in forms]
        check(tmp_path / f"{n}.parquet", groups)
    group = pq.read_metadata(tmp_path / "11.parquet").row_group(0)
    codecs = {group.column(i).compression for i in range(group.num_columns)}
    assert codecs == {"ZSTD"}


def test_a_file_without_rows(tmp_path: Path) -> None:
    check(tmp_path / "none.parquet", [[[] for _ in SPEC.columns]])


ANY: dict[str, st.SearchStrategy[Any]] = {kind: st.none() | st.integers(*limits) for kind, limits in COLUMNS.items()}
ANY |= {"dict": st.none() | st.binary(max_size=6), "text": st.none() | st.binary(max_size=6)}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(*(ANY[c.type] for c in SPEC.columns)), min_size=1, max_size=200))
def test_any_values(tmp_path: Path, rows: list[tuple[Any, ...]]) -> None:
    check(tmp_path / "any.parquet", [[list(column) for column in zip(*rows, strict=True)]])


def test_a_dictionary_has_a_text_once(tmp_path: Path) -> None:
    """Texts that are ill-formed in different ways stay different."""
    spec, path = BY_NAME["fates"], tmp_path / "fates.parquet"
    names = [b"zeta", b"\xff\x04", b"alpha", b"\xfe\x04", b"\xff\x04", "\ufffd\x04".encode(), "\u00e9".encode()]
    file = _core.TableFile(new(path), [(c.name, c.type) for c in spec.columns], schema_of("fates"))
    columns: list[Any] = [names, [b"ignored"] * len(names), list(range(len(names)))]
    file.add(columns)
    file.close()
    table = pq.read_table(path)
    table.validate(full=True)
    said = duckdb.execute(f"SELECT event FROM read_parquet('{path}')").fetchall()
    shown = [name.decode(errors="backslashreplace") for name in names]
    assert table.column("event").to_pylist() == [event for (event,) in said] == shown
    assert sorted(table.column("event").combine_chunks().dictionary.to_pylist()) == sorted(set(shown))


def test_arrow_readers_are_told_dictionaries_and_meanings(tmp_path: Path) -> None:
    for name, spec in BY_NAME.items():
        path = tmp_path / f"{name}.parquet"
        _core.TableFile(new(path), [(c.name, c.type) for c in spec.columns], schema_of(name)).close()
        found = pq.read_schema(path)
        assert found.equals(arrow_schema(spec))
        for column in spec.columns:
            field = found.field(column.name)
            assert field.metadata[b"meaning"] == column.meaning.encode()
            assert pa.types.is_dictionary(field.type) == (column.type == "dict")


def test_what_can_not_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        _core.TableFile(-1, [("a", "i64")], "")
    with pytest.raises(ValueError, match="no type"):
        _core.TableFile(new(tmp_path / "x.parquet"), [("a", "i63")], "")
    with pytest.raises(OSError, match="No space left"):
        _core.TableFile(new(Path("/dev/full")), [("a", "i64")], "")
    file = _core.TableFile(new(tmp_path / "x.parquet"), [("a", "i64")], "")
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.add([[1]])
