# SPDX-License-Identifier: MIT
"""Both front ends drive the same core: every table of every recorded trace is the same, whoever read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lib.recorded import NAMES, RunOf, model_of

from opline import _core
from opline.correlation import correlate
from opline.model import load_model
from opline.store.schema import TABLES


def plain(path: Path) -> pa.Table:
    """A table without what depends on how its rows came in chunks: dictionaries and row groups."""
    table = pq.read_table(path)
    texts = [pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
    return table.replace_schema_metadata().cast(pa.schema(texts)).combine_chunks()


@pytest.mark.parametrize("name", NAMES)
def test_both_front_ends_give_the_same_tables(
    name: str, trace: Callable[[str], Path], run_of: RunOf, tmp_path: Path
) -> None:
    ours = run_of(name)
    manifest = correlate(trace(name), model_of(name), tmp_path, reader="bt2", progress=False)
    assert (ours.manifest["reader"], manifest["reader"]) == ("native", "bt2")
    for spec in TABLES:
        native, bt2 = (plain(path / f"{spec.name}.parquet") for path in (ours.path, tmp_path))
        assert native.equals(bt2), spec.name
        if spec.name in ("ops", "transitions", "stages", "fates"):
            assert native.num_rows > 0


def test_the_core_emits_what_the_schema_declares() -> None:
    core = _core.Core(load_model("demo").plan_json())
    emitted = core.table_columns()
    for spec in TABLES:
        assert emitted.pop(spec.name) == [(c.name, c.type) for c in spec.columns]
    assert not emitted


@pytest.mark.parametrize("name", NAMES)
def test_every_nanosecond_has_one_stage(name: str, run_of: RunOf) -> None:
    """The partition law, in integers, for every complete op of every trace."""
    run = run_of(name)
    sums: Counter[int] = Counter()
    for stage in pq.read_table(run.path / "stages.parquet", columns=["op_id", "duration_ns"]).to_pylist():
        sums[stage["op_id"]] += stage["duration_ns"]
    done = [op for op in run.rows("ops") if op["complete"]]
    assert done
    for op in done:
        assert sums[op["op_id"]] + op["unattributed_ns"] == op["latency_ns"] == op["end_ns"] - op["begin_ns"]
    assert run.core["losses"]["partition_violations"] == 0


@pytest.mark.parametrize("name", ["demo-qd4", "demo-kernel", "ctf-mem-qd1", "fio-psync-qd1-nvme"])
def test_the_fast_path_reads_what_shipped_models_are_for(name: str, run_of: RunOf) -> None:
    manifest = run_of(name).manifest
    assert manifest["reader_fast_events"] > 0.9 * manifest["core"]["events"]
