# SPDX-License-Identifier: MIT
"""The run on disk: what is written, that it appears whole or not at all, and which run a path means."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lib.core_driver import Driver, parse_line, plan_of

from opline import losses
from opline.correlation import correlate
from opline.errors import OplineError, UsageError
from opline.folder import Folder
from opline.model import load_model
from opline.store.arrow import arrow_schema
from opline.store.run import open_or_correlate
from opline.store.schema import TABLES
from opline.store.writer import RunWriter
from opline_analyses.cli import main

NAME = "app-sync-qd4-nvme"
LAB = str(Path(__file__).parents[1] / "models" / "lab.toml")


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


WHOLE = {f"{t.name}.parquet" for t in TABLES} | {"manifest.json"}


@pytest.fixture(scope="module")
def run(trace: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a recorded trace."""
    folder = tmp_path_factory.mktemp("store") / "run"
    correlate(trace(NAME), load_model(LAB), folder, progress=False)
    return folder


@pytest.fixture
def recording(trace: Callable[[str], Path], tmp_path: Path) -> Path:
    """A folder as `opline record` leaves it, as far as the store looks at it."""
    shutil.copytree(trace(NAME), tmp_path / "rec" / "trace")
    note = {"schema": "opline-recording", "model": {"name": "lab", "argument": LAB}, "command": {"argv": ["true"]}}
    (tmp_path / "rec" / "recording.json").write_text(json.dumps(note))
    return tmp_path / "rec"


def test_a_run_is_whole_and_declared(run: Path) -> None:
    assert names(run) == WHOLE
    for table in TABLES:
        schema = pq.read_schema(run / f"{table.name}.parquet")
        assert schema.equals(arrow_schema(table), check_metadata=False)
        for column in table.columns:
            assert schema.field(column.name).metadata[b"meaning"] == column.meaning.encode()


def test_the_manifest_says_where_it_is_from(run: Path, trace: Callable[[str], Path]) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["schema"] == "opline-run"
    assert manifest["trace"] == str(trace(NAME))
    assert len(manifest["traces"]) == 2
    assert manifest["model"]["text"] == Path(LAB).read_text()
    assert manifest["core"]["events"] == 98_936
    assert manifest["took_ns"] > 0
    domains = {t["env"]["domain"]: t["clock"] for t in manifest["environment"]}
    assert domains["kernel"]["uuid"] == domains["ust"]["uuid"] != ""
    assert domains["kernel"]["offset_s"] * 10**9 + domains["kernel"]["offset_cycles"] > 10**18


def test_both_readers_say_the_same_of_the_trace(run: Path, trace: Callable[[str], Path], tmp_path: Path) -> None:
    native = json.loads((run / "manifest.json").read_text())
    bt2 = correlate(trace(NAME), load_model(LAB), tmp_path, reader="bt2", progress=False)
    assert (native["reader"], bt2["reader"]) == ("native", "bt2")
    assert bt2["reader_version"].startswith("2.")
    same = ("environment", "core", "traces", "model")
    assert {k: native[k] for k in same} == {k: bt2[k] for k in same}


def test_absent_is_null_and_texts_survive(tmp_path: Path) -> None:
    driver = Driver(plan_of(Path(LAB).read_text()))
    driver.push(parse_line("10 lab:client_submit op_id=1 oid=é\U0001f600 off=0 len=512 tid=7 pid=7 comm=app"))
    driver.push(parse_line("20 lab:client_submit op_id=2 oid=plain off=4096 len=512 tid=8 pid=7 comm=app"))
    driver.push(parse_line("90 lab:client_reply op_id=1 oid=é\U0001f600 off=0 len=512 tid=7 pid=7 comm=app"))
    driver.core.finish()
    writer = RunWriter(tmp_path / "run")
    writer.write(driver.core)
    writer.commit({"schema": "opline-run", "schema_version": 1})
    ops = duckdb.execute(
        f"SELECT object, latency_ns, end_ns IS NULL, class FROM '{tmp_path / 'run' / 'ops.parquet'}' ORDER BY object"
    )
    assert ops.fetchall() == [("plain", None, True, "write"), ("é\U0001f600", 80, False, "write")]
    assert pa.types.is_dictionary(pq.read_schema(tmp_path / "run" / "ops.parquet").field("class").type)


