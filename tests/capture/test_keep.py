# SPDX-License-Identifier: MIT
"""``opline record --rotate T --keep N``: old chunks go while the recording goes on, and those that stay tell the same
as they told beside the others.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.capture.test_record import ticker
from tests.capture.test_record_faults import ticks, tracers
from tests.capture.test_rotate import bench, closed, device
from tests.lib.recorder import APP_ONLY, daemons, finish, manifest, record, start, wait_for

from opline.capture.directory import leftovers
from opline.capture.directory.removal import remove_chunk
from opline.correlation import correlate
from opline.model import load_model
from opline.readers.chunks import REMOVING, WHOLE_FROM, place_of

pytestmark = pytest.mark.live
__all__ = ["device", "ticker"]

MS = 1_000_000
NUMBERS = ("flushed_by",)  # of requests, as ids


def numbers(run: Path) -> list[int]:
    return [place_of(chunk)[1] for chunk in closed(run)]


def link_tree(source: Path, target: Path) -> None:
    """The same files once more, also where they are in a folder that gets another name meanwhile."""
    subprocess.run(["cp", "-alnT", str(source), str(target)], check=False, capture_output=True)


def rows(run: Path, table: str, since_ns: int) -> list[dict[str, Any]]:
    """Of a run's table, those of ops, or requests, that begin later; without numbers that begin anew in each run."""
    begins = {op["op_id"]: op["begin_ns"] for op in pq.read_table(run / "ops.parquet").to_pylist()}
    found = []
    for row in pq.read_table(run / f"{table}.parquet").to_pylist():
        begin_ns = row["queue_ns"] if table == "requests" else begins.get(row["op_id"])
        if begin_ns is not None and begin_ns >= since_ns:
            found.append(
                {name: value for name, value in row.items() if not name.endswith("_id") and name not in NUMBERS}
            )
    return sorted(found, key=repr)


def test_what_is_kept_tells_the_same_as_beside_what_was_removed(runtime: Path, tmp_path: Path, device: Path) -> None:
    """The chunks are linked into a second recording before they are removed: ops of later times have the same rows."""
    run, whole = tmp_path / "run", tmp_path / "whole"
    process = start(
        "-o", run, "--rotate", 1, "--keep", 2, "--model", "demo", "--sessiond", "private", "--",
        *bench(tmp_path, device, "--ops 8000 --rate 1000"),
    )  # fmt: skip
    (whole / "trace/archives").mkdir(parents=True)

    def linked() -> bool:
        for chunk in closed(run):
            link_tree(chunk, whole / "trace/archives" / chunk.name)  # the first one gets its parts a little later
        return process.poll() is not None

    wait_for(linked)
    done = finish(process)
    assert done.returncode == 0, done.stderr
    told = manifest(run)["removed"]
    assert told["chunks"] >= 3 and manifest(run)["state"] == "complete" and not daemons(runtime)
    assert numbers(run)[0] == told["through"] + 1 and len(numbers(run)) <= 3
    for file in (*run.glob("*.json"), *run.glob("trace/*")):
        if file.name != "archives":
            link_tree(file, whole / file.relative_to(run))
    (whole / "recording.json").unlink()
    (whole / "recording.json").write_text(json.dumps(manifest(run) | {"removed": None}))
    model = load_model("demo")
    one = correlate(whole, model, tmp_path / "one", progress=False)
    rest = correlate(run, model, tmp_path / "rest", progress=False)
    assert rest["losses"]["chunks_removed"] == told["chunks"] and "chunks_removed" not in one["losses"]
    for loss in ("discarded_packets", "discarded_events", "events_missing", "streams_missing", "threads_unknown"):
        assert loss not in one["losses"] and loss not in rest["losses"]
    for table in ("ops", "transitions", "stages", "requests", "waits"):
        of_one, of_rest = (rows(tmp_path / name, table, told["until_ns"] + 200 * MS) for name in ("one", "rest"))
        assert of_one == of_rest and len(of_one) > 100, table
    ops = pq.read_table(tmp_path / "rest/ops.parquet", columns=["begin_ns", "tainted", "complete"]).to_pylist()
    assert all(op["tainted"] or not op["complete"] for op in ops if op["begin_ns"] < told["until_ns"])
    assert sum(op["complete"] and not op["tainted"] for op in ops) > 1000


