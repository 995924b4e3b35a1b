# SPDX-License-Identifier: MIT
"""The exports, read back with the consumers' own classes, against SQL.

Perfetto's rules are checked on the decoded packets: slices of a track nest, each ends, each track is described. Its own
trace processor reads the same in test_trace_processor.py, and Jaeger's code the spans in test_jaeger.py.
"""

from __future__ import annotations

import base64
import itertools
import json
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import HOSTILE, hostile_run

from opline.talk import shown
from opline_analyses.base.colours import STATES
from opline_analyses.cli import main


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


def sums(run: Path) -> Counter[str]:
    con = duckdb.connect()
    found = con.execute(f"SELECT stage, sum(duration_ns)::BIGINT FROM '{run}/stages.parquet' GROUP BY stage").fetchall()
    return Counter({shown(stage): total for stage, total in found})


def exported(run: Path, form: str, tmp_path: Path, *more: str) -> bytes:
    assert main(["export", str(run), "--to", form, *more, "-o", str(tmp_path / "out")]) == 0
    return (tmp_path / "out").read_bytes()


def slices_of(data: bytes) -> tuple[dict[int, Any], list[tuple[int, int, int, int, Any]]]:
    """Tracks, and slices as (track, begin, end, depth, event); fails where they don't nest."""
    tracks: dict[int, Any] = {}
    events: defaultdict[int, list[Any]] = defaultdict(list)
    for packet in pb.Trace.FromString(data).packet:
        assert packet.trusted_packet_sequence_id
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        else:
            assert packet.track_event.track_uuid in tracks
            events[packet.track_event.track_uuid].append(packet)
    slices = []
    for track, packets in events.items():
        open_ones: list[Any] = []
        last = 0
        for packet in sorted(packets, key=lambda p: p.timestamp):  # stable, as a reader sorts
            assert packet.timestamp >= last
            last = packet.timestamp
            if packet.track_event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
                open_ones.append(packet)
            elif packet.track_event.type == pb.TrackEvent.TYPE_SLICE_END:
                begun = open_ones.pop()
                slices.append((track, begun.timestamp, packet.timestamp, len(open_ones), begun.track_event))
        assert not open_ones
    return tracks, slices


def test_perfetto_has_every_stage_and_request_and_what_is_in_flight(demo: Correlated, tmp_path: Path) -> None:
    data = exported(demo.path, "perfetto", tmp_path)
    tracks, slices = slices_of(data)
    kinds = {track: {a.name for a in event.debug_annotations} for track, _, _, depth, event in slices if depth == 0}
    stages: Counter[str] = Counter()
    flows: Counter[int] = Counter()
    requests = 0
    for track, begin, end, depth, event in slices:
        if depth == 0 and "kind" in kinds[track]:
            stages[event.name] += end - begin
            flows[event.flow_ids[0]] += 1
        elif depth == 0:
            requests += 1
    assert stages == sums(demo.path)
    assert flows == Counter(row["op_id"] + 1 for row in demo.rows("stages"))
    assert requests == len({row["request_id"] for row in demo.rows("links")})
    names = {descriptor.name for descriptor in tracks.values()}
    assert "ops in flight" in names
    assert any(name.startswith("device ") for name in names)
    trace = pb.Trace.FromString(data)
    (track,) = (p.track_descriptor.uuid for p in trace.packet if p.track_descriptor.name == "ops in flight")
    values = [(p.timestamp, p.track_event.counter_value) for p in trace.packet if p.track_event.track_uuid == track]
    area = sum(value * (after - at) for (at, value), (after, _) in itertools.pairwise(values))
    assert area == sum(row["latency_ns"] for row in demo.rows("ops"))
    assert values[-1][1] == 0


def test_what_threads_did_is_in_the_stages(run_of: RunOf, tmp_path: Path) -> None:
    """As slices of Perfetto and of Chrome: as many of each state and as long as SQL says."""
    run = run_of("demo-kernel")
    expected: Counter[tuple[str, int]] = Counter()
    complete = {op["op_id"] for op in run.rows("ops") if op["complete"]}
    for row in run.rows("states"):
        if row["op_id"] in complete:
            expected[STATES[f"{row['state']}_ns"][0], row["duration_ns"]] += 1
    assert len({state for state, _ in expected}) == len(STATES)
    _, slices = slices_of(exported(run.path, "perfetto", tmp_path))
    of_states = [s for s in slices if list(s[4].categories) == ["state"]]
    assert Counter((event.name, end - begin) for _, begin, end, _, event in of_states) == expected
    assert {depth for _, _, _, depth, _ in of_states} == {1}
    assert any(note.name == "woken_by" for *_, event in of_states for note in event.debug_annotations)
    found: Counter[tuple[str, int]] = Counter()
    open_ones: defaultdict[str, list[Any]] = defaultdict(list)
    for event in json.loads(exported(run.path, "chrome", tmp_path))["traceEvents"]:
        if event["ph"] == "b":
            open_ones[event["cat"] + event["id2"]["local"]].append(event)
        elif event["ph"] == "e":
            begun = open_ones[event["cat"] + event["id2"]["local"]].pop()
            assert begun["name"] == event["name"]
            if begun.get("args", {}).get("kind") == "state":
                found[begun["name"], round(1000 * event["ts"]) - round(1000 * begun["ts"])] += 1
    assert found == expected


