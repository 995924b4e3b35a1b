# SPDX-License-Identifier: MIT
"""``opline record --rotate``: closed chunks are read while the recording goes on, and all chunks are one trace."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.capture.test_record import ticker
from tests.capture.test_record_faults import ticks, tracers
from tests.lib.block_capture import loop_device
from tests.lib.recorder import APP_ONLY, ROOT, daemons, finish, manifest, record, start, wait_for
from tests.readers.test_readers import plain

from opline.capture.directory import leftovers
from opline.correlation import correlate, gaps_in
from opline.model import load_model
from opline.readers.chunks import place_of
from opline.readers.trace import find_traces
from opline.store.schema import TABLES

pytestmark = pytest.mark.live
__all__ = ["ticker"]

STORE = ROOT / "examples/demo-store/build"


@pytest.fixture
def device() -> Iterator[Path]:
    with loop_device() as path:
        yield Path(path)


def bench(tmp_path: Path, device: Path, options: str) -> list[str]:
    """A command that writes to a store of its own, four ops in flight."""
    where = f"{STORE}/demo-server --socket {tmp_path}/socket --device {device}"
    client = f"{STORE}/demo-bench --socket {tmp_path}/socket --qd 4 --objects 4 {options}"
    return ["sh", "-c", f"{where} & until test -S {tmp_path}/socket; do sleep 0.05; done; {client}; kill $!"]


def rotated(tmp_path: Path, device: Path, ops: int) -> Path:
    """A recording in chunks of a second, of so many ops that come 1000 a second."""
    run = tmp_path / "run"
    done = record(
        "-o", run, "--rotate", 1, "--model", "demo", "--sessiond", "private", "--",
        *bench(tmp_path, device, f"--ops {ops} --rate 1000"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return run


def closed(run: Path) -> list[Path]:
    return sorted((run / "trace/archives").glob("*"), key=lambda p: place_of(p)[1])


def joined(run: Path, out: Path) -> Path:
    """The trace as it were without rotation: the files of a stream's chunks one behind the other."""
    for trace in map(Path, find_traces(run)):
        parts, _ = place_of(trace)
        folder = out / "trace" / Path("/".join(parts)).relative_to(run / "trace")
        folder.mkdir(parents=True, exist_ok=True)
        for file in (p for p in trace.iterdir() if p.is_file()):
            with (folder / file.name).open("wb" if file.name == "metadata" else "ab") as target:
                target.write(file.read_bytes())
    for name in ("recording.json", "extents.json", "stacks.json"):
        if (run / name).exists():
            shutil.copyfile(run / name, out / name)
    return out


def packets(part: Path) -> list[tuple[int, int, int]]:
    """(number, begin, end in ns) of the packets of the one stream of a collector's trace."""
    (index,) = (part / "index").glob("*.idx")
    records = struct.iter_unpack(">9Q", index.read_bytes()[16:])
    return [(record[8], record[3], record[4]) for record in records]


def ops(run: Path) -> list[dict[str, Any]]:
    columns = ["begin_ns", "end_ns", "latency_ns", "complete", "tainted"]
    return list(pq.read_table(run / "ops.parquet", columns=columns).to_pylist())


def requests(run: Path, until_ns: int) -> list[dict[str, Any]]:
    """Those that are over by then."""
    columns = ["dev", "sector", "queue_ns", "complete_ns"]
    rows = pq.read_table(run / "requests.parquet").to_pylist()
    return [
        {name: row[name] for name in columns} for row in rows if row["complete_ns"] and row["complete_ns"] < until_ns
    ]


def test_a_rotated_recording_gives_the_tables_of_one_without(runtime: Path, tmp_path: Path, device: Path) -> None:
    """Ops across a chunk's edge are whole: all that the client made are."""
    run = rotated(tmp_path, device, 3000)
    document = manifest(run)
    assert document["state"] == "complete" and document["gaps"] == []
    app = next(channel for channel in document["channels"] if channel["name"] == "app")
    assert (app["discarded_count"], app["lost_packet_count"]) == (0, 0)
    assert len(closed(run)) >= 2 and not daemons(runtime)
    model = load_model("demo")
    chunked = correlate(run, model, tmp_path / "chunked", progress=False)
    whole = correlate(joined(run, tmp_path / "whole"), model, tmp_path / "one", progress=False)
    assert chunked["core"]["ops"] == whole["core"]["ops"] and chunked["losses"] == whole["losses"]
    assert len(chunked["traces"]) > len(whole["traces"])
    for table in TABLES:
        one, other = (plain(tmp_path / name / f"{table.name}.parquet") for name in ("chunked", "one"))
        assert one.equals(other), table.name
    whole_ops = [op for op in ops(tmp_path / "chunked") if op["complete"] and not op["tainted"]]
    assert len(whole_ops) == 3000


