# SPDX-License-Identifier: MIT
"""The command line's manners: help, exit statuses, streams, pipes, signals, and what it says of bad input."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.build_run import P, Rq, RunBuilder

from opline_analyses import cli
from opline_analyses.cli import load, main, parser_of
from opline_analyses.command_map import GROUPS, asked
from opline_analyses.runs.run import open_run

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = [name for _, group in GROUPS for name, _, _ in group]


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    run = RunBuilder()
    for n in range(12):
        t = 1_000_000_000 + 1_000_000 * n
        run.op(
            [P("begin", t), P("work", t + 20_000 + n, stage="queue", kind="wait"), P("end", t + 100_000 + n)],
            [Rq(q=t + 30_000, g=t + 31_000, d=t + 33_000, c=t + 90_000, sector=8 * n)],
            op_class="read" if n % 2 else "write",
            obj=f"o{n}",
        )
    run.op([P("begin", 2_000_000_000)], complete=False, reason="no_end")
    run.fate("app:begin", "transition", 13)
    run.fate("app:begin", "orphan:no_op_for_key", 2)
    run.loss("discarded_events", "data_loss", "recording", 7)
    run.loss("late_transitions", "info", "correlation", 3)
    run.rows["discarded"].append(
        {"stream": "app_0", "begin_ns": 1_000_500_000, "end_ns": 1_000_600_000, "count": 7, "packets": False}
    )
    return run.write(tmp_path / "run")


def out_of(capfd: pytest.CaptureFixture[str], *args: str | Path) -> str:
    assert main([str(a) for a in args]) == 0
    return capfd.readouterr().out


# --- help and usage ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_the_overviews_line_and_examples(name: str) -> None:
    command = load(name)
    listed = {n: text for _, group in GROUPS for n, _, text in group}
    assert (name, command.HELP) == (command.NAME, listed[name])
    text = parser_of(name).format_help()
    assert "examples:\n" in text
    assert f"opline {name}" in text.split("examples:\n")[1]


def test_the_program_alone_prints_the_readmes_questions(capfd: pytest.CaptureFixture[str]) -> None:
    """Each with commands that README has under it, in that order; every option is one of the command's."""
    assert main([]) == 2
    out, said = capfd.readouterr()
    assert out == "" and len(said.splitlines()) < 24
    section = (ROOT / "README.md").read_text().partition("## Seven questions")[2].partition("## More")[0]
    answers = " ".join(section.split()).split("**")
    headings = answers[1::2]
    assert [question for question, _ in asked()] == headings
    for (question, commands), text in zip(asked(), answers[2::2], strict=True):
        assert question in said
        for command in commands:
            assert command in said
            if command.split()[1] == "why":
                assert "`opline why" in text or "same two commands" in text
            else:
                assert f"`{command}`" in text
            ours = command.partition(" -- ")[0].split()[1:]
            assert all(word in parser_of(ours[0]).format_help() for word in ours if word.startswith("--"))


def test_version_names_the_readers(capfd: pytest.CaptureFixture[str]) -> None:
    text = out_of(capfd, "--version")
    assert text.startswith("opline ")
    for word in ("readers", "babeltrace2", "lttng"):
        assert re.search(rf"^{word} ", text, re.MULTILINE)


