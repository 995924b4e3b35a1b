# SPDX-License-Identifier: MIT
"""``complete`` is earned: what a recording promises is proved by its sources, or the recording says what is missing."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.capture.test_record import ticker
from tests.lib.block_capture import dev_of, loop_device
from tests.lib.recorder import APP_ONLY, UNSEEN, manifest, record, start, wait_for

from opline.capture.directory.promises import Promise
from opline.capture.directory.recording import ChannelNote, Command, Recording
from opline.capture.lttng import recipe
from opline.capture.lttng.ctfindex import ChannelIndex
from opline.capture.machine import processes
from opline.capture.machine.machine import Host, sample_clocks
from opline.capture.machine.signals import Signals
from opline.capture.recorder import proof
from opline.capture.recorder.options import Options
from opline.capture.recorder.sources import Sources
from opline.capture.sources import blocksource
from opline.capture.sources.blocksource import BlockSource
from opline_analyses.cli import main

pytestmark = pytest.mark.live
__all__ = ["ticker"]

APP = ["--events", "opltest:*", "--sessiond", "private"]
NO_BPF = ["--bounding-set=-sys_admin,-bpf,-perfmon", "--inh-caps=-sys_admin,-bpf,-perfmon"]
MODEL = """
[keys]
op = "n"
[points]
tick = { event = "opltest:tick", role = "begin", key = "op", class = "tick" }
tock = { event = "opltest:tock", role = "end", key = "op" }
"""
BEGIN_NS, END_NS = 1_000_000_000, 9_000_000_000

needs_bpf = pytest.mark.skipif(blocksource.lacking() is not None, reason="needs the BPF collector")


def promises(run: Path) -> dict[str, dict[str, Any]]:
    """By what is promised."""
    return {promise["what"]: promise for promise in manifest(run)["promises"]}


def max_loss_status(run: Path, tmp_path: Path) -> int:
    """What `opline losses --max-loss 0` ends with."""
    model = tmp_path / "ticks.toml"
    model.write_text(MODEL)
    return main(["losses", str(run), "--model", str(model), "--max-loss", "0"])


def confined(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A recorder of root's without the capabilities that BPF needs, as in a container."""
    argv = ["setpriv", *NO_BPF, sys.executable, "-m", "opline_analyses", "record", *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


@needs_bpf
def test_a_recording_that_got_all_that_it_promised_says_when(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    done = record("-o", tmp_path / "run", *APP, "--", ticker, 500, 100)
    assert done.returncode == 0, done.stderr
    command, found = manifest(tmp_path / "run")["command"], promises(tmp_path / "run")
    kinds = ("application_events", "block_events", "thread_states", "file_maps", "clock")
    assert found.keys() - {"system_calls"} == set(kinds)  # calls: where no model says that they are not wanted
    assert all(promise["kept"] is True or promise["why"] == UNSEEN for promise in found.values()), found
    for what in ("application_events", "block_events", "thread_states"):
        assert found[what]["end_ns"] >= command["end_monotonic_ns"]
    assert found["block_events"]["begin_ns"] <= command["begin_monotonic_ns"]
    assert found["application_events"]["recorded"] == 500 and found["application_events"]["lost"] == 0
    assert found["thread_states"]["first_ns"] <= found["thread_states"]["last_ns"]


@needs_bpf
def test_block_events_that_are_not_permitted_make_a_recording_incomplete(
    ticker: Path, runtime: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    done = confined("-o", run, *APP, "--", ticker, 100)
    assert done.returncode == 3 and "not whole: no block events: BPF is not permitted here" in done.stderr
    assert manifest(run)["state"] == "incomplete" and manifest(run)["block_source"] == "none"
    found = promises(run)
    assert found["block_events"]["kept"] is False and found["application_events"]["kept"] is True
    assert max_loss_status(run, tmp_path) == 3
    assert "all programs of the machine" not in done.stderr  # nothing tells whose the ops are: nothing is said
    capsys.readouterr()
    assert main(["sql", str(run), "--model", str(tmp_path / "ticks.toml"), "SELECT count(population) FROM ops"]) == 0
    assert capsys.readouterr().out.split()[-1] == "0"
    assert (
        main(["sql", str(run), "--model", str(tmp_path / "ticks.toml"), "SELECT count(*) FROM ops WHERE tainted"]) == 0
    )
    assert capsys.readouterr().out.split()[-1] == "0"  # what was recorded is not doubtful


USER_NAMESPACE = ["unshare", "--user", "--map-root-user"]


@needs_bpf
@pytest.mark.skipif(
    subprocess.run([*USER_NAMESPACE, "true"], capture_output=True, check=False).returncode != 0,
    reason="user namespaces are forbidden here",
)
def test_root_in_a_user_namespace_records_applications_and_says_what_is_missing(
    ticker: Path, runtime: Path, tmp_path: Path
) -> None:
    """There the group that LTTng's daemon is for may have no number."""
    program = [*USER_NAMESPACE, sys.executable, "-m", "opline_analyses", "record", "-o"]
    argv = [*program, str(tmp_path / "run"), *APP, "--", str(ticker), "100"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3 and "not whole: no block events: BPF is not permitted here" in done.stderr
    assert promises(tmp_path / "run")["application_events"]["recorded"] == 100
    argv = [*program, str(tmp_path / "none"), "--", "touch", str(tmp_path / "ran")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and done.stderr.startswith("opline: Nothing to record") and not list(runtime.iterdir())
    assert not (tmp_path / "ran").exists()


@needs_bpf
def test_where_all_that_was_asked_for_is_missing_the_command_does_not_start(runtime: Path, tmp_path: Path) -> None:
    done = confined("-o", tmp_path / "run", "--model", "syscalls", "--", "touch", tmp_path / "ran")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and done.stderr.startswith("opline: Nothing to record")
    assert "BPF is not permitted" in done.stderr
    assert not (tmp_path / "ran").exists() and not (tmp_path / "run").exists() and not list(runtime.iterdir())


ENDED_EARLY = """
import json, os, pathlib, signal, sys
(state,) = pathlib.Path(os.environ["OPLINE_RUNTIME_DIR"]).glob("*/state.json")
pid = json.loads(state.read_text())["processes"][sys.argv[1]][0]
os.kill(pid, signal.SIGTERM)
for n in range(200):
    with open(sys.argv[2], "wb") as file:
        file.write(bytes(4096))
        os.fsync(file.fileno())
"""


@needs_bpf
@pytest.mark.parametrize(
    ("role", "loss"), [("collector", "collector_died"), ("openfiles", "maps_missing")], ids=["block events", "maps"]
)
def test_a_source_that_is_told_to_end_before_the_command_does_is_noticed(
    runtime: Path, tmp_path: Path, role: str, loss: str
) -> None:
    """It ends in order, with a report; but before the command, and lacks the last writes."""
    run = tmp_path / "run"
    command = [sys.executable, "-c", ENDED_EARLY, role, tmp_path / "file"]
    done = record("-o", run, "--model", "syscalls", "--", *command)
    assert done.returncode == 3 and "the recording is not whole: no " in done.stderr, done.stderr
    document = manifest(run)
    (gap,) = document["gaps"]
    assert document["state"] == "incomplete" and gap["loss"] == loss
    assert gap["from_ns"] is not None and gap["from_ns"] < document["command"]["end_monotonic_ns"]
    assert main(["losses", str(run), "--max-loss", "0"]) == 3


KILLED_AMIDST = """
import json, mmap, os, pathlib, signal, sys, time
(state,) = pathlib.Path(os.environ["OPLINE_RUNTIME_DIR"]).glob("*/state.json")
collector = json.loads(state.read_text())["processes"]["collector"][0]
disk = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
ends_ns = []
for n in range(1500):
    os.pwrite(disk, page, 4096 * n)
    ends_ns.append(time.monotonic_ns())
    time.sleep(0.001)
    if n == 900:
        os.kill(collector, signal.SIGKILL)
pathlib.Path(sys.argv[2]).write_text(json.dumps(ends_ns))
"""


@needs_bpf
@pytest.mark.parametrize("names", ["syscall:*", "syscall:*,block:*"], ids=["records", "single events"])
def test_what_a_killed_collector_had_not_written_is_in_the_gap(
    runtime: Path, tmp_path: Path, names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run, truth = tmp_path / "run", tmp_path / "ends.json"
    with loop_device() as device:
        command = [sys.executable, "-c", KILLED_AMIDST, device, truth]
        done = record("-o", run, "--events", names, "--sessiond", "private", "--", *command)
        dev = dev_of(device)
    assert done.returncode == 3, done.stderr
    (gap,) = manifest(run)["gaps"]
    assert gap["loss"] == "collector_died"
    before = [end for end in json.loads(truth.read_text()) if end <= gap["from_ns"]]
    assert 0 < len(before) <= 901
    query = (
        f"SELECT count(*) FILTER (complete_ns <= {gap['from_ns']}) AS n, "
        "count(*) FILTER (complete_ns IS NULL) AS unseen "
        f"FROM requests WHERE dev = {dev} AND issue_ns <= {gap['from_ns']}"
    )
    capsys.readouterr()
    assert main(["sql", str(run), query, "--model", "syscalls", "--all-programs", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    # One write may be complete and not have returned. Where the kernel ran no program for a completion, the request is
    # there without it.
    assert len(before) - told["unseen"] <= told["n"] <= len(before) + 1
    assert told["unseen"] <= 2


@needs_bpf
def test_a_collector_that_is_killed_before_it_is_ready_is_said(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start("-o", run, *APP, "--", ticker, 100)

    def collector() -> int | None:
        for state in runtime.glob("*/state.json"):
            found = json.loads(state.read_text())["processes"].get("collector")
            return found and int(found[0])
        return None

    wait_for(collector)
    os.kill(collector() or 0, signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    assert out == "ticks 100\n" and process.returncode == 3, err
    assert manifest(run)["state"] == "incomplete" and promises(run)["block_events"]["kept"] is False
    assert "no block events" in err


def test_a_collector_that_ends_just_before_the_exec_does_not_end_the_command() -> None:
    """Its end of the socket is closed when the command's process says who it is."""
    source = BlockSource(states=True)
    assert source._theirs is not None
    source._theirs.close()
    child = processes.start(["true"], last=source.announce)
    assert child.wait(20) == 0
    assert source._ours is not None
    source._ours.close()


def test_a_recording_that_lost_more_than_a_thousandth_ends_with_3(
    ticker: Path, runtime: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And `opline losses` says the same number as the recorder."""
    run = tmp_path / "run"
    done = record("-o", run, *APP_ONLY, "--subbuf-size", "4K", "--subbufs", "2", "--", ticker, 200_000)
    found = promises(run)["application_events"]
    assert found["recorded"] + found["lost"] == 200_000 and found["lost"] > 200
    assert done.returncode == 3 and manifest(run)["state"] == "incomplete"
    said = re.search(r"([\d,]+) of 200,000 events of the application were lost", done.stderr)
    assert said is not None and int(said[1].replace(",", "")) == found["lost"]
    (tmp_path / "ticks.toml").write_text(MODEL)
    assert main(["losses", str(run), "--model", str(tmp_path / "ticks.toml"), "--json"]) == 0
    losses = {loss["loss"]: loss["count"] for loss in json.loads(capsys.readouterr().out)["losses"]}
    assert losses.get("discarded_events", 0) + losses.get("discarded_at_end", 0) == found["lost"]


# ---- proofs, one by one ----------------------------------------------------------------------------------------------


def recording(**changes: Any) -> Recording:
    """Block events through BPF, as it should be at the end."""
    channel = ChannelNote("block", "ust", [], [], [], 1, 1, event_count=110, discarded_count=0)
    report = {"begin_ns": BEGIN_NS - 1, "end_ns": END_NS + 1, "sent": {"a": 60, "off_cpu": 40}, "watermarks": 10}
    note = Recording(
        command=Command(["true"], "/", exit_code=0, begin_monotonic_ns=BEGIN_NS, end_monotonic_ns=END_NS),
        host=Host("h", "6.1", "Linux", "x86_64", 2, "b", 0, True),
        versions={},
        clocks_before=sample_clocks(),
        session="s",
        sessiond="private",
        block_source="bpf",
        channels=[channel],
        promises=[Promise("block_events", "bpf"), Promise("thread_states", "bpf")],
        collector=report,
    )
    return dataclasses.replace(note, **changes)


def judged(note: Recording, indexes: dict[tuple[str, str], ChannelIndex] | None = None) -> list[str]:
    """The losses of the gaps that the proofs found."""
    proof.prove(note, indexes or {})
    return [gap.loss for gap in note.gaps]


def test_a_collector_with_all_its_proofs_is_believed() -> None:
    note = recording()
    assert judged(note) == [] and note.failed() == []
    assert [(p.kept, p.recorded, p.lost) for p in note.promises] == [(True, 60, 0), (True, 40, 0)]


@pytest.mark.parametrize(("unseen", "why"), [(1, []), (2, ["more than 0.1 % of the completions were not seen"])])
def test_too_many_completions_that_no_program_saw_are_a_broken_promise(unseen: int, why: list[str]) -> None:
    """As `opline losses` has it: one in a thousand is no loss."""
    note = recording()
    assert note.collector is not None
    note.collector["requests"] = {"unseen": unseen, "records": 999}
    assert judged(note) == [] and note.failed() == why
    assert [p.kept for p in note.promises] == [not why, True]


def test_positions_in_tcp_streams_are_a_promise_of_their_own() -> None:
    report = {"begin_ns": BEGIN_NS, "end_ns": END_NS, "sent": {"a": 600, "tcp": 400}, "lost_ring": 5}
    channel = ChannelNote("block", "ust", [], [], [], 1, 1, event_count=1000, discarded_count=0)
    made = [Promise("block_events", "bpf"), Promise("tcp_positions", "bpf")]
    note = recording(collector=report, channels=[channel], promises=made)
    assert judged(note) == []
    assert [(p.recorded, p.lost) for p in made] == [(600, 3), (400, 2)]
    assert note.failed()  # more than a thousandth


def test_positions_in_tcp_streams_that_cannot_be_had_are_a_gap() -> None:
    notes: list[str] = []
    sources = Sources(Options(["true"], Path("run"), tcp=True), Signals(), notes)
    sources.choose_block(recipe.sort_globs(["opline:*"]), True, [], True)  # lttng-modules are there
    note = recording(promises=sources.promises(recipe.sort_globs(["opline:*"])))
    (found,) = (p for p in note.promises if p.what == "tcp_positions")
    assert found.kept is False and "lttng-modules" in found.why
    assert notes == [f"no positions in TCP streams: {found.why}"]
    proof.tell_not_had(note)
    assert [(gap.loss, gap.why) for gap in note.gaps] == [("not_recorded", f"no positions in TCP streams: {found.why}")]


@pytest.mark.parametrize(
    ("report", "loss"),
    [
        (None, "collector_died"),
        ({"end_ns": END_NS - 30_000_000}, "collector_died"),
        ({"end_ns": None}, "collector_died"),
        ({"begin_ns": BEGIN_NS + 1_000}, "collector_died"),
        ({"watermarks": 12}, "events_unaccounted"),
        ({"watermarks": 8}, "events_of_others"),
    ],
)
def test_a_collector_that_lacks_a_proof_is_not(report: dict[str, Any] | None, loss: str) -> None:
    whole = recording().collector or {}
    note = recording(collector=None if report is None else {**whole, **report})
    assert judged(note) == [loss]  # once, for both promises
    assert note.failed() and note.promises[0].kept is False


@pytest.mark.parametrize(("lost", "fails"), [(0, False), (1, False), (2, True)])
def test_a_thousandth_is_the_limit(lost: int, fails: bool) -> None:
    report = {"begin_ns": BEGIN_NS, "end_ns": END_NS, "sent": {"a": 1000}, "lost_ring": lost}
    channel = ChannelNote("block", "ust", [], [], [], 1, 1, event_count=1000, discarded_count=0)
    note = recording(collector=report, channels=[channel], promises=[Promise("block_events", "bpf")])
    assert judged(note) == []
    assert bool(note.failed()) is fails


def test_a_stream_that_ends_before_the_command_is_cut() -> None:
    app = ChannelNote("app", "ust", [], [], [], 1, 1, event_count=5, discarded_count=0)
    for end_ns, losses in ((END_NS + 5, []), (END_NS - 5, ["streams_stuck"])):
        index = ChannelIndex("ust", "app", begins_ns=[BEGIN_NS], ends_ns=[END_NS + 5, end_ns])
        note = recording(channels=[app], promises=[Promise("application_events", "lttng-ust")])
        assert judged(note, {("ust", "app"): index}) == losses