def test_each_chunk_by_itself_knows_its_threads_and_programs(runtime: Path, tmp_path: Path, device: Path) -> None:
    run = tmp_path / "run"
    done = record(
        "-o", run, "--rotate", 1, "--keep", 3, "--model", "demo", "--sessiond", "private", "--",
        *bench(tmp_path, device, "--ops 6000 --rate 1000"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert manifest(run)["collector"]["parts_untold"] == 0
    chunk = closed(run)[1]
    assert (chunk / "block" / WHOLE_FROM).exists() and (chunk / "requests" / WHOLE_FROM).exists()
    correlate(chunk, load_model("demo"), tmp_path / "alone", progress=False)
    requests = pq.read_table(tmp_path / "alone/requests.parquet").to_pylist()
    threads = [(r[f"{step}_tid"], r[f"{step}_comm"]) for r in requests for step in ("queue", "issue")]
    unnamed = [tid for tid, name in threads if tid is not None and not name]
    assert len(requests) > 100 and unnamed == [] and sum(name is not None for _, name in threads) > 100
    first = min(r["queue_ns"] for r in requests if r["queue_ns"])
    early = [r for r in requests if r["queue_ns"] and r["queue_ns"] < first + 20 * MS]
    assert early and all(r["queue_comm"] for r in early), "BPF has told who these threads are in an earlier chunk"


@pytest.mark.parametrize("kept", ["2", "2500ms"])
def test_no_more_chunks_stay_than_are_kept(ticker: Path, runtime: Path, tmp_path: Path, kept: str) -> None:
    """Also what lies in the newest of them is whole: each event of the program is there, once."""
    run = tmp_path / "run"
    process = start("-o", run, "--rotate", 1, "--keep", kept, *APP_ONLY, "--", ticker, 7001, 1_000)
    seen: list[int] = []

    def over() -> bool:
        seen.append(len(closed(run)))
        return process.poll() is not None

    wait_for(over)
    done = finish(process)
    assert done.returncode == 0, done.stderr
    assert max(seen) <= (2 if kept == "2" else 3) + 1 and numbers(run)[0] > 0
    found = [number for _at_ns, number in ticks(run)]
    assert found == list(range(found[0], 7001)) and found[0] > 0
    clocks = [int(row.split(",")[0]) for row in (run / "clocks.csv").read_text().splitlines()[1:]]
    assert clocks[0] >= manifest(run)["removed"]["until_ns"] and clocks == sorted(clocks)
    assert not (run / REMOVING).exists()


def test_fewer_chunks_than_are_kept_all_stay(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert record("-o", run, "--rotate", 1, "--keep", 8, *APP_ONLY, "--", ticker, 5001, 1_000).returncode == 0
    assert manifest(run)["removed"] is None and numbers(run)[0] == 0 and len(numbers(run)) >= 4
    assert [number for _at_ns, number in ticks(run)] == list(range(5001))


def test_a_recorder_that_is_killed_leaves_whole_chunks(
    ticker: Path, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, log = tmp_path / "run", tmp_path / "ticks"
    monkeypatch.setenv("TICKER_LOG", str(log))
    process = start("-o", run, "--rotate", 1, "--keep", 1, *APP_ONLY, "--", ticker, 20_001, 1_000)
    wait_for(lambda: (run / "recording.json").exists() and (manifest(run).get("removed") or {}).get("chunks", 0) >= 2)
    pids = tracers(runtime)
    process.kill()
    finish(process)
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids.values()), 20)
    leftovers.sweep()
    assert manifest(run)["removed"]["through"] < numbers(run)[0] and not (run / REMOVING).exists()
    seen = [number for _at_ns, number in ticks(run)]
    assert seen == list(range(seen[0], seen[0] + len(seen))) and seen[0] > 0 and len(seen) > 500


def test_files_of_a_user_in_a_chunk_stay(tmp_path: Path) -> None:
    chunk, other = tmp_path / "chunk", tmp_path / "other"
    (chunk / "ust/uid/0/64-bit/index").mkdir(parents=True)
    (chunk / "block/index").mkdir(parents=True)
    other.mkdir()
    (other / "block_0").touch()
    for name in ("ust/uid/0/64-bit/app_0", "ust/uid/0/64-bit/index/app_0.idx", "block/metadata", "block/.whole_from"):
        (chunk / name).touch()
    (chunk / "block/notes.txt").write_text("mine")
    (chunk / "block/link").symlink_to(other)
    assert not remove_chunk(chunk)
    left = {str(path.relative_to(chunk)) for path in chunk.rglob("*")}
    assert left == {"block", "block/notes.txt", "block/link"} and (other / "block_0").exists()
    (chunk / "block/notes.txt").unlink()
    (chunk / "block/link").unlink()
    assert remove_chunk(chunk) and not chunk.exists()


@pytest.mark.parametrize(
    "given", [["--keep", "3"], ["--rotate", "1", "--keep", "0"], ["--rotate", "1", "--keep", "0s"]]
)
def test_keep_without_chunks_is_refused(tmp_path: Path, given: list[str]) -> None:
    done = record("-o", tmp_path / "run", *given, "--no-block", "--", "true")
    assert done.returncode == 2 and "--keep" in done.stderr and not (tmp_path / "run").exists()


def test_a_wrong_time_is_named_by_its_option(tmp_path: Path) -> None:
    done = record("-o", tmp_path / "run", "--rotate", "soon", "--", "true")
    assert done.returncode == 2 and "--rotate soon" in done.stderr


def test_the_removed_time_of_a_manifest_must_be_one(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert record("-o", run, *APP_ONLY, "--", ticker, 101, 1_000).returncode == 0
    (run / "recording.json").write_text(json.dumps(manifest(run) | {"removed": {"chunks": "many"}}))
    argv = [sys.executable, "-m", "opline_analyses", "losses", str(run)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "recording.json" in done.stderr and "Traceback" not in done.stderr
