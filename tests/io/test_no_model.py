# SPDX-License-Identifier: MIT
"""What is about block requests needs no op model; what is about ops takes the one that the events leave, or asks."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.readers.test_babeltrace_text import text_of_the_op

from opline.store import chosen
from opline_analyses.cli import main

NAME = "fio-libaio-qd16-hdd-bfq"
CORPUS = Path(__file__).resolve().parents[1] / "corpus"
METADATA = """/* CTF 1.8 */
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; uint32_t stream_id; }; };
clock { name = c; freq = 1000000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := ts_t;
stream { id = 0; event.header := struct { uint16_t id; ts_t timestamp; }; };
event { id = 0; name = "strange:begin"; stream_id = 0; fields := struct { uint32_t z; }; };
"""


@pytest.mark.parametrize(
    "command", ["hist", "iostat", "heatmap", "log", "bitesize", "outliers", "burst", "requests", "btt", "losses"]
)
def test_a_trace_alone_is_enough_for_the_block_layer(
    command: str, trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(trace(NAME))]) == 0
    alone = capfd.readouterr().out
    assert main([command, str(trace(NAME)), "--model", "generic"]) == 0
    assert alone == capfd.readouterr().out != ""


@pytest.fixture
def unknown(tmp_path: Path) -> Path:
    """A trace of an application that no shipped model is for."""
    folder = tmp_path / "strange"
    folder.mkdir()
    (folder / "metadata").write_text(METADATA)
    (folder / "stream").write_bytes(struct.pack("<II", 0xC1FC1FC1, 0) + struct.pack("<HQI", 0, 5, 7))
    return folder


@pytest.mark.parametrize("arguments", [["stages"], ["why"], ["hist", "--of", "ops"], ["losses", "--of", "ops"]])
def test_ops_of_an_unknown_application_need_a_model(
    arguments: list[str], unknown: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command, *options = arguments
    assert main([command, str(unknown), *options]) == 2
    said = capfd.readouterr().err
    assert "is a trace: name one with --model" in said and "opline model infer" in said


def test_a_recording_without_a_model_says_what_proposes_one(
    unknown: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recorded = tmp_path / "run1"
    recorded.mkdir()
    (recorded / "recording.json").write_text("{}")
    (recorded / "trace").symlink_to(unknown)
    assert main(["why", str(recorded)]) == 2
    said = capfd.readouterr().err
    assert f"{recorded} is a recording without an op model" in said
    assert f"opline model infer {recorded} > mine.toml" in said and "generic" in said and "syscalls" in said


@pytest.mark.parametrize(
    ("name", "model", "event"),
    [
        (NAME, "syscalls", "syscall_entry_"),
        ("demo-ctf2", "demo", "demo:aio_read"),
        ("ctf-mem-qd1", "ceph", "osd:ms_fast_dispatch"),
    ],
)
def test_events_that_leave_one_model_choose_it(
    name: str, model: str, event: str, trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["stages", str(trace(name)), "--model", model]) == 0
    named = capfd.readouterr()
    chosen._said.clear()
    assert main(["stages", str(trace(name))]) == 0
    alone = capfd.readouterr()
    assert alone.out == named.out
    (said,) = set(alone.err.splitlines()) - set(named.err.splitlines())
    assert said.startswith(f"opline: model: {model}, as the trace has {event}")
    assert said.endswith("(--model changes it)")


REQUESTS = "an op is a request, from its first step to C"
BIOS = "an op is a request, from Q to C"
BLOCK_ONLY = {
    "reissue/perf-two-events.txt": (REQUESTS, 151),
    "passthrough/sg.ftrace": (REQUESTS, 12),
    "old-flush/fws.ftrace": (REQUESTS, 4),
    "babeltrace-text/default.txt": (BIOS, 10),
    "babeltrace-text/clock-seconds.txt": (BIOS, 10),
    "blktrace-cpu-gone/whole/sdb": (BIOS, None),
}


@pytest.mark.parametrize("name", BLOCK_ONLY)
def test_an_op_of_block_events_alone_is_a_request_and_that_is_said_once(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(CORPUS / name)
    said, count = BLOCK_ONLY[name]
    for words in (
        ["why", path], ["ops", path, "--slowest", "2"], ["stages", path], ["graph", path],
        ["report", path, "-o", str(tmp_path / "page.html")],
    ):  # fmt: skip
        chosen._said.clear()
        assert main(words) == 0
        assert [said in line for line in capfd.readouterr().err.splitlines() if "model: " in line] == [True]
    assert "<html" in (tmp_path / "page.html").read_text()[:200]
    assert main(["stages", path, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert count is None or found["ops"] == count
    for op in json.loads("[" + opened_ops(path, capfd) + "]"):
        assert op["total"] == op["latency"]


def opened_ops(path: str, capfd: pytest.CaptureFixture[str]) -> str:
    """Of each op the sum of its stages and its latency."""
    query = """SELECT sum(s.duration_ns)::BIGINT AS total, any_value(o.latency_ns) AS latency
               FROM ops o JOIN stages s USING (op_id) WHERE complete GROUP BY op_id"""
    assert main(["sql", path, query, "--json"]) == 0
    return ", ".join(json.dumps(row) for row in json.loads(capfd.readouterr().out))


def test_two_block_only_inputs_are_compared(capfd: pytest.CaptureFixture[str]) -> None:
    chosen._said.clear()
    a, b = (str(CORPUS / "babeltrace-text" / name) for name in ("default.txt", "no-delta.txt"))
    assert main(["compare", a, b]) == 0
    found = capfd.readouterr()
    assert found.err.count("model: ") == 1
    assert "D2C" in found.out or "no difference" in found.out


def test_latencies_of_requests_are_those_of_the_block_layer(capfd: pytest.CaptureFixture[str]) -> None:
    path = str(CORPUS / "reissue" / "perf-two-events.txt")
    query = """SELECT count(*) AS n FROM ops o JOIN requests r USING (op_id)
               WHERE o.latency_ns = r.complete_ns - r.first_issue_ns"""
    assert main(["sql", path, query, "--csv"]) == 0
    assert capfd.readouterr().out == "n\n151\n"


def test_a_version_of_an_application_has_its_own_model(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`--model ceph` prints the mail's list of the mail's text; so does no model at all."""
    path = tmp_path / "mail.txt"
    path.write_text(text_of_the_op())
    printed = []
    for model in (["--model", "ceph"], [], ["--model", "ceph-2014"]):
        chosen._said.clear()
        assert main(["ops", str(path), *model, "--style", "ceph-devel"]) == 0
        found = capfd.readouterr()
        printed.append(found.out)
        assert found.err.count("ceph-2014, as the trace has ioctximpl:aio_write") == (model[-1:] != ["ceph-2014"])
    assert printed[0] == printed[1] == printed[2]
    assert "Op Transition list for benchmark_object53, 18 states" in printed[0]
    assert "=== > Total: 726 us" in printed[0]
