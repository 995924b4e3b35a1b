# SPDX-License-Identifier: MIT
"""OpenTelemetry's collector and Jaeger read what `opline export --to otlp`, `otlp-json` and `jaeger` write, with their
own code: the collector's unmarshalers and its OTLP receiver, and what Jaeger's query service makes of its traces for
its page.

The program is tests/jaeger/reads.go. What Jaeger makes of the one must be what we write as the other. Skipped where it
is not built: `./setup-env --browser` does so where Go is at hand.
"""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import hostile_run
from tests.program.test_export import exported

from opline.talk import shown
from opline_analyses.cli import main

READS = Path(__file__).resolve().parents[2] / ".venv" / "jaeger" / "reads"
#: what a collector's span has and Jaeger's need not
OF_OTLP = {("otel.scope.name", "string", "opline"), ("span.kind", "string", "internal")}

pytestmark = pytest.mark.skipif(not READS.exists(), reason="Jaeger's code is not built here: ./setup-env --browser")

Span = dict[str, Any]


def read(run: Path, form: str, tmp_path: Path, *which: str) -> dict[tuple[str, str], Span]:
    """The spans of a file by trace and span, as Jaeger has them, with their process."""
    exported(run, form, tmp_path, *which)
    done = subprocess.run([READS, form, tmp_path / "out"], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return spans_of(done.stdout)


def spans_of(text: str) -> dict[tuple[str, str], Span]:
    """The same of what the program prints."""
    spans = {}
    for trace in json.loads(text):
        assert trace["warnings"] is None
        for span in trace["spans"]:
            span["process"] = trace["processes"][span.pop("processID")]
            spans[trace["traceID"], span["spanID"]] = span
    return spans


def tags_of(span: Span) -> set[tuple[str, str, Any]]:
    return {(tag["key"], tag["type"], tag["value"]) for tag in span["tags"]}


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-kernel")


@pytest.mark.parametrize("form", ["otlp", "otlp-json"])
def test_otlp_is_read_as_the_runs_tables_have_it(form: str, demo: Correlated, tmp_path: Path) -> None:
    spans = read(demo.path, form, tmp_path)
    roots = {key: span for key, span in spans.items() if not span["references"]}
    ops = {op["op_id"]: op for op in demo.rows("ops")}
    op_of = {}
    for (trace, _), span in roots.items():
        tags = {key: value for key, _, value in tags_of(span)}
        op = ops[tags["opline.op_id"]]
        op_of[trace] = op["op_id"]
        assert (span["operationName"], tags["opline.latency_ns"]) == (shown(op["class"]), op["latency_ns"])
        assert span["duration"] == op["latency_ns"] // 1000
    assert sorted(op_of.values()) == sorted(ops)
    found = []
    for (trace, _), span in spans.items():
        tags = {key: value for key, _, value in tags_of(span)}
        if "opline.kind" in tags:
            (above,) = span["references"]
            assert (above["refType"], above["traceID"]) == ("CHILD_OF", trace)
            assert (trace, above["spanID"]) in roots
            assert span["duration"] == tags["opline.duration_ns"] // 1000
            found.append((op_of[trace], span["operationName"], tags["opline.duration_ns"]))
    expected = [(row["op_id"], shown(row["stage"]), row["duration_ns"]) for row in demo.rows("stages")]
    assert sorted(found) == sorted(expected)
    assert len(spans) - len(roots) - len(found) == len(demo.rows("links")) > 0


@pytest.mark.parametrize("form", ["otlp", "otlp-json"])
def test_what_is_sent_comes_to_the_collectors_receiver(
    form: str, demo: Correlated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opline_analyses.export.otlp.PART_OPS", 50)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    pipe = subprocess.PIPE
    with subprocess.Popen([READS, "sent", address], text=True, stdin=pipe, stdout=pipe, stderr=pipe) as receiver:
        assert receiver.stderr is not None and receiver.stderr.readline() == "ready\n"
        status = main(["export", str(demo.path), "--to", form, "--send", f"http://{address}/v1/traces"])
        printed, said = receiver.communicate()
    assert (status, receiver.returncode) == (0, 0), said
    assert spans_of(printed) == read(demo.path, form, tmp_path)


@pytest.mark.parametrize("which", [("--slowest", "50"), ()], ids=["demo", "hostile"])
def test_jaegers_json_is_what_jaeger_makes_of_otlp(which: tuple[str, ...], demo: Correlated, tmp_path: Path) -> None:
    run = demo.path if which else hostile_run(tmp_path / "run")
    theirs, ours = (read(run, form, tmp_path, *which) for form in ("otlp", "jaeger"))
    assert theirs.keys() == ours.keys()
    assert ours
    for key, span in ours.items():
        other = theirs[key]
        for field in ("operationName", "references", "startTime", "logs"):
            assert span[field] == other[field]
        assert span["process"]["serviceName"] == other["process"]["serviceName"]
        assert tags_of(other) - tags_of(span) == OF_OTLP
        assert tags_of(span) <= tags_of(other)
        assert 0 <= span["duration"] - other["duration"] <= 1  # an end is rounded down, theirs a duration