def test_otlp_has_a_trace_per_op(demo: Correlated, tmp_path: Path) -> None:
    request = ExportTraceServiceRequest.FromString(exported(demo.path, "otlp", tmp_path))
    assert len(request.resource_spans) == 2, "in parts"
    all_spans = [span for part in request.resource_spans for span in part.scope_spans[0].spans]
    spans: defaultdict[bytes, list[Any]] = defaultdict(list)
    for span in all_spans:
        assert len(span.trace_id) == 16
        assert len(span.span_id) == 8
        spans[span.trace_id].append(span)
    assert len(spans) == len(demo.rows("ops"))
    assert len({span.span_id for span in all_spans}) == len(all_spans)
    totals: Counter[str] = Counter()
    for of_op in spans.values():
        (root,) = [s for s in of_op if not s.parent_span_id]
        stages = [s for s in of_op if any(a.key == "opline.kind" for a in s.attributes)]
        for stage in stages:
            assert stage.parent_span_id == root.span_id
            assert root.start_time_unix_nano <= stage.start_time_unix_nano
            assert stage.end_time_unix_nano <= root.end_time_unix_nano
            totals[stage.name] += stage.end_time_unix_nano - stage.start_time_unix_nano
    assert totals == sums(demo.path)


def test_folded_stacks_sum_to_the_latency(demo: Correlated, tmp_path: Path) -> None:
    lines = exported(demo.path, "folded", tmp_path).decode().splitlines()
    stacks = [line.rsplit(" ", 1) for line in lines]
    totals: Counter[str] = Counter()
    for stack, weight in stacks:
        assert len(stack.split(";")) == 3
        totals[stack.split(";")[2]] += int(weight)
    assert totals.total() == sum(row["latency_ns"] for row in demo.rows("ops"))
    assert +totals == +sums(demo.path)


def test_folded_stacks_are_of_the_chosen_ops(demo: Correlated, tmp_path: Path) -> None:
    lines = exported(demo.path, "folded", tmp_path, "--slowest", "3").decode().splitlines()
    slowest = sorted((row["latency_ns"] for row in demo.rows("ops")), reverse=True)[:3]
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == sum(slowest)


def test_otlp_is_written_in_parts(demo: Correlated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opline_analyses.export.otlp.PART_OPS", 2)
    request = ExportTraceServiceRequest.FromString(exported(demo.path, "otlp", tmp_path, "--limit", "5"))
    assert [len({s.trace_id for s in r.scope_spans[0].spans}) for r in request.resource_spans] == [2, 2, 1]
    assert len({r.resource.SerializeToString() for r in request.resource_spans}) == 1


class Taker(BaseHTTPRequestHandler):
    """A collector's port: keeps what is sent, and takes no more than ``most`` requests."""

    taken: ClassVar[list[tuple[str, str, bytes]]] = []
    most = 100
    answer: ClassVar[tuple[str, bytes]] = ("application/json", b"")
    pause_s = 0.0  # after each byte of the answer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        ok = len(self.taken) < self.most
        if ok:
            self.taken.append((self.path, self.headers["Content-Type"], body))
        self.send_response(200 if ok else 503)
        self.send_header("Content-Type", self.answer[0])
        self.end_headers()
        if not self.pause_s:
            self.wfile.write(self.answer[1])
            return
        with suppress(OSError):
            for byte in self.answer[1]:
                self.wfile.write(bytes([byte]))
                time.sleep(self.pause_s)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def port() -> Iterator[tuple[str, type[Taker]]]:
    taker = type("Own", (Taker,), {"taken": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), taker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/traces", taker
        server.shutdown()


@pytest.mark.parametrize(("form", "media"), [("otlp", "application/x-protobuf"), ("otlp-json", "application/json")])
def test_otlp_is_sent_to_a_port_in_parts(
    form: str,
    media: str,
    demo: Correlated,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    port: tuple[str, type[Taker]],
) -> None:
    url, taker = port
    monkeypatch.setattr("opline_analyses.export.otlp.PART_OPS", 2)
    whole = exported(demo.path, form, tmp_path, "--limit", "5")
    assert main(["export", str(demo.path), "--to", form, "--limit", "5", "--send", url]) == 0
    assert [(path, kind) for path, kind, _ in taker.taken] == [("/v1/traces", media)] * 3
    assert b"".join(body for *_, body in taker.taken) == whole


def test_a_collector_that_takes_no_more_is_told(
    demo: Correlated,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    port: tuple[str, type[Taker]],
) -> None:
    url, taker = port
    taker.most = 1
    monkeypatch.setattr("opline_analyses.export.otlp.PART_OPS", 2)
    assert main(["export", str(demo.path), "--to", "otlp", "--send", url]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"opline: Cannot send to {url}, after 1 request that it took: it answers 503")
    assert main(["export", str(demo.path), "--to", "otlp", "--send", "http://127.0.0.1:1/v1/traces"]) == 1
    assert "Connection refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("form", "url", "says"),
    [("otlp", "localhost:4318", "an address like"), ("jaeger", "http://localhost:1/", "--send is for --to otlp and")],
)
def test_sending_that_cannot_be(
    form: str, url: str, says: str, demo: Correlated, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(demo.path), "--to", form, "--send", url]) == 2
    assert says in capsys.readouterr().err


