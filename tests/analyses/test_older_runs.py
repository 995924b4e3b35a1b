# SPDX-License-Identifier: MIT
"""Runs of an older opline, whose tables lack columns of today's: these are absent, and every command goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.lib.recorded import RunOf

from opline.store.schema import ATTRIBUTES
from opline_analyses.cli import main

LATER = ["unsplit", "population", "cgroup", *(attribute.column for attribute in ATTRIBUTES)]


@pytest.fixture
def older(tmp_path: Path, run_of: RunOf) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    for file in run_of("demo-kernel").path.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    table = pq.read_table(folder / "ops.parquet")
    pq.write_table(table.drop_columns([name for name in LATER if name in table.column_names]), folder / "ops.parquet")
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["checksums"]["ops.parquet"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    "command",
    ["csv", "csv --stages", "ops --json", "ops", "why", "stages", "coverage", "report -o PAGE", "plot -o PICTURE"],
)
def test_columns_that_came_later_are_absent(command: str, older: Path, tmp_path: Path) -> None:
    name, *options = command.split()
    places = {"PAGE": str(tmp_path / "page.html"), "PICTURE": str(tmp_path / "picture.png")}
    assert main([name, str(older), *(places.get(word, word) for word in options)]) == 0