@pytest.mark.parametrize("args", [["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_imports_no_heavy_library(args: list[str]) -> None:
    code = (
        f"import sys; from opline_analyses.cli import main; main({args});"
        " print([m for m in ('duckdb', 'matplotlib', 'numpy', 'pyarrow', 'networkx', 'bt2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["stages", "csv", "losses"])
def test_what_reads_a_trace_alone_needs_no_heavy_library(command: str, trace: Callable[[str], Path]) -> None:
    code = (
        "import sys; before = set(sys.modules); from opline_analyses.cli import main;"
        f" main([{command!r}, {str(trace('demo-ctf2'))!r}, '--model', 'demo']);"
        " heavy = 'duckdb numpy pyarrow pandas matplotlib networkx bt2'.split();"
        " print([m for m in heavy if m in sys.modules and m not in before])"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "Why is my fio job's p99 high?"),
        (["opz"], "Did you mean ops?"),
        (["qqqq"], "lists the commands"),
        (["ops"], "RUN"),
        (["ops", "/no/such/run"], "does not exist"),
        (["plot", "x"], "-o"),
        (["stages", "x", "--csv", "--json"], "not allowed with"),
        (["ops", "x", "--slowest", "0"], "must be 1 or more"),
        (["stages", "x", "--sinc", "1"], "opline stages: there is no option --sinc. Did you mean --since?"),
        (["stages", "--sinc", "1", "x"], "there is no option --sinc. Did you mean --since?"),
        (["stages", "x", "--qqqq"], "there is no option --qqqq. `opline stages --help`"),
        (["ops", "x", "--op", "y"], "argument --op: y is not a number. `opline ops --help`"),
        (["disk", "lis", "tests"], "lis is no view. Write one of iostat, hist, "),
        (["check", "los", "tests"], "los is no subject. Write one of losses, coverage, "),
        (["live", "fio", "job.fio"], "fio is no view. Write one of hist, "),
        (["now", "iosta"], "iosta is no view. Write one of hist, "),
        (["stages", "x", "y"], "unrecognized arguments: y. `opline stages --help`"),
    ],
)
def test_usage_errors_are_status_2(args: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    captured = capfd.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert not args or captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--class", "trim"], "It has: read, write"),
        (["--op", "99"], "no such op"),
        (["--since", "yesterday"], "--since yesterday"),
    ],
)
def test_unknown_selection_is_status_2(
    args: list[str], said: str, run_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["ops", str(run_dir), *args]) == 2
    assert said in capfd.readouterr().err


# --- selection --------------------------------------------------------------------------------------------------------


def ids(text: str) -> list[int]:
    return [int(m) for m in re.findall(r"^op (\d+) ", text, re.MULTILINE)]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--slowest", "3"], [11, 10, 9]),
        (["--slowest", "5", "--limit", "2"], [11, 10]),
        (["--op", "4"], [4]),
        (["--class", "read", "--limit", "2"], [1, 3]),
        (["--class", "read", "--class", "write", "--limit", "3"], [0, 1, 2]),
        (["--since", "0.009", "--until", "0.011"], [9, 10]),
        (["--since", "9ms", "--until", "11000us"], [9, 10]),
        (["--latency", ">=100009ns"], [9, 10, 11]),
        (["--latency", "100004ns..100005ns"], [4, 5]),
        (["--since", "001010000000", "--until", "001011000000"], [10]),
        (["--at", "0.00405"], [4]),
        (["--at", "0.0045"], []),
        (["--at", "001002100002"], [2]),
    ],
)
def test_which_ops(args: list[str], expected: list[int], run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ids(out_of(capfd, "ops", run_dir, *args)) == expected


def test_a_time_without_ops_is_said(run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", str(run_dir), "--since", "50"]) == 0
    captured = capfd.readouterr()
    assert captured.out == ""
    assert (
        "opline: --since 50: no op begins then; the first one begins at 0.000 s, the last one at 1.000 s.\n"
        in captured.err
    )
    assert main(["ops", str(run_dir), "--until", "0"]) == 0
    assert "--until 0: no op begins then" in capfd.readouterr().err


def test_states_that_are_not_in_the_trace_are_said(run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", str(run_dir), "--op", "4", "--states"]) == 0
    assert "what their threads did is not in the trace" in capfd.readouterr().err
    assert main(["ops", str(run_dir), "--op", "4"]) == 0
    assert "what their threads did" not in capfd.readouterr().err


def test_ceph_style_prints_complete_ops_only(run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """C1.5: an op without its last point is not printed as complete, and is counted."""
    assert main(["ops", str(run_dir), "--style", "ceph-devel"]) == 0
    captured = capfd.readouterr()
    assert captured.out.count("Op Transition list for") == captured.out.count("=== > Total:") == 12
    assert "1 incomplete" in captured.err


# --- data on stdout, talk on stderr -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ops", "stages", "csv", "graph", "coverage"])
def test_losses_go_to_stderr_first(name: str, run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([name, str(run_dir)]) == 0
    captured = capfd.readouterr()
    said = "lost: discarded_events 7 (the tracer's buffers were full). `opline losses` says more."
    assert captured.err.splitlines()[0] == f"opline: {said}"
    assert "late_transitions" not in captured.err
    assert "lost:" not in captured.out


def test_ops_as_json_lines(run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in out_of(capfd, "ops", run_dir, "--json").splitlines()]
    assert [op["op_id"] for op in lines] == list(range(13))
    assert (lines[1]["class"], lines[1]["latency_ns"], lines[12]["latency_ns"]) == ("read", 100_001, None)
    assert [t["point"] for t in lines[0]["transitions"]] == ["begin", "work", "end"]
    assert sum(s["duration_ns"] for s in lines[0]["stages"]) + lines[0]["unattributed_ns"] == lines[0]["latency_ns"]
    assert lines[3]["requests"][0]["sector"] == 24


def test_json_outputs_are_json(run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for args in (["stages", "--json"], ["coverage", "--json"], ["losses", "--json"], ["graph", "--format", "json"]):
        assert json.loads(out_of(capfd, args[0], run_dir, *args[1:]))


def test_csv_leaves_out_incomplete_ops_and_says_so(run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """C1.8: as many rows as completed ops."""
    assert main(["csv", str(run_dir)]) == 0
    captured = capfd.readouterr()
    assert len(list(csv.DictReader(io.StringIO(captured.out)))) == 12
    assert "left out: 1 incomplete" in captured.err
    assert len(list(csv.DictReader(io.StringIO(out_of(capfd, "csv", run_dir, "--all"))))) == 13


def test_output_file_appears_when_complete(run_dir: Path, tmp_path: Path) -> None:
    target = tmp_path / "ops.csv"
    assert main(["csv", str(run_dir), "-o", str(target)]) == 0
    assert target.read_text().startswith("op_id,class,object,")
    assert not list(tmp_path.glob("*.part"))
    assert main(["csv", str(run_dir), "-o", str(tmp_path / "none" / "ops.csv")]) == 1


@pytest.mark.parametrize(("limit", "status"), [("6", 3), ("7", 0)])
def test_max_loss(limit: str, status: int, run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["stages", str(run_dir), "--max-loss", limit]) == status
    assert "latency" in capfd.readouterr().out
    assert main(["losses", str(run_dir), "--max-loss", limit]) == status
    out = capfd.readouterr().out
    assert "discarded_events  7  data_loss, recording" in out
    assert re.search(r"^app:begin +transition +13 +15$", out, re.MULTILINE)
    assert re.search(r"^app_0 +0\.000500 +0\.000600 +7 +events +0$", out, re.MULTILINE)


# --- sql --------------------------------------------------------------------------------------------------------------


def test_sql_formats(run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    query = "SELECT op_id, object, latency_ns FROM ops WHERE op_id IN (3, 12) ORDER BY op_id"
    assert (
        out_of(capfd, "sql", run_dir, query)
        == "op_id  object  latency_ns\n    3  o3          100003\n   12  obj              ·\n"
    )
    assert out_of(capfd, "sql", run_dir, query, "--csv") == "op_id,object,latency_ns\n3,o3,100003\n12,obj,\n"
    assert json.loads(out_of(capfd, "sql", run_dir, query, "--json"))[1] == {
        "op_id": 12,
        "object": "obj",
        "latency_ns": None,
    }


def test_sql_error_is_one_line(run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", str(run_dir), "SELECT nothing FROM ops"]) == 1
    err = capfd.readouterr().err.splitlines()[-1]
    assert err.startswith("opline: SQL: ")
    assert "nothing" in err


# --- bad runs ---------------------------------------------------------------------------------------------------------


def test_damaged_runs(run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (run_dir / "stages.parquet").write_bytes(b"PAR1 not really")
    assert main(["stages", str(run_dir)]) == 1
    assert "stages.parquet" in capfd.readouterr().err
    (run_dir / "stages.parquet").unlink()
    assert main(["stages", str(run_dir)]) == 1
    assert "has no stages.parquet" in capfd.readouterr().err
    (run_dir / "manifest.json").write_text("{")
    assert main(["stages", str(run_dir)]) == 1
    assert "manifest.json" in capfd.readouterr().err


# --- pipes and signals ------------------------------------------------------------------------------------------------


def program(*args: str | Path) -> list[str]:
    return [sys.executable, "-m", "opline_analyses", *map(str, args)]


def test_ctrl_c_ends_a_running_query(run_dir: Path) -> None:
    query = "SELECT count(*) FROM range(100000000000) a WHERE hash(a.range) % 7 = 3"
    with subprocess.Popen(program("sql", run_dir, query), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"opline: lost: ")  # the run is open
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
        assert process.stderr.read() == b""


def test_what_a_query_says_of_ctrl_c_is_an_interrupt(run_dir: Path) -> None:
    """DuckDB raises one error or another, as it notices the signal first; without one an error stays what it is."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with pytest.raises(KeyboardInterrupt), open_run(run_dir) as run:
            assert run.row("SELECT 1") == (1,)
            signal.raise_signal(signal.SIGINT)
            raise RuntimeError("Query interrupted")
        with pytest.raises(RuntimeError), open_run(run_dir) as run:
            assert run.row("SELECT 1") == (1,)
            raise RuntimeError("something else")
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_fault_of_ours_is_one_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def faulty(name: str) -> cli.Command:
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr(cli, "parser_of", faulty)
    monkeypatch.delenv("OPLINE_DEBUG", raising=False)
    assert main(["ops", "x"]) == 1
    assert capfd.readouterr().err.splitlines() == [
        "opline: internal error: ZeroDivisionError: oh no. Please report it; OPLINE_DEBUG=1 shows where it is."
    ]
    monkeypatch.setenv("OPLINE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["ops", "x"])


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: str) -> cli.Command:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError

    monkeypatch.setattr(cli, "parser_of", interrupted)
    assert main(["ops", "x"]) == 130