def rejecting(number: int, why: str) -> bytes:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans, answer.partial_success.error_message = number, why
    return bytes(answer.SerializeToString())


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ("otlp", ("application/x-protobuf", rejecting(7, "too\nold"))),
        ("otlp-json", ("application/json", b'{"partialSuccess": {"rejectedSpans": "7", "errorMessage": "too\\nold"}}')),
    ],
)
def test_spans_that_a_collector_rejects_are_said(
    form: str,
    answer: tuple[str, bytes],
    demo: Correlated,
    capsys: pytest.CaptureFixture[str],
    port: tuple[str, type[Taker]],
) -> None:
    url, taker = port
    taker.answer = answer
    assert main(["export", str(demo.path), "--to", form, "--limit", "5", "--send", url]) == 3
    assert f"opline: {url} rejected 7 spans of these 5 ops: too\\x0aold\n" in capsys.readouterr().err


def test_an_answer_has_an_end(
    demo: Correlated,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    port: tuple[str, type[Taker]],
) -> None:
    url, taker = port
    words = ["export", str(demo.path), "--to", "otlp", "--limit", "5", "--send", url]
    taker.answer = ("text/html", b"x" * (3 << 20))
    assert main(words) == 1
    assert "its answer is longer than 1048576 bytes" in capsys.readouterr().err
    monkeypatch.setattr("opline_analyses.base.post.SECONDS", 0.5)
    taker.answer, taker.pause_s = ("text/html", b"x" * 1000), 0.1  # each byte in time, all of them not
    assert main(words) == 1
    assert "no whole answer in 0.5 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://a:b/", "http://", "http://a b/", "http://a/\n", "http://\udcff/"]
)
def test_odd_addresses_are_refused(url: str, demo: Correlated, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(demo.path), "--to", "otlp", "--send", url]) == 2
    assert "--send takes an address like" in capsys.readouterr().err


def test_otlps_json_is_its_protobuf(run_of: RunOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By protobuf's own reader of JSON, but for ids, which are hexadecimal in OTLP."""
    monkeypatch.setattr("opline_analyses.export.otlp.PART_OPS", 100)
    run = run_of("demo-kernel").path
    request = ExportTraceServiceRequest.FromString(exported(run, "otlp", tmp_path))
    assert len(request.resource_spans) > 2
    found = ExportTraceServiceRequest()
    for line in exported(run, "otlp-json", tmp_path).splitlines():
        part = json.loads(line)
        for span in part["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            for key in {"traceId", "spanId", "parentSpanId"} & set(span):
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
        found.MergeFrom(ParseDict(part, ExportTraceServiceRequest()))
    assert found == request


@pytest.mark.parametrize(
    ("form", "module", "package"),
    [("perfetto", "perfetto", "perfetto"), ("otlp", "opentelemetry", "opentelemetry-proto")],
)
def test_a_format_whose_package_is_not_installed_says_which(
    form: str,
    module: str,
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Absent:
        def find_spec(self, name: str, *_: Any) -> None:
            if name.partition(".")[0] == module:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    for name in [n for n in sys.modules if n.partition(".")[0] == module or n == f"opline_analyses.export.{form}"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    run = hostile_run(tmp_path / "run")
    assert main(["export", str(run), "--to", form, "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said == [f"opline: --to {form} needs the Python package {package}: pip install 'opline[export]'"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["perfetto", "otlp", "folded"])
def test_names_of_any_kind_and_times_beyond_doubles(form: str, tmp_path: Path) -> None:
    data = exported(hostile_run(tmp_path / "run"), form, tmp_path, "--class", f"class {HOSTILE}")
    assert data
    if form == "perfetto":
        _, slices = slices_of(data)
        assert min(begin for _, begin, *_ in slices) == 2**60 + 1
    if form == "folded":
        assert all(line.rsplit(" ", 1)[1].isdigit() for line in data.decode().splitlines())


@pytest.mark.parametrize(("form", "needs"), [("perfetto", "-o FILE."), ("otlp", "-o FILE or --send URL.")])
def test_a_format_without_a_place_says_what_it_needs(
    demo: Correlated, capfd: pytest.CaptureFixture[str], form: str, needs: str
) -> None:
    assert main(["export", str(demo.path), "--to", form]) == 2
    assert capfd.readouterr().err.endswith(f"opline: --to {form} needs {needs}\n")
