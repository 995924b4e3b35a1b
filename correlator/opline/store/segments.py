# SPDX-License-Identifier: MIT
"""The tables of a recording that goes on: each as Parquet files, a new one whenever rows have come.

A folder of one's own is needed. Small files are put together, so that there are few.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from opline import _core
from opline.store.arrays import append, read
from opline.store.arrow import schema_of
from opline.store.schema import BY_NAME, TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline.store.schema import TableSpec

TOGETHER = 8  # so many files of about one size become one
LARGEST_ROWS = 1 << 21  # a file with so many rows stays as it is


class Segments:
    """Files by table, in the order of their rows. ``files`` of a moment stay what they are, but may be removed when
    more rows have come: open them before. The folder itself stays, as a lock on it says that somebody uses it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._rows: dict[Path, int] = {}
        self.files: dict[str, list[Path]] = {table.name: [] for table in TABLES}

    def clear(self) -> None:
        """Begin anew. Raises OSError."""
        for file in self._folder.iterdir():
            file.unlink()
        self._rows.clear()
        self.files = {table.name: [] for table in TABLES}

    def add(self, core: _core.Core) -> None:
        """The rows that the core has. Raises OSError."""
        paths = {table.name: self._path(table.name) for table in TABLES}
        files = {table.name: _new_file(paths[table.name], table) for table in TABLES}
        core.write(files)
        for name, file in files.items():
            *_, rows = file.close()
            if rows == 0:
                paths[name].unlink()
                continue
            self._rows[paths[name]] = rows
            self.files[name] = self._put_together(name, [*self.files[name], paths[name]])

    def _path(self, table: str) -> Path:
        self._number += 1
        return self._folder / f"{table}-{self._number}.parquet"

    def _put_together(self, table: str, files: list[Path]) -> list[Path]:
        """As long as the last ones are of about one size."""
        while len(files) >= TOGETHER:
            last = files[-TOGETHER:]
            rows = [self._rows[path] for path in last]
            if max(rows) > TOGETHER * rows[-1] or sum(rows) > LARGEST_ROWS:
                break
            files = [*files[:-TOGETHER], self._one_of(table, last)]
        return files

    def _one_of(self, table: str, files: Sequence[Path]) -> Path:
        path = self._path(table)
        spec = BY_NAME[table]
        together = _new_file(path, spec)
        with ExitStack() as stack:
            opened = [stack.enter_context(file.open("rb")) for file in files]
            con = stack.enter_context(duckdb.connect(config={"threads": 1}))
            listed = ", ".join(f"'/proc/self/fd/{file.fileno()}'" for file in opened)  # a path may be a pattern
            for batch in read(con.sql(f"SELECT * FROM read_parquet([{listed}])")):
                append(together, spec, batch)
        together.close()
        self._rows[path] = sum(self._rows[file] for file in files)
        for file in files:
            del self._rows[file]
            file.unlink()
        return path


def _new_file(path: Path, spec: TableSpec) -> _core.TableFile:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    return _core.TableFile(descriptor, [(c.name, c.type) for c in spec.columns], schema_of(spec.name))
