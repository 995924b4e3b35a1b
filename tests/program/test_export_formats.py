# SPDX-License-Identifier: MIT
"""The exports that are text, and Arrow's: each read by its consumer's library or against its published schema, and its
sums against those of `opline csv` and `opline stages` of the same ops, to the nanosecond.

speedscope: the schema of its npm package 1.25.0 (MIT), in tests/schemas. Jaeger: the fields of model/json/model.go.
LAMI: the rules of lami.adoc v1.0.1. Chrome's format has no schema: begins and ends must match as its document says.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from prometheus_client.openmetrics import parser as openmetrics
from tests.lib.build_run import P, Rq, RunBuilder
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import HOSTILE, hostile_run
from tests.program.test_export import exported

import opline
from opline.talk import shown
from opline_analyses.cli import main
from opline_analyses.ops.op_csv import stage_columns

SCHEMAS = Path(__file__).parents[1] / "schemas"
SELECTIONS = (("--class", "read", "--since", "0.01"), ("--slowest", "50"))
NEW = ("chrome", "jaeger", "speedscope", "openmetrics", "arrow", "lami")


@pytest.fixture(params=SELECTIONS, ids=" ".join)
def which(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(request.param)


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


def csv_sums(run: Path, capfd: pytest.CaptureFixture[str], *which: str) -> Counter[str]:
    """Of `opline csv`: nanoseconds by stage, and of the latency."""
    with opline.open(run) as opened:
        names = {stage_columns([name])[0]: name for (name,) in opened.sql("SELECT DISTINCT stage FROM stages").rows()}
    capfd.readouterr()
    assert main(["csv", str(run), *which]) == 0
    totals: Counter[str] = Counter()
    for row in csv.DictReader(io.StringIO(capfd.readouterr().out)):
        for column, text in row.items():
            if column.endswith("_ns") and column not in ("begin_ns", "end_ns", "client_ns") and text:
                totals[names.get(column, column.removesuffix("_ns"))] += int(text)
    assert totals["latency"] == sum(totals.values()) - totals["latency"] > 0
    return +totals


def families_of(text: str) -> list[Any]:
    return list(openmetrics.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def ns(text: str) -> int:
    """Seconds or microseconds as text, times 1000 or 10^9: exact."""
    whole = Decimal(text)
    assert whole == int(whole)
    return int(whole)


def chrome_slices(data: bytes) -> list[tuple[dict[str, Any], int, int, int]]:
    """Slices as (event that begins it, begin, end, depth), times in ns; fails where they don't nest."""
    trace = json.loads(data, parse_float=Decimal)
    opened: defaultdict[Any, list[tuple[dict[str, Any], int]]] = defaultdict(list)
    slices = []
    for event in sorted((e for e in trace["traceEvents"] if e["ph"] in "be"), key=lambda e: e["ts"]):
        key = (event["pid"], event["cat"], event["id2"]["local"])
        at = ns(str(event["ts"] * 1000))
        if event["ph"] == "b":
            opened[key].append((event, at))
        else:
            begun, begin = opened[key].pop()
            assert begun["name"] == event["name"]
            slices.append((begun, begin, at, len(opened[key])))
    assert not any(opened.values())
    assert {e["pid"] for e, *_ in slices} == {e["pid"] for e in trace["traceEvents"] if e["ph"] == "M"}
    return slices


