# SPDX-License-Identifier: MIT
"""Writes a run: a Parquet file per table, which the core fills, each a ``*.part`` until all is complete."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from opline import _core
from opline.store.arrow import SCHEMAS
from opline.store.schema import TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RunWriter:
    """Collects the tables of one run in ``directory``. ``commit()`` makes them visible; ``abort()`` leaves nothing."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._files = {
            t.name: _core.TableFile(
                os.fspath(self._part(t.name)), [(c.name, c.type) for c in t.columns], "".join(SCHEMAS[t.name])
            )
            for t in TABLES
        }

    def _part(self, table: str) -> Path:
        return self.directory / f"{table}.parquet.part"

    def write(self, core: _core.Core) -> None:
        """Append the rows that the core has. Raises OSError."""
        core.write(self._files)

    def commit(self, manifest: dict[str, Any]) -> None:
        """Close and rename all files, the manifest last: a directory with a manifest is a whole run."""
        for file in self._files.values():
            file.close()
        part = self.directory / "manifest.json.part"
        part.write_text(json.dumps(manifest, indent=1) + "\n")
        # A manifest that was here is of the tables that go: without it the folder is no run until all is in place.
        (self.directory / "manifest.json").unlink(missing_ok=True)
        for table in self._files:
            self._part(table).replace(self.directory / f"{table}.parquet")
        part.replace(self.directory / "manifest.json")

    def abort(self) -> None:
        """Remove everything that was written so far."""
        for table, file in self._files.items():
            with contextlib.suppress(OSError, ValueError):
                file.close()
            self._part(table).unlink(missing_ok=True)
        (self.directory / "manifest.json.part").unlink(missing_ok=True)