def test_nothing_is_left_of_a_run_that_fails(
    trace: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> dict[str, int]:
        raise KeyboardInterrupt

    monkeypatch.setattr(losses, "from_core", fail)
    with pytest.raises(KeyboardInterrupt):
        correlate(trace(NAME), load_model(LAB), tmp_path / "run", progress=False)
    assert names(tmp_path / "run") == set()


def test_a_full_disk_is_one_line(trace: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunWriter, "write", full)
    with pytest.raises(OplineError, match=r"^Cannot write the run .*: No space left on device\.$"):
        correlate(trace(NAME), load_model(LAB), tmp_path / "run", progress=False)
    assert names(tmp_path / "run") == set()


def test_an_old_run_is_not_taken_for_the_new_one(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While its tables are replaced one by one the folder is no run."""
    shutil.copytree(run, tmp_path / "run")
    writer = RunWriter(tmp_path / "run")
    replaced: list[bool] = []
    rename = Folder.rename

    def watched(self: Folder, name: str, to: str) -> None:
        replaced.append((tmp_path / "run" / "manifest.json").exists())
        rename(self, name, to)

    monkeypatch.setattr(Folder, "rename", watched)
    writer.commit({})
    assert len(replaced) == len(WHOLE)
    assert not any(replaced)
    assert names(tmp_path / "run") == WHOLE


def test_every_loss_is_declared_once() -> None:
    assert len(losses.BY_NAME) == len(losses.LOSSES)
    for loss in losses.LOSSES:
        doubtful = loss.severity in (losses.Severity.DATA_LOSS, losses.Severity.ERROR)
        assert bool(loss.words) == doubtful and len(loss.words) <= 60, f"{loss.name} in a few words"
    for loss in losses.LOSSES:
        assert loss.advice.endswith(".")
    driver = Driver(plan_of(Path(LAB).read_text()))
    driver.finish()
    assert set(losses.from_core(driver.summary(), {})) <= set(losses.BY_NAME)


def test_a_recording_is_correlated_once_and_in_place(recording: Path) -> None:
    with open_or_correlate(recording) as opened:
        assert opened.path == recording
        assert opened.manifest["recording"]["command"]["argv"] == ["true"]
        created = (recording / "manifest.json").stat().st_mtime_ns
    assert names(recording) == WHOLE | {"trace", "recording.json"}
    for model in (None, LAB):
        with open_or_correlate(recording, model) as opened:
            assert opened.path == recording
    assert (recording / "manifest.json").stat().st_mtime_ns == created


def test_another_model_leaves_the_recordings_run_alone(recording: Path) -> None:
    with open_or_correlate(recording):
        pass
    before = {p.name: p.stat().st_mtime_ns for p in recording.iterdir()}
    with open_or_correlate(recording, "generic") as opened:
        assert opened.path != recording
        assert opened.manifest["model"]["name"] == "generic"
        assert (opened.path / "ops.parquet").exists()
    assert not opened.path.exists()
    assert {p.name: p.stat().st_mtime_ns for p in recording.iterdir()} == before


def test_a_run_with_another_model_is_made_of_its_trace(run: Path) -> None:
    with open_or_correlate(run, LAB) as opened:
        assert opened.path == run
    with open_or_correlate(run, "generic") as opened:
        assert opened.path != run
        assert opened.manifest["core"]["events"] == 98_936


def test_a_run_whose_trace_is_gone(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    (tmp_path / "run" / "manifest.json").write_text(json.dumps({**manifest, "trace": str(tmp_path / "gone")}))
    with pytest.raises(OplineError, match="is gone: leave out --model"), open_or_correlate(tmp_path / "run", "generic"):
        pass


def test_a_bare_trace_wants_a_model(trace: Callable[[str], Path]) -> None:
    with pytest.raises(UsageError, match="--model"), open_or_correlate(trace(NAME)):
        pass


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"schema": "other"}', '{"schema": "opline-run", "schema_version": 99}']
)
def test_a_manifest_that_is_none(content: str, recording: Path) -> None:
    (recording / "manifest.json").write_text(content)
    with pytest.raises(OplineError, match=r"manifest\.json"), open_or_correlate(recording):
        pass


def test_a_damaged_table_is_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(run, tmp_path / "run")
    ops = tmp_path / "run" / "ops.parquet"
    ops.write_bytes(ops.read_bytes()[:-100] + struct.pack("<100s", b"PAR1"))
    assert main(["stages", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "ops.parquet" in said


def _open(path: Path, results: Any) -> None:
    with open_or_correlate(path) as opened:
        results.put(opened.manifest["created"])


def test_two_commands_at_once_share_one_run(recording: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    both = [context.Process(target=_open, args=(recording, results)) for _ in range(2)]
    for process in both:
        process.start()
    made = {results.get(timeout=60) for _ in both}
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert len(made) == 1
    assert names(recording) == WHOLE | {"trace", "recording.json"}


@pytest.mark.parametrize("reader", ["native", "bt2"])
def test_tables_leave_in_chunks_at_the_end_too(reader: str, trace: Callable[[str], Path], tmp_path: Path) -> None:
    """No op settles before the trace's end: its tables are not held in memory as a whole."""
    model = tmp_path / "late.toml"
    model.write_text("linger_ns = 3_600_000_000_000\n" + load_model("syscalls").text)
    correlate(trace("fio-psync-qd1-nvme"), load_model(str(model)), tmp_path / "run", reader=reader, progress=False)
    groups = pq.read_metadata(tmp_path / "run" / "stages.parquet")
    rows = [groups.row_group(g).num_rows for g in range(groups.num_row_groups)]
    assert sum(rows) > 100_000
    assert max(rows) < 66_000
