# SPDX-License-Identifier: MIT
"""The tables of a recording that goes on: each as Parquet files, a new one whenever rows have come.

A folder of one's own is needed. Small files are put together, so that there are few.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from opline import _core
from opline.store.arrow import arrow_schema, schema_of
from opline.store.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

TOGETHER = 8  # so many files of about one size become one
LARGEST_ROWS = 1 << 21  # a file with so many rows stays as it is
GROUP_ROWS = 1 << 17


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
        files = {}
        for table in TABLES:
            descriptor = os.open(paths[table.name], os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            columns = [(c.name, c.type) for c in table.columns]
            files[table.name] = _core.TableFile(descriptor, columns, schema_of(table.name))
        core.write(files)
        for name, file in files.items():
            file.close()
            rows = pq.read_metadata(paths[name]).num_rows
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
        schema = arrow_schema(next(t for t in TABLES if t.name == table))
        with pq.ParquetWriter(path, schema, compression="snappy") as together:
            held: list[pa.Table] = []  # small ones become one row group; more is not in memory
            for file in files:
                held.append(pq.read_table(file).cast(schema))
                if file == files[-1] or sum(part.num_rows for part in held) >= GROUP_ROWS:
                    together.write_table(pa.concat_tables(held))
                    held.clear()
        self._rows[path] = sum(self._rows[file] for file in files)
        for file in files:
            del self._rows[file]
            file.unlink()
        return path
