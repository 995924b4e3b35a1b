# SPDX-License-Identifier: MIT
"""Writes a run: a Parquet file per table, which the core fills, each a ``*.part`` until all is complete."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from opline import _core
from opline.folder import ANYBODY, PART, Folder
from opline.store.arrow import schema_of
from opline.store.checksums import KEY as CHECKSUMS
from opline.store.schema import TABLES

if TYPE_CHECKING:
    from typing import Any

    from opline.folder import Access


class RunWriter:
    """Collects the tables of one run in ``directory``. ``commit()`` makes them visible; ``abort()`` leaves nothing."""

    def __init__(self, directory: Path, access: Access = ANYBODY, durable: bool = True) -> None:
        """``access``: who may read the files. ``durable``: once complete, the run survives a power cut. Raises OSError;
        then nothing is left.
        """
        if not directory.is_dir():
            directory.mkdir(mode=0o700 | (access[0] & 0o044) | (access[0] & 0o044) >> 2, parents=True)
        self.directory = directory
        self._access = access
        self._durable = durable
        self._folder = Folder(directory)
        self._files: dict[str, _core.TableFile] = {}
        try:
            for t in TABLES:
                descriptor = self._folder.create(f"{t.name}.parquet{PART}", access)
                columns = [(c.name, c.type) for c in t.columns]
                self._files[t.name] = _core.TableFile(descriptor, columns, schema_of(t.name))
        except OSError:
            self.abort()
            raise

    def write(self, core: _core.Core) -> None:
        """Append the rows that the core has. Raises OSError."""
        core.write(self._files)

    def commit(self, manifest: dict[str, Any]) -> None:
        """Close and rename all files, the manifest last: a directory with a manifest is a whole run."""
        checksums = {}
        for table, file in self._files.items():
            size, crc, _ = file.close()
            checksums[f"{table}.parquet"] = {"bytes": size, "crc32": f"{crc:08x}"}
        part = f"manifest.json{PART}"
        with os.fdopen(self._folder.create(part, self._access), "w") as text:
            text.write(json.dumps(manifest | {CHECKSUMS: checksums}, indent=1) + "\n")
        if self._durable:
            for name in (*(f"{table}.parquet{PART}" for table in self._files), part):
                self._folder.sync(name)
        # A manifest that was here is of the tables that go: without it the folder is no run until all is in place.
        self._folder.remove("manifest.json")
        self._sync_names()
        for table in self._files:
            self._folder.rename(f"{table}.parquet{PART}", f"{table}.parquet")
        self._sync_names()
        self._folder.rename(part, "manifest.json")
        self._sync_names()
        self._folder.close()

    def _sync_names(self) -> None:
        """What is renamed next must not reach the disk before what was renamed."""
        if self._durable:
            self._folder.sync_names()

    def abort(self) -> None:
        """Remove everything that was written so far."""
        for table, file in self._files.items():
            with contextlib.suppress(OSError, ValueError):
                file.close()
            with contextlib.suppress(OSError):
                self._folder.remove(f"{table}.parquet{PART}")
        with contextlib.suppress(OSError):
            self._folder.remove(f"manifest.json{PART}")
        self._folder.close()
