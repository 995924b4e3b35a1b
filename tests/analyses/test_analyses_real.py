# SPDX-License-Identifier: MIT
"""The analyses on recorded traces, end to end: Ceph's OSD in the mail's form, and the block requests under each op."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
from tests.lib.recorded import LAB, RunOf

from opline_analyses.cli import main
from opline_analyses.ops.op_csv import FIXED

Trace = Callable[[str], Path]


@pytest.fixture
def ceph(run_of: RunOf) -> Path:
    """A run of real Ceph on memstore: one OSD, rados bench at queue depth 1."""
    return run_of("ctf-mem-qd1").path


@pytest.fixture
def lab(run_of: RunOf) -> Path:
    """A run of the traces' test application: direct writes, four workers, NVMe."""
    return run_of("app-sync-qd4-nvme").path


def out_of(capfd: pytest.CaptureFixture[str], *args: str | Path) -> str:
    assert main([str(a) for a in args]) == 0
    return capfd.readouterr().out


def test_ceph_in_the_mails_form(ceph: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """C1.6: 20 729 writes of 16 states each and one writefull; every list's deltas sum to its total."""
    text = out_of(capfd, "ops", ceph, "--style", "ceph-devel")
    states = re.findall(r"^Op Transition list for (\S+), (\d+) states$", text, re.MULTILINE)
    assert len(states) == 20730
    assert sum(n == "16" for _, n in states) == 20729
    total = 0
    for line in text.splitlines():
        if line.startswith("Op Transition"):
            total = 0
        elif line.startswith("  - [") and "ThrID" not in line:
            total += int(line[12:].split("]")[0])
        elif line.startswith("  === > Total:"):
            assert total == int(line.split()[3])


def test_ceph_classes_and_stages(ceph: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = out_of(capfd, "sql", ceph, "--csv", "SELECT class, count(*) FROM ops GROUP BY class ORDER BY class")
    assert text.splitlines()[1:] == ["write,20729", "writefull,1"]
    document = json.loads(out_of(capfd, "stages", ceph, "--json"))
    assert document["sums"] is True
    assert document["ops"] == 20730
    assert [s["stage"] for s in document["stages"]][:4] == ["dispatch", "op queue", "op start", "prepare tx"]


def test_ceph_coverage_of_rados_benchs_figure(ceph: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """C1.10, C1.11: the OSD's part of what rados bench reports; completions per second within 2 % of its own."""
    bench = Path(__file__).resolve().parents[1] / "traces" / "ctf-mem-qd1.bench.txt"
    document = json.loads(out_of(capfd, "coverage", ceph, "--client", bench, "--json"))
    assert document["client"]["numbers"]["average_latency"] == 0.000240245
    assert 0.35 < document["coverage"] < 0.55
    verdicts = {c["check"]: c["passed"] for c in document["checks"]}
    assert verdicts["IOPS"] is True
    assert verdicts["Little's law"] is True
    parts = [p["mean_ns"] for p in document["parts"] if p["level"] == 0]
    assert sum(parts) == pytest.approx(240245, rel=1e-9)


def test_lab_block_steps_under_the_op(lab: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = out_of(capfd, "ops", lab, "--op", "100")
    order = re.findall(
        r"  (client_submit|queue_enter|dequeue|io_begin|[QGIDC]|io_end|client_reply)(?:  |$)", text, re.M
    )
    assert order == ["client_submit", "queue_enter", "dequeue", "io_begin", *"QGIDC", "io_end", "client_reply"]


def test_lab_csv_and_checks(lab: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ops.csv"
    assert main(["csv", str(lab), "-o", str(path)]) == 0
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 3000
    fixed = list(rows[0]).index(FIXED[-1][0]) + 1
    for row in rows:
        assert sum(int(v) for v in list(row.values())[fixed:] if v) == int(row["latency_ns"])
    document = json.loads(out_of(capfd, "coverage", lab, "--json"))
    assert document["block_steps"]["with_q"] == document["block_steps"]["with_q_to_c"] == 3000
    (hop,) = (h for h in document["hops"] if h["hop"] == "op_to_bio")
    assert (hop["agree"], hop["differ"]) == (3000, 0)


def test_lab_graph_and_picture(lab: Path, tmp_path: Path) -> None:
    assert main(["graph", str(lab), "-o", str(tmp_path / "g.graphml")]) == 0
    graph = nx.read_graphml(tmp_path / "g.graphml")
    path = nx.shortest_path(graph, "client_submit", "client_reply")
    assert path[3:10] == ["io_begin", "Q", "G", "I", "D", "C", "io_end"]
    assert main(["plot", str(lab), "-o", str(tmp_path / "lab.svg")]) == 0
    groups = re.findall(r'<g id="ops-\d+">(.*?)</g>\s*</g>', (tmp_path / "lab.svg").read_text(), re.DOTALL)
    assert sum(group.count("<use ") for group in groups) == 3000


def test_directly_on_a_trace(trace: Trace, opline: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    folder = trace("app-sync-qd4-nvme")
    done = opline("ops", folder, "--model", LAB, "--slowest", "2")
    assert done.returncode == 0
    assert len(re.findall(r"^op \d+ ", done.stdout, re.MULTILINE)) == 2
    without = opline("stages", folder)
    assert (without.returncode, without.stdout) == (2, "")
    assert "--model" in without.stderr