def test_each_chunk_has_its_part_of_the_collectors_streams(runtime: Path, tmp_path: Path, device: Path) -> None:
    """Packets are numbered on, an event is in one of the parts, and the first chunk has one, too."""
    run = rotated(tmp_path, device, 4000)
    assert manifest(run)["collector"]["parts_failed"] == 0
    chunks = [chunk for chunk in closed(run) if (chunk / "block").exists()]  # LTTng may close one when the others end
    assert len(chunks) >= 3 and [place_of(chunk)[1] for chunk in chunks] == list(range(len(chunks)))
    assert len(closed(run)) - len(chunks) <= 1
    for name in ("block", "requests"):
        parts = [packets(chunk / name) for chunk in chunks]
        assert all(parts) and not (run / "trace" / name).exists()
        told = [packet for part in parts for packet in part]
        assert [number for number, _, _ in told] == list(range(len(told)))
        assert all(one[2] <= other[1] for one, other in pairwise(told))


def app_indexes(chunk: Path) -> list[Path]:
    return list((chunk / "ust").rglob("app_*.idx"))


@pytest.mark.parametrize("block", [True, False], ids=["block", "application"])
def test_closed_chunks_are_read_while_the_recording_goes_on(
    runtime: Path, tmp_path: Path, device: Path, block: bool
) -> None:
    """What they say of the time before the last edge is what the whole recording says of it."""
    run = tmp_path / "run"
    process = start(
        "-o", run, "--rotate", 1, "--model", "demo", *([] if block else ["--no-block"]), "--sessiond", "private", "--",
        *bench(tmp_path, device, "--seconds 60 --rate 1000"),
    )  # fmt: skip
    wait_for(lambda: sum(bool(app_indexes(chunk)) for chunk in closed(run)) >= 6)  # some are older than the command
    found = correlate(run, load_model("demo"), tmp_path / "early", progress=False)
    assert any(place_of(p)[1] >= 0 for p in (run / "trace").iterdir())  # LTTng writes the next one
    os.killpg(process.pid, signal.SIGINT)
    finish(process)
    assert found["losses"]["recording_unfinished"] == 1
    (gap,) = found["gaps"]
    correlate(run, load_model("demo"), tmp_path / "late", progress=False)
    early, late = ([op for op in ops(tmp_path / name) if op["end_ns"] and op["end_ns"] < gap["from_ns"]]
                   for name in ("early", "late"))  # fmt: skip
    assert early == late and len(early) > 100
    requests_early, requests_late = (requests(tmp_path / name, gap["from_ns"]) for name in ("early", "late"))
    assert requests_early == requests_late and (len(requests_early) > 100) == block
    assert all(op["complete"] and not op["tainted"] for op in early)
    assert all("/archives/" in trace for trace in found["traces"])


@pytest.mark.parametrize("everybody", [False, True], ids=["consumer daemon", "everybody"])
def test_what_lay_in_the_buffers_of_a_rotated_recording_is_saved(
    ticker: Path, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, everybody: bool
) -> None:
    """Each event up to the kill is there, once."""
    run, log = tmp_path / "run", tmp_path / "ticks"
    monkeypatch.setenv("TICKER_LOG", str(log))
    process = start("-o", run, "--rotate", 1, *APP_ONLY, "--", ticker, 4001, 1_000)
    wait_for(lambda: len(closed(run)) >= 2)
    pids = tracers(runtime)
    before_ns = time.monotonic_ns()
    if everybody:
        os.kill(process.pid, signal.SIGSTOP)
    for victim in pids if everybody else ["consumerd"]:
        os.kill(pids[victim], signal.SIGKILL)
    if everybody:
        process.kill()
    finish(process)
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids.values()), 10)
    leftovers.sweep()
    emitted = [int(line) for line in log.read_text().split()]
    seen = [number for _at_ns, number in ticks(run)]
    assert seen == sorted(set(seen)) and len(seen) > 1000
    gaps = gaps_in(run, manifest(run))
    from_ns = before_ns if everybody else min(gap.from_ns or 0 for gap in gaps)
    known = {number for number, at_ns in enumerate(emitted) if at_ns < from_ns}
    assert known <= set(seen)
