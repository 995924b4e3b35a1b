# SPDX-License-Identifier: MIT
"""A joined run for other tools: a group of tracks per host, the bound of each span between two hosts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from opline_analyses.cli import main


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded client and server, joined."""
    folder = tmp_path_factory.mktemp("recorded")
    subprocess.run(["tar", "-xJf", Path(__file__).with_name("two-hosts-block.tar.xz"), "-C", folder], check=True)
    given, out = folder / "two-hosts-block", folder / "cluster"
    assert main(["join", "-o", str(out), f"client={given}/client", f"server={given}/server"]) == 0
    return out


def test_perfetto_has_a_group_of_tracks_for_each_host(cluster: Path, tmp_path: Path) -> None:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    out = tmp_path / "trace.pb"
    assert main(["export", str(cluster), "--to", "perfetto", "-o", str(out)]) == 0
    trace = protos.Trace.FromString(out.read_bytes())
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}

    def top(uuid: int) -> str:
        while tracks[uuid].parent_uuid:
            uuid = tracks[uuid].parent_uuid
        return str(tracks[uuid].name)

    begins = [p.track_event for p in trace.packet if p.HasField("track_event") and p.track_event.type == 1]  # slices
    of_stage: dict[str, set[str]] = {}
    for event in begins:
        of_stage.setdefault(event.name, set()).add(top(event.track_uuid))
    assert of_stage["client queue"] == {"host client"}
    assert of_stage["commit queue"] == of_stage["request in socket"] == {"host server"}
    assert of_stage["reply in socket"] == {"host client"}
    (device,) = [t for t in tracks.values() if t.name == "device server:vda"]
    assert top(device.uuid) == "host server"
    assert not [t for t in tracks.values() if t.name == "device client:vda"]


def test_otlp_has_the_bound_of_spans_between_hosts_and_of_no_other(cluster: Path, tmp_path: Path) -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    out = tmp_path / "spans.pb"
    assert main(["export", str(cluster), "--to", "otlp", "-o", str(out)]) == 0
    request = service.ExportTraceServiceRequest.FromString(out.read_bytes())
    bounds: dict[str, list[int]] = {}
    hosts: dict[str, set[str]] = {}
    for span in (s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans):
        notes = {a.key: a.value for a in span.attributes}
        if "opline.bound_ns" in notes:
            bounds.setdefault(span.name, []).append(notes["opline.bound_ns"].int_value)
        if "host.name" in notes:
            hosts.setdefault(span.name, set()).add(notes["host.name"].string_value)
    assert set(bounds) == {"request in socket", "reply in socket"}
    known = sorted(pq.read_table(cluster / "hops.parquet").column("bound_ns").to_pylist())
    assert [sorted(found) for found in bounds.values()] == [known, known]
    assert (hosts["client queue"], hosts["commit queue"], hosts["D2C"]) == ({"client"}, {"server"}, {"server"})
