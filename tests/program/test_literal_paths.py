# SPDX-License-Identifier: MIT
"""A path is the file of that name: no character of it is a pattern, and no folder's name is a column."""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.build_run import P, RunBuilder

from opline.errors import OplineError
from opline_analyses.cli import main
from opline_analyses.runs.run import open_tables

#: a name, and one that it would mean as a pattern
NAMES = (
    ("run[1]", "run1"), ("run*x", "run1x"), ("run?", "run1"), ("**", "any"), ("kind=5", "kind=6"), ("it's", "its"),
    ("back\\slash[1]", "back\\slash1"), ("{a,b}", "a"), ("%s$HOME~", "x"), ("a;b\"c", "a"), ("é\n", "é"),
)  # fmt: skip
COMMANDS = (["sql", "SELECT * FROM ops"], ["csv", "--slowest", "3"], ["losses"])


def made(folder: Path, op_class: str, ops: int) -> Path:
    run = RunBuilder()
    for n in range(ops):
        run.op([P("a", n * 10_000), P("b", n * 10_000 + 5000 + ops)], op_class=op_class)
    run.fate("app:a", "transition", ops)
    return run.write(folder)


@pytest.mark.parametrize(("name", "other"), NAMES)
def test_a_runs_path_is_literal(name: str, other: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plain = made(tmp_path / "apart" / "plain", "wanted", 3)
    made(tmp_path / "here" / name, "wanted", 3)
    made(tmp_path / "here" / other, "other", 5)
    for command in COMMANDS:
        outputs = []
        for run in (plain, tmp_path / "here" / name):
            assert main([command[0], str(run), *command[1:]]) == 0
            outputs.append(capfd.readouterr().out)
        assert outputs[0] == outputs[1], command


def test_only_the_other_is_there(tmp_path: Path) -> None:
    """Then it is an error, never the other one's numbers."""
    run = made(tmp_path / "run[1]", "wanted", 3)
    made(tmp_path / "run1", "other", 5)
    (run / "ops.parquet").unlink()
    with pytest.raises(OplineError, match=r"run\[1\] has no ops\.parquet"):
        open_tables(run).rows("SELECT * FROM ops")


def test_messages_name_the_file(tmp_path: Path) -> None:
    run = made(tmp_path / "run[1]", "wanted", 3)
    (run / "ops.parquet").write_bytes(b"PAR1" * 100)
    with pytest.raises(OplineError) as said:
        open_tables(run).rows("SELECT * FROM ops")
    assert "/proc/" not in str(said.value) and f"Cannot read {run / 'ops.parquet'}: " in str(said.value)


@pytest.mark.parametrize("name", ["log[1].csv", "l*g.csv", "class=write.csv", "log.csv.gz"])
def test_a_client_logs_path_is_literal(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = made(tmp_path / "run", "wanted", 3)
    right = "begin_ns,end_ns\n" + "".join(f"{n * 10_000 - 100},{n * 10_000 + 5200}\n" for n in range(3))
    data = right.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for other in ("log1.csv", "lag.csv", "log.csv"):
        (tmp_path / other).write_text(right.replace(",", ",9"))
    assert main(["csv", str(run), "--client-log", str(tmp_path / name)]) == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    assert [row["client_ns"] for row in rows] == ["5300"] * 3


def test_a_client_log_may_be_a_pipe(tmp_path: Path, opline: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    run = made(tmp_path / "run", "wanted", 3)
    program = opline("--version").args[0]
    log = "printf 'begin_ns,end_ns\\n-100,5200\\n9900,15200\\n19900,25200\\n'"
    script = f"{program} csv {run} --client-log <({log})"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(",5300") == 3