def test_chrome(demo: Correlated, which: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    slices = chrome_slices(exported(demo.path, "chrome", tmp_path, *which))
    totals: Counter[str] = Counter()
    for event, begin, end, depth in slices:
        if event["cat"] == "op":
            totals["latency" if depth == 0 else event["name"]] += end - begin
    assert +totals == csv_sums(demo.path, capfd, *which)
    ops = {e["args"]["op_id"] for e, _, _, depth in slices if e["cat"] == "op" and depth == 0}
    requests = [e["args"]["request_id"] for e, _, _, depth in slices if e["cat"] == "block" and depth == 0]
    assert sorted(requests) == sorted({r["request_id"] for r in demo.rows("links") if r["op_id"] in ops})


def test_jaeger(demo: Correlated, which: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = json.loads(exported(demo.path, "jaeger", tmp_path, *which))
    assert found["total"] == len(found["data"]) == len({trace["traceID"] for trace in found["data"]})
    totals: Counter[str] = Counter()
    for trace in found["data"]:
        root, *below = trace["spans"]
        assert root["references"] == []
        for span in trace["spans"]:
            assert re.fullmatch("[0-9a-f]{32}", span["traceID"])
            assert re.fullmatch("[0-9a-f]{16}", span["spanID"])
            assert span["traceID"] == trace["traceID"]
            assert trace["processes"][span["processID"]]["serviceName"] == "demo"
            assert isinstance(span["startTime"], int)
            assert isinstance(span["duration"], int)
            assert span["duration"] >= 0
            types = {"string": str, "bool": bool, "int64": int}
            assert all(type(tag["value"]) is types[tag["type"]] for tag in span["tags"])
        for span in below:
            (reference,) = span["references"]
            assert reference == {"refType": "CHILD_OF", "traceID": trace["traceID"], "spanID": root["spanID"]}
            tags = {tag["key"]: tag["value"] for tag in span["tags"]}
            if "opline.duration_ns" in tags:
                assert root["startTime"] <= span["startTime"]
                assert span["startTime"] + span["duration"] <= root["startTime"] + root["duration"]
                assert abs(span["duration"] * 1000 - tags["opline.duration_ns"]) < 1000
                totals[span["operationName"]] += tags["opline.duration_ns"]
        totals["latency"] += {tag["key"]: tag["value"] for tag in root["tags"]}["opline.latency_ns"]
    assert +totals == csv_sums(demo.path, capfd, *which)


def test_speedscope(
    demo: Correlated, which: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(exported(demo.path, "speedscope", tmp_path, *which))
    jsonschema.validate(found, json.loads((SCHEMAS / "speedscope-1.25.0.json").read_text()))
    names = [frame["name"] for frame in found["shared"]["frames"]]
    totals: Counter[str] = Counter()
    for profile in found["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"]
        totals["latency"] += profile["endValue"]
        for (_, stage), weight in zip(profile["samples"], profile["weights"], strict=True):
            totals[names[stage]] += weight
    assert totals == csv_sums(demo.path, capfd, *which)


def test_openmetrics(
    demo: Correlated, which: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = exported(demo.path, "openmetrics", tmp_path, *which).decode()
    families = {family.name: family for family in families_of(text)}
    assert {families[f"opline_{n}_seconds"].type for n in ("op_latency", "stage_duration")} == {"histogram"}
    totals: Counter[str] = Counter()
    for line in text.splitlines():
        if found := re.match(r"opline_(op_latency|stage_duration|op_unattributed)_seconds_sum(.*) (\S+)$", line):
            kind, labels, value = found.groups()
            stage = re.search('stage="(.*?)"', labels)
            totals[stage[1] if stage else kind.removeprefix("op_")] += ns(str(Decimal(value) * 10**9))
    assert +totals == csv_sums(demo.path, capfd, *which)


def test_openmetrics_of_many_ops_are_counted_in_parts(
    demo: Correlated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = exported(demo.path, "openmetrics", tmp_path)
    monkeypatch.setattr("opline_analyses.export.openmetrics.PART_OPS", 300)
    assert exported(demo.path, "openmetrics", tmp_path) == whole


def test_an_openmetrics_bucket_has_its_edge(tmp_path: Path) -> None:
    run = RunBuilder()
    for latency in (999, 1000, 1001, 2000, 10**11, 10**11 + 1):
        run.op([P("a", 0), P("b", latency, stage="s")], op_class="c")
    text = exported(run.write(tmp_path / "run"), "openmetrics", tmp_path).decode()
    (family,) = [f for f in families_of(text) if f.name == "opline_op_latency_seconds"]
    upto = {s.labels["le"]: s.value for s in family.samples if s.name.endswith("_bucket")}
    assert (upto["1e-06"], upto["2e-06"], upto["50.0"], upto["100.0"], upto["+Inf"]) == (2, 4, 4, 5, 6)


def test_arrow_is_the_csv(
    demo: Correlated, which: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = pa.ipc.open_file(exported(demo.path, "arrow", tmp_path, *which)).read_all()
    capfd.readouterr()
    assert main(["csv", str(demo.path), *which]) == 0
    header, *rows = csv.reader(io.StringIO(capfd.readouterr().out))
    assert table.column_names == header

    def cell(value: object) -> str:
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    texts = [[cell(value) for value in column.to_pylist()] for column in table.columns]
    assert [list(row) for row in zip(*texts, strict=True)] == rows
    assert all(table.schema.field(n).type == pa.int64() for n in header if n.endswith("_ns"))


def test_lami(demo: Correlated, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = ("--class", "write")
    found = json.loads(exported(demo.path, "lami", tmp_path, *options))
    classes, stages = found["results"]
    for table in found["results"]:
        assert table["time-range"]["class"] == "time-range"
        assert 10**18 < table["time-range"]["begin"]["value"] < table["time-range"]["end"]["value"]
        kinds = [column["class"] for column in table["class"]["column-descriptions"]]
        for row in table["data"]:
            assert len(row) == len(kinds)
            for cell, kind in zip(row, kinds, strict=True):
                assert cell["class"] in (kind, "unknown")
                assert ("value" in cell) == (cell["class"] != "unknown")
    title = [column["title"] for column in stages["class"]["column-descriptions"]]
    place = title.index("Sum")
    totals = Counter({row[0]["value"]: row[place]["value"] for row in stages["data"]})
    totals["latency"] = sum(row[-1]["value"] for row in classes["data"])
    assert +totals == csv_sums(demo.path, capfd, *options)
    capfd.readouterr()
    assert main(["stages", str(demo.path), "--csv", *options]) == 0
    table_of = {row["stage"]: row for row in csv.DictReader(io.StringIO(capfd.readouterr().out))}
    for row in stages["data"]:
        assert int(table_of[row[0]["value"]]["p99_ns"]) == row[title.index("p99")]["value"]


def test_lami_as_trace_compass_calls_it(demo: Correlated, capfd: pytest.CaptureFixture[str]) -> None:
    """LamiAnalysis of Trace Compass: the version, what there is, whether the trace fits, then the results of a part."""

    def printed(*options: str) -> str:
        capfd.readouterr()
        assert main(["export", "--to", "lami", *options]) == 0
        return capfd.readouterr().out

    assert printed("--mi-version") == "1.0\n"
    known = json.loads(printed("--metadata"))
    assert known["mi-version"] == {"major": 1, "minor": 0} and known["title"] == "opline"
    assert printed("--test-compatibility", str(demo.path)) == ""
    classes, stages = json.loads(printed("--output-progress", str(demo.path)))["results"]
    assert [classes["class"], stages["class"]] == [*known["table-classes"].values()]
    span = classes["time-range"]
    begin, end = span["begin"]["value"], span["end"]["value"]

    def ops(*options: str) -> int:
        found = json.loads(printed("--output-progress", *options, str(demo.path)))["results"][0]
        return sum(row[1]["value"] for row in found["data"])

    middle = (begin + end) // 2
    assert 0 < ops("--begin", str(middle)) < ops("--begin", str(begin), "--end", str(end)) <= ops()
    assert ops("--begin", str(middle)) + ops("--end", str(middle)) == ops()


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


@pytest.mark.parametrize("form", NEW)
def test_names_of_any_kind_and_times_beyond_doubles(form: str, tmp_path: Path) -> None:
    data = exported(hostile_run(tmp_path / "run"), form, tmp_path, "--class", f"class {HOSTILE}")
    if form == "arrow":
        table = pa.ipc.open_file(data).read_all()
        assert f"class {HOSTILE}" in table["class"].to_pylist()  # data, not for a terminal: as it was traced
        assert min(table["begin_ns"].to_pylist()) == 2**60 + 1
        return
    text = data.decode()
    assert "\u202e" not in text
    if form == "openmetrics":
        (family, *_) = families_of(text)
        assert {s.labels["class"] for s in family.samples} == {shown(f"class {HOSTILE}")}
    else:
        assert any(shown(f"class {HOSTILE}") in found for found in strings(json.loads(text)))
    if form == "chrome":
        assert min(begin for _, begin, _, _ in chrome_slices(data)) == 0
        assert json.loads(text)["otherData"]["first_ns"] == str(2**60 + 1)


def test_what_does_not_count_is_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Incomplete ops and, of sums, tainted ones; a bio of two ops is one request."""
    run = RunBuilder()
    run.op([P("a", 0), P("b", 100, stage="s")], [Rq(q=10, d=20, c=90)], op_class="c")
    run.op([P("a", 0), P("b", 1000, stage="s")], op_class="c", tainted=True)
    run.op([P("a", 5)], op_class="c", complete=False)
    path = run.write(tmp_path / "run")
    ops = {}
    for form in NEW:
        exported(path, form, tmp_path)
        ops[form] = int(capfd.readouterr().err.splitlines()[-1].split()[-2])
    assert ops == {"chrome": 2, "jaeger": 2, "speedscope": 1, "openmetrics": 1, "arrow": 3, "lami": 1}
