# SPDX-License-Identifier: MIT
"""The recorded traces of tests/traces as the tests see them: names, op models, runs as rows, golden texts.

One run of each trace serves all tests of a session: the fixture ``run_of`` (conftest.py).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from opline.model import Model, load_model

HERE = Path(__file__).parents[1]
LAB = HERE / "models" / "lab.toml"
# models of the tests and the examples, which are not shipped
OWN_MODELS = sorted([*(HERE / "models").glob("*.toml"), *(HERE.parent / "examples").glob("*/*.toml")])
# those that every reader of CTF can read: babeltrace2 before 2.1 knows no CTF 2
NAMES = sorted(
    path.name.removesuffix(".tar.xz")
    for path in (HERE / "traces").glob("*.tar.xz")
    if "-ctf2" not in path.name and not path.name.startswith("blktrace-")
)

Row = dict[str, Any]


def unpack(name: str, target: Path) -> Path:
    """The folder of a recorded trace of tests/traces, unpacked below ``target``, with what says where its files lie."""
    subprocess.run(["tar", "-xJf", HERE / "traces" / f"{name}.tar.xz", "-C", target], check=True)
    if (extents := HERE / "traces" / f"{name}.filefrag").exists():
        shutil.copy(extents, target)
    return target / name


def model_of(name: str) -> Model:
    """The op model of a recorded trace, by what recorded it."""
    by_begin = {"demo": "demo", "fio": "syscalls", "fdatasync": "syscalls"}
    for of_application in HERE.glob("*/traces.json"):
        by_begin |= json.loads(of_application.read_text())
    return load_model(by_begin.get(name.split("-")[0], str(LAB)))


@dataclass
class Correlated:
    """A trace's run, as rows. Shared by tests: don't change rows."""

    path: Path
    manifest: dict[str, Any]
    _read: dict[str, list[Row]] = field(default_factory=dict)

    def rows(self, table: str) -> list[Row]:
        """A table, read once."""
        if table not in self._read:
            import pyarrow.parquet as pq  # arm64's check uses this module on a system without pyarrow

            self._read[table] = list(pq.read_table(self.path / f"{table}.parquet").to_pylist())
        return self._read[table]

    @property
    def core(self) -> dict[str, Any]:
        """The core's own summary."""
        return dict(self.manifest["core"])

    @property
    def first_op_ns(self) -> int:
        """When the first op begins, from the run's first event: times of commands and pages count from there."""
        return int(min(row["begin_ns"] for row in self.rows("ops")) - self.core["first_ns"])


class RunOf(Protocol):
    """The fixture ``run_of``."""

    def __call__(self, name: str, *, match: str = "pointer", reader: str = "native") -> Correlated:
        """The run of a recorded trace, correlated once per session and way."""


def fates_text(run: Correlated) -> str:
    """Fate of each event class, then the ledger: the golden form."""
    rows = sorted((row["event"], row["fate"], row["count"]) for row in run.rows("fates"))
    rows += sorted(("loss", row["loss"], row["count"]) for row in run.rows("losses"))
    width = max(len(event) for event, _, _ in rows)
    return "".join(f"{event:{width}}  {fate:24} {count:>8}\n" for event, fate, count in rows)


def check_golden(file: str, actual: str) -> None:
    """Compare with tests/golden/FILE. ``OPLINE_REGEN=1`` rewrites it; a difference leaves FILE.actual beside."""
    golden = HERE / "golden" / file
    if os.environ.get("OPLINE_REGEN"):
        golden.write_text(actual)
    expected = golden.read_text() if golden.exists() else ""
    if actual != expected:
        golden.with_name(f"{file}.actual").write_text(actual)
    assert actual == expected


class Rows:
    """A table as a live view has it."""

    only = ""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)
