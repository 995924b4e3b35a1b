# SPDX-License-Identifier: MIT
"""CTF 2: what LTTng-UST 2.16 and babeltrace 2.1.1 wrote, and every recorded CTF 1.8 trace rewritten as CTF 2.

Field classes that none of these has are in correlator/native/tests/test_ctf2.cpp.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.ctf2_of import convert
from tests.lib.recorded import NAMES, RunOf, model_of
from tests.readers.test_readers import plain

from opline.correlation import correlate
from opline.errors import TraceError
from opline.model import load_model
from opline.readers.babeltrace import reads_ctf_2
from opline.readers.metadata import environment
from opline.readers.trace import find_traces, is_ctf_2
from opline.store.schema import TABLES
from opline_analyses.cli import main


def events(capfd: pytest.CaptureFixture[str], path: Path, *args: str) -> list[str]:
    capfd.readouterr()
    assert main(["events", str(path), "--reader", "native", *args]) == 0
    return capfd.readouterr().out.splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_and_the_same_trace_as_ctf_2_give_the_same_tables(
    name: str, trace: Callable[[str], Path], run_of: RunOf, tmp_path: Path
) -> None:
    convert(trace(name), tmp_path / "trace")
    if (extents := trace(name).with_name(f"{name}.filefrag")).exists():
        shutil.copy(extents, tmp_path / "trace.filefrag")
    assert all(is_ctf_2(t) for t in find_traces(tmp_path / "trace"))
    manifest = correlate(tmp_path / "trace", model_of(name), tmp_path / "run", reader="native", progress=False)
    ours = run_of(name)
    for spec in TABLES:
        old, new = (plain(path / f"{spec.name}.parquet") for path in (ours.path, tmp_path / "run"))
        assert old.equals(new), spec.name
    for old, new in zip(ours.manifest["environment"], manifest["environment"], strict=True):
        assert {**new, "path": "", "clock": None} == {**old, "path": "", "clock": None}
        total = [c["offset_s"] * c["frequency"] + c["offset_cycles"] for c in (old["clock"], new["clock"])]
        assert total[0] == total[1]


def kinds_line(n: int) -> str:
    """What tests/ust_app/kinds.c emits as its event number n, in our print."""
    text = ("", "a", "seven", "eight-888", "a longer text than eight")[n % 5]
    some = text[: n % 6]
    fields = (
        f"i8 = {struct.unpack('b', struct.pack('B', -n & 255))[0]}, u64 = {0xFEDCBA9876543210 + n:#x}, hex = {n}, "
        f'net = {n}, f = {n * 0.5:g}, d = {n * 0.25:g}, text = "{text}", fixed = "{text[:8]}", _some_length = {n % 6}, '
        f'some = "{some}", numbers = (compound), _several_length = {n % 6}, several = (compound), '
        f"_netseq_length = {n % 6}, netseq = (compound), colour = {n % 12 - 3}, _odd = {n % 256}"
    )
    return f"{{ {fields} }}"


def test_lttng_ust_2_16_writes_fields_of_every_kind(
    trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    lines = events(capfd, trace("kinds-ctf2") / "lttng", "--names", "kinds:all")
    assert [line.split("}, ", 1)[1] for line in lines] == [kinds_line(n) for n in range(400)]
    assert len(events(capfd, trace("kinds-ctf2") / "lttng", "--names", "kinds:none")) == 58


def test_babeltrace_2_1_1_writes_the_same_events_in_its_own_layout(
    trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """Headers of 64-bit ids and times, stream classes with 64-bit ids: not LTTng's layout."""
    theirs = events(capfd, trace("kinds-ctf2") / "babeltrace")
    assert theirs == events(capfd, trace("kinds-ctf2") / "lttng")
    assert len(theirs) == 482


def test_a_demo_run_recorded_by_lttng_2_16(trace: Callable[[str], Path], tmp_path: Path) -> None:
    manifest = correlate(trace("demo-ctf2"), load_model("demo"), tmp_path, progress=False)
    assert (manifest["reader"], manifest["reader_reason"]) == ("native", "it recognised the trace")
    assert manifest["core"]["ops"]["complete"] == 211
    assert manifest["environment"][0]["env"]["tracer_minor"] == "16"
    ops = plain(tmp_path / "ops.parquet").to_pylist()
    assert sum(op["complete"] for op in ops) == 211
    stages = plain(tmp_path / "stages.parquet").to_pylist()
    total = sum(stage["duration_ns"] for stage in stages) + sum(op["unattributed_ns"] for op in ops)
    assert total == sum(op["latency_ns"] for op in ops)


def test_packetized_metadata_of_ctf_2(trace: Callable[[str], Path], tmp_path: Path) -> None:
    convert(trace("app-sync-2m-nvme-split"), tmp_path)
    for metadata in tmp_path.rglob("metadata"):
        text = metadata.read_bytes()
        header = struct.pack(
            "<I16sIIIBBBBB", 0x75D11D57, bytes(16), 0, (37 + len(text)) * 8, (64 + len(text)) * 8, 0, 0, 0, 2, 0
        )
        metadata.write_bytes(header + text + bytes(27))
    for folder in find_traces(tmp_path):
        assert is_ctf_2(folder)
        assert environment(folder)["clock"]["name"] == "monotonic"
    assert (
        correlate(tmp_path, model_of("app-sync-2m-nvme-split"), tmp_path / "run", progress=False)["reader"] == "native"
    )


@pytest.mark.skipif(reads_ctf_2(), reason="this babeltrace2 reads CTF 2")
def test_an_old_babeltrace_says_that_it_cannot(trace: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"babeltrace2 2\.0\.\d+ cannot read CTF 2: "):
        correlate(trace("demo-ctf2"), load_model("demo"), tmp_path, reader="bt2", progress=False)
