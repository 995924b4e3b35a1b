# SPDX-License-Identifier: MIT
"""`opline record` without a model: what was recorded says which one is meant, and the next command works."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.applications.test_demo_store import ROOT, opline
from tests.lib.block_capture import loop_device

from opline.cluster.hosts import Part, part_of
from opline.model import load_model

pytestmark = pytest.mark.live

WRITES = (
    "import os\nf = os.open('file', os.O_CREAT | os.O_RDWR)\nfor n in range(97): os.pwrite(f, bytes(512), 512 * n)\n"
)


def _model_of(run: Path) -> str:
    return str(json.loads((run / "recording.json").read_text())["model"]["argument"])


def _hints(said: str) -> list[list[str]]:
    """The commands after `next:`, as a shell would take them."""
    lines = said.partition("opline: next:")[2].splitlines()
    found = [shlex.split(line.removeprefix("opline:")) for line in lines if "opline " in line.removeprefix("opline:")]
    return [words[1:] for words in found if words and words[0] == "opline"]


def _record(run: Path, *arguments: object) -> str:
    said = opline("record", "-o", run, "--sessiond", "private", *arguments).stderr
    hints = _hints(said)
    assert hints, said
    for words in hints:
        opline(*words)  # raises where a hint leads to an error
    return said


def test_an_unmodified_program_is_recorded_with_its_system_calls(tmp_path: Path) -> None:
    run = tmp_path / "run"
    code = f"import os; os.chdir({str(tmp_path)!r})\n{WRITES}"
    said = _record(run, "--", "python3", "-c", code)
    assert "model: syscalls, as its system calls were recorded" in said and "no events in channel app" not in said
    sql = "select count(*) from ops where class = 'pwrite64' and complete"
    assert opline("sql", run, sql, "--csv").stdout.splitlines()[-1] == "97"


def test_without_system_calls_there_is_no_op_and_the_hint_is_about_block_events(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with loop_device() as device:
        _record(run, "--no-calls", "--", "dd", "if=/dev/zero", f"of={device}", "count=99", "conv=fsync")
    assert json.loads((run / "recording.json").read_text())["model"] is None
    found = opline("stages", run, "--json")
    assert "model: blocks, as the trace has block events alone" in found.stderr
    assert json.loads(found.stdout)["ops"] > 0


def test_a_recording_without_any_event_says_so_and_commands_do(tmp_path: Path) -> None:
    run = tmp_path / "run"
    said = opline("record", "-o", run, "--sessiond", "private", "--no-block", "--", "true").stderr
    assert "warning: nothing was recorded: the command has none of the tracepoints" in said
    with pytest.raises(AssertionError, match="trace has no events: nothing that was to be recorded happened"):
        opline("why", run)


def test_a_model_that_was_named_and_has_no_events_is_a_warning(tmp_path: Path) -> None:
    said = opline("record", "-o", tmp_path / "run", "--no-block", "--model", "generic", "--", "true").stderr
    assert said.count("no events in channel app") == 1


@pytest.mark.parametrize("command", ["why", "stages", "report", "ops"])
def test_a_recording_of_what_runs_already_has_no_command_and_is_analysed(
    command: str, tmp_path: Path, what_ran: Path
) -> None:
    opline(command, what_ran, *(["-o", tmp_path / "page.html"] if command == "report" else []))


@pytest.fixture(scope="module")
def what_ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("ran") / "run"
    code = "import os,time\nwhile True: os.pwrite(1, b'x', 0); time.sleep(0.01)"
    with (
        (run.parent / "file").open("wb") as file,
        subprocess.Popen([sys.executable, "-c", code], stdout=file) as process,
    ):
        try:
            opline("record", "-o", run, "--sessiond", "private", "--pid", process.pid, "--duration", 1)
        finally:
            process.kill()
    return run


def test_a_killed_recorder_leaves_the_choice_of_a_model_to_what_it_promised(tmp_path: Path, what_ran: Path) -> None:
    """The manifest of one that was killed names no model yet."""
    run = tmp_path / "run"
    shutil.copytree(what_ran, run, ignore=shutil.ignore_patterns("*.parquet", "manifest.json"))
    manifest = json.loads((run / "recording.json").read_text())
    (run / "recording.json").write_text(json.dumps(manifest | {"model": None, "state": "recording"}))
    told = opline("what", run).stdout
    assert f"opline stages {run}" in told and "an application's ops" not in told
    found = opline("stages", run, "--json", "--tainted")
    assert "model: syscalls, as the trace has" in found.stderr
    assert json.loads(found.stdout)["ops"] > 0


def test_events_of_the_three_macros_are_of_the_model_generic(tmp_path: Path) -> None:
    source, app, run = ROOT / "tracepoints", tmp_path / "app", tmp_path / "run"
    sources = map(str, (source / "example" / "app.c", source / "opline_tp.c"))
    argv = ["gcc", f"-I{source}", "-o", str(app), *sources, "-llttng-ust", "-ldl", "-lpthread"]
    subprocess.run(argv, check=True, timeout=60)
    assert "model: generic" in _record(run, "--", app, tmp_path / "data")
    sql = "select count(*) from ops where complete and transition_count = 7"
    assert opline("sql", run, sql, "--csv").stdout.splitlines()[-1] == "23"


def test_other_tracepoints_have_the_model_that_infer_proposes_also_where_the_recording_is_moved(tmp_path: Path) -> None:
    run = tmp_path / "run"
    store = ROOT / "examples" / "demo-store" / "run"
    said = _record(run, "--events", "demo:*", "--", store, "--ops", "300", "--qd", "4")
    assert f"what `opline model infer` proposes for these events, in {run}/model.toml" in said
    assert _model_of(run) == "model.toml"
    moved = run.rename(tmp_path / "elsewhere")
    sql = "select count(*) from ops where complete and class not like 'bio%'"
    assert opline("sql", moved, sql, "--csv").stdout.splitlines()[-1] == "300"


def test_a_recording_brings_the_model_of_a_file_along(tmp_path: Path) -> None:
    run, model = tmp_path / "run", tmp_path / "mine.toml"
    model.write_text(load_model("demo").text.replace("[points]", "# mine\n[points]", 1))
    store = ROOT / "examples" / "demo-store" / "run"
    opline("record", "-o", run, "--sessiond", "private", "--model", model, "--", store, "--ops", "300", "--qd", "4")
    kept = model.read_text()
    model.unlink()
    moved = run.rename(tmp_path / "elsewhere")
    sql = "select count(*) from ops where complete and class not like 'bio%'"
    assert opline("sql", moved, sql, "--csv").stdout.splitlines()[-1] == "300"
    assert (moved / "model.toml").read_text() == kept
    part = part_of(str(moved))
    assert isinstance(part, Part) and part.model == str(moved / "model.toml")  # not one of the current directory
