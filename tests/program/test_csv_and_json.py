# SPDX-License-Identifier: MIT
"""What a command prints as rows is there as CSV and as JSON, with the same numbers."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lib.io_runs import SDB, io_run
from tests.lib.recorded import RunOf

from opline_analyses.cli import main, parser_of
from opline_analyses.command_map import GROUPS

ALONE = {"doctor", "what"}  # they have no rows


def has(parser: argparse.ArgumentParser, option: str) -> bool:
    return option in parser._option_string_actions


def test_whatever_has_json_has_csv() -> None:
    parsers = {name: parser_of(name) for _, group in GROUPS for name, _, _ in group}
    assert {name for name, parser in parsers.items() if has(parser, "--json") and not has(parser, "--csv")} == ALONE
    assert all(has(p, "--safe-cells") for p in parsers.values() if has(p, "--csv"))


Said = Callable[..., str]


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]) -> Said:
    def run(*words: str | Path) -> str:
        capfd.readouterr()
        assert main([str(word) for word in words]) == 0
        return capfd.readouterr().out

    return run


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def as_text(record: dict[str, Any]) -> dict[str, str]:
    return {key: "" if value is None else str(value) for key, value in record.items()}


def test_the_edges_of_a_graph(run_of: RunOf, said: Said, tmp_path: Path) -> None:
    run = run_of("demo-qd4").path
    edges = json.loads(said("graph", run, "--json"))["edges"]
    assert rows_of(said("graph", run, "--csv")) == [as_text(edge) for edge in edges] and len(edges) > 10
    said("graph", run, "-o", tmp_path / "edges.csv")
    assert (tmp_path / "edges.csv").read_text() == said("graph", run, "--format", "csv")


def test_the_changes_between_two_graphs(run_of: RunOf, said: Said) -> None:
    runs = [run_of(name).path for name in ("demo-qd4", "demo-kernel")]
    found = json.loads(said("graph", "--diff", *runs, "--json"))["edges"]
    rows = rows_of(said("graph", "--diff", *runs, "--csv"))
    assert len(rows) == len(found) > 10
    for row, edge in zip(rows, found, strict=True):
        for name in ("count", "p50_ns", "p99_ns", "share", "per_op_ns"):
            edge[f"{name}_a"], edge[f"{name}_b"] = edge.pop(name)
        assert row == as_text(edge)


def test_the_parts_of_a_mean(run_of: RunOf, said: Said) -> None:
    run = run_of("demo-qd4").path
    document = json.loads(said("coverage", run, "--json"))
    rows = rows_of(said("coverage", run, "--csv"))
    assert [{key: row[key] for key in ("part", "mean_ns", "level")} for row in rows] == [
        as_text(part) for part in document["parts"]
    ]
    assert sum(float(row["share"]) for row in rows if row["level"] == "0") == pytest.approx(1)


IOS: list[dict[str, Any]] = [{"d": 100_000 * n, "c": 100_000 * n + 300 + n} for n in range(12)]
IOS += [{"d": 200_000 * n, "c": 200_000 * n + 5000, "dev": SDB, "sectors": 16} for n in range(8)]


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """Two devices; nothing happens in the last second."""
    return io_run(tmp_path / "run", IOS, seconds=2.9)


@pytest.mark.parametrize(
    ("value", "unit", "asked"),
    [("latency", "ns", ()), ("latency", "ns", ("--minlat", "303us", "--maxlat", "1ms")), ("size", "bytes", ())],
)
def test_the_cells_of_a_heat_map(some: Path, said: Said, value: str, unit: str, asked: tuple[str, ...]) -> None:
    words = ("heatmap", some, "--value", value, "--linear", "--stepsec", "0.1", *asked)
    document = json.loads(said(*words, "--json"))
    rows = rows_of(said(*words, "--csv"))
    (step, edges), expected = (document["step_ns"], document["rows"]), []
    for column in range(document["columns"]):
        cells = [cell for cell in document["cells"] if cell["column"] == column] or [None]
        for cell in cells:
            low = high = None
            if cell:
                low = edges[cell["row"] - 1][1] if cell["row"] > 0 else edges[0][0] if cell["row"] == 0 else None
                high = edges[cell["row"]][1] if 0 <= cell["row"] < len(edges) else edges[0][0] if low is None else None
            row = {"group": "", "begin_ns": column * step, "end_ns": (column + 1) * step, f"low_{unit}": low}
            row |= {f"high_{unit}": high, "count": cell["count"] if cell else 0}
            expected.append(as_text(row | {f"sum_{unit}": cell["sum"] if cell else 0}))
    assert rows == expected
    assert sum(int(row["count"]) for row in rows) == len(IOS), "each I/O once"
    assert rows[-1]["count"] == "0", "a column of nothing is a row"
    if asked:
        counted = [row for row in rows if row["count"] != "0"]
        assert all("" in {row[edge] for row in counted} for edge in ("low_ns", "high_ns")), "below, and above"


def test_a_heat_map_of_each_device_and_of_two_columns(some: Path, said: Said, tmp_path: Path) -> None:
    rows = rows_of(said("heatmap", some, "--per-device", "--csv"))
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row["group"]] += int(row["count"])
    assert counts == {"sda": 12, "sdb": 8}
    (tmp_path / "two.txt").write_text("1.0 30\n1.1 45\n3 1.5\n")
    rows = rows_of(said("heatmap", "--unitstime", "s", "--linear", "--stepsec", "1", tmp_path / "two.txt", "--csv"))
    assert [(row["low"], row["count"], row["sum"]) for row in rows] == [
        ("30.0", "1", "30.0"), ("45.0", "1", "45.0"), ("", "0", "0"), ("0.0", "1", "1.5"),
    ]  # fmt: skip


def test_the_cgroup_of_a_request_is_in_every_output(said: Said, tmp_path: Path) -> None:
    """Text says it where there are several."""
    import opline

    ios: list[dict[str, Any]] = [{"q": 10, "d": 20, "c": 400, "cgroup": "/system.slice/nginx.service"}]
    alone = io_run(tmp_path / "alone", ios)
    both = io_run(tmp_path / "both", [*ios, {"q": 500, "d": 600, "c": 900, "cgroup": "/user.slice/backup.service"}])
    cgroups = ["/system.slice/nginx.service", "/user.slice/backup.service"]
    assert [row["cgroup"] for row in rows_of(said("requests", both, "--csv"))] == cgroups
    assert [json.loads(line)["cgroup"] for line in said("requests", both, "--json").splitlines()] == cgroups
    with opline.open(both) as run:
        assert run.request_table().column("cgroup") == cgroups == run.request_table().arrow()["cgroup"].to_pylist()
    lines = said("requests", both).splitlines()[1:]
    assert [line.split()[-1] for line in lines] == ["nginx.service", "backup.service"]
    assert "nginx" not in said("requests", alone)
