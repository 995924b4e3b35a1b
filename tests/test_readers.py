# SPDX-License-Identifier: MIT
"""Both front ends drive the same core: every table of every recorded trace is the same, whoever read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opline import _core
from opline.correlate import correlate
from opline.model import Model, load_model
from opline.store.schema import TABLES

LAB = Path(__file__).parent / "models" / "lab.toml"
NAMES = sorted(p.name.removesuffix(".tar.xz") for p in (Path(__file__).parent / "traces").glob("*.tar.xz"))


def model_of(name: str) -> Model:
    """The op model of a recorded trace, by what recorded it."""
    by_begin = {"ctf": "ceph", "demo": "demo", "fio": "syscalls"}
    return load_model(by_begin.get(name.split("-")[0], str(LAB)))


def plain(path: Path) -> pa.Table:
    """A table without what depends on how its rows came in chunks: dictionaries and row groups."""
    table = pq.read_table(path)
    texts = [pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
    return table.replace_schema_metadata().cast(pa.schema(texts)).combine_chunks()


@pytest.mark.parametrize("name", NAMES)
def test_both_front_ends_give_the_same_tables(name: str, trace: Callable[[str], Path], tmp_path: Path) -> None:
    model = model_of(name)
    for reader in ("native", "bt2"):
        manifest = correlate(trace(name), model, tmp_path / reader, reader=reader, progress=False)
        assert manifest["reader"] == reader
    for spec in TABLES:
        native, bt2 = (plain(tmp_path / r / f"{spec.name}.parquet") for r in ("native", "bt2"))
        assert native.equals(bt2), spec.name
        if spec.name in ("ops", "transitions", "stages", "fates"):
            assert native.num_rows > 0


def test_the_core_emits_what_the_schema_declares() -> None:
    core = _core.Core(load_model("demo").plan_json())
    emitted = core.table_columns()
    for spec in TABLES:
        if spec.name != "losses":  # made of the summary's counts, in Python
            assert emitted.pop(spec.name) == [(c.name, c.type) for c in spec.columns]
    assert not emitted


@pytest.mark.parametrize("name", NAMES)
def test_every_event_has_one_fate_and_every_nanosecond_one_stage(
    name: str, trace: Callable[[str], Path], tmp_path: Path
) -> None:
    manifest = correlate(trace(name), model_of(name), tmp_path, progress=False)
    fates = pq.read_table(tmp_path / "fates.parquet")
    assert sum(fates["count"].to_pylist()) == manifest["core"]["events"]
    sums: Counter[int] = Counter()
    for stage in pq.read_table(tmp_path / "stages.parquet", columns=["op_id", "duration_ns"]).to_pylist():
        sums[stage["op_id"]] += stage["duration_ns"]
    done = [op for op in pq.read_table(tmp_path / "ops.parquet").to_pylist() if op["complete"]]
    assert done
    for op in done:
        assert sums[op["op_id"]] + op["unattributed_ns"] == op["latency_ns"] == op["end_ns"] - op["begin_ns"]
    assert manifest["core"]["losses"]["partition_violations"] == 0
