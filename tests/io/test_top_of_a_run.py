# SPDX-License-Identifier: MIT
"""`opline top RUN`: who did the I/Os of a run, by thread, process, file and others; iostat and hist by the same."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lib.io_runs import io_run
from tests.lib.recorded import RunOf, unpack

from opline_analyses.block.io_filter import PER
from opline_analyses.block.io_owners import SEVERAL
from opline_analyses.cli import main

Said = Callable[..., tuple[str, str]]
SECOND = 1_000_000  # in the us of io_run


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """100 reads of /a by process 10, of 1 to 100 us; 2 writes of /b by process 20, each 1 ms, in the next second."""
    ios: list[dict[str, Any]] = [
        {"q": 1000 * n, "d": 1000 * n, "c": 1000 * n + n, "object": "/a", "tid": 10, "pid": 10, "comm": "reader"}
        for n in range(1, 101)
    ]
    ios += [
        {"q": t, "d": t, "c": t + 1000, "object": "/b", "tid": 21, "pid": 20, "kind": "write", "sectors": 16}
        for t in (SECOND + 1000, SECOND + 5000)
    ]
    return io_run(tmp_path / "run", ios, seconds=2)


def test_a_row_per_file_has_counts_bytes_and_measured_percentiles(run: Path, said: Said) -> None:
    rows = table(said("top", run, "--by", "object", "--csv")[0])
    assert [row["name"] for row in rows] == ["/a", "/b"]
    a, b = ({name: value for name, value in row.items() if name not in ("begin_ns", "end_ns", "share")} for row in rows)
    assert a == {
        "name": "/a", "count": "100", "reads": "100", "writes": "0", "bytes": str(100 * 4096), "mean_ns": "50500.0",
        "p50_ns": "50000", "p99_ns": "99000", "max_ns": "100000", "sum_ns": "5050000",
    }  # fmt: skip
    assert b == {
        "name": "/b", "count": "2", "reads": "0", "writes": "2", "bytes": str(2 * 8192), "mean_ns": "1000000.0",
        "p50_ns": "1000000", "p99_ns": "1000000", "max_ns": "1000000", "sum_ns": "2000000",
    }  # fmt: skip
    assert [float(row["share"]) for row in rows] == pytest.approx([5050 / 7050, 2000 / 7050])


def test_an_interval_has_its_own_rows_and_shares(run: Path, said: Said) -> None:
    rows = table(said("top", run, "1", "--by", "process", "--csv")[0])
    assert [(row["name"], row["begin_ns"], float(row["share"])) for row in rows] == [
        ("app:10", "0", 1.0), ("app:20", "1000000000", 1.0),
    ]  # fmt: skip
    text = said("top", run, "1")[0]
    assert text.startswith("0 to 1 s\n") and "\n1 to 2 s\n" in text
    assert table(said("top", run, "1", "1", "--csv")[0])[0]["count"] == "100"


@pytest.mark.parametrize(
    ("sort", "first"), [("ios", "/a"), ("bytes", "/a"), ("latency", "/b"), ("name", "/a"), ("share", "/a")]
)
def test_the_order_and_the_limit(sort: str, first: str, run: Path, said: Said) -> None:
    out, err = said("top", run, "--by", "object", "--sort", sort, "--limit", "1", "--csv")
    assert [row["name"] for row in table(out)] == [first]
    assert "not shown: 1 rows (--limit)" in err


def test_ops_have_no_direction_and_the_text_no_column_for_it(run: Path, said: Said) -> None:
    text, _ = said("top", run, "--by", "object", "--of", "ops")
    assert "ops" in text.splitlines()[1] and "reads" not in text
    document = json.loads(said("top", run, "--by", "object", "--of", "ops", "--json")[0])
    assert document["of"] == "ops" and [row["reads"] for row in document["rows"]] == [None, None]


def test_a_request_of_two_files_belongs_to_several(run: Path, said: Said) -> None:
    links = pq.read_table(run / "links.parquet")
    of_b = links.to_pylist()[-1] | {"op_id": links["op_id"][0].as_py()}
    pq.write_table(pa.Table.from_pylist([*links.to_pylist(), of_b], schema=links.schema), run / "links.parquet")
    (run / "checksums.json").unlink(missing_ok=True)
    rows = table(said("top", run, "--by", "object", "--csv")[0])
    assert {row["name"]: row["count"] for row in rows} == {"/a": "100", SEVERAL: "1", "/b": "1"}


@pytest.mark.parametrize("by", sorted(set(PER) - {"io", "rwbs", "class", "stage"}))
def test_iostat_and_hist_have_the_same_groups(by: str, run: Path, said: Said) -> None:
    mine = {row["name"]: int(row["count"]) for row in table(said("top", run, "--by", by, "--csv")[0])}
    rows = table(said("iostat", run, "--by", by, "--csv")[0])
    kinds = ("read_count", "write_count")
    assert {row[by]: sum(int(row[kind]) for kind in kinds) for row in rows} == mine
    counted: dict[str, int] = {}
    for row in table(said("hist", run, "--by", by, "--csv")[0]):
        counted[row["group"]] = counted.get(row["group"], 0) + int(row["count"])
    assert counted == mine


def test_of_a_trace_the_groups_and_the_filter_by_object_need_no_run(run_of: RunOf, tmp_path: Path, said: Said) -> None:
    run, trace = run_of("demo-kernel").path, unpack("demo-kernel", tmp_path) / "trace"
    kept = table(said("top", run, "--by", "object", "--csv")[0])
    bare = table(said("top", trace, "--model", "demo", "--by", "object", "--csv")[0])
    assert bare == kept and sum(int(row["count"]) for row in bare) > 200
    one = next(row for row in bare if row["name"] != "unknown")
    rows = table(said("iostat", trace, "--model", "demo", "--object", one["name"], "--csv")[0])
    assert sum(int(row["write_count"]) for row in rows) == int(one["count"])


def test_what_is_a_time_is_no_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "1"]) == 2
    assert "top needs a terminal" in capfd.readouterr().err
    assert main(["top", "no-such-run"]) == 2
    assert "no-such-run does not exist" in capfd.readouterr().err
