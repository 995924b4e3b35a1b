# SPDX-License-Identifier: MIT
"""Options whose number, or whose company, means nothing are refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lib.build_run import small_run
from tests.lib.io_runs import io_run

from opline_analyses.cli import main


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["stages", "--max-loss", "-1"], "--max-loss: -1: must be 0 or more"),
        (["stages", "--threads", "65"], "A number of threads is to be from 1 to 64, not '65'"),
        (["stages", "--threads", "0"], "A number of threads is to be from 1 to 64, not '0'"),
        (["stages", "--model", "demo", "--period", "a:b,a:c"], "not allowed with argument --model"),
        (["heatmap", "--rows", "0"], "--rows: 0: must be 1 or more"),
        (["coverage", "--every", "0"], "--every 0: must be more than 0"),
        (["events", "--limit", "0"], "--limit: 0: must be 1 or more"),
        (["btt", "--limit", "-2"], "--limit: -2: must be 1 or more"),
        (["requests", "--slowest", "-1"], "--slowest: -1: must be 1 or more"),
        (["requests", "--limit", "0"], "--limit: 0: must be 1 or more"),
        (["log", "--limit", "0"], "--limit: 0: must be 1 or more"),
        (["hist", "1", "0"], "COUNT: 0: must be 1 or more"),
        (["iostat", "1", "-1"], "COUNT: -1: must be 1 or more"),
        (["outliers", "--threshold", "1500ns"], "--threshold 1500ns: latencies are compared in whole microseconds"),
        (["bitesize", "-b", "1e300"], "-b '1e300': the limits must increase, and be sizes that there are"),
        (["heatmap", "--style", "latencymap", "--frequency_maxval", "nan"], "--frequency_maxval: nan: not a number"),
        (["heatmap", "--style", "latencymap", "--screen_delay", "nan"], "--screen_delay: nan: not a number"),
        (["heatmap", "--maxcol", "0"], "--maxcol: 0: must be 1 or more"),
        (["heatmap", "--boxsize", "0"], "--boxsize: 0: must be 1 or more"),
        (["heatmap", "--fontsize", "-1"], "--fontsize: -1: must be 1 or more"),
        (["heatmap", "--minlat", "5", "--maxlat", "1"], "--maxlat 1: the axis ends where it begins, or before"),
        (["heatmap", "--maxlat", "0"], "--maxlat 0: the axis ends where it begins, or before"),
        (["heatmap", "-o", "x.png"], "-o x.png: a heat map is drawn as SVG"),
        (["plot", "-o", "x.png", "--dpi", "0"], "--dpi: 0: must be 1 or more"),
        (["plot", "-o", "x.png", "--dpi", "100000"], "--dpi: 100000: must be 10 to 1200"),
    ],
)
def test_numbers_that_mean_nothing_are_status_2(
    args: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        status: object = main([args[0], str(small_run(tmp_path / "run")), *args[1:]])
    except SystemExit as error:
        status = error.code
    captured = capfd.readouterr()
    assert (status, captured.out) == (2, "") and said in captured.err and captured.err.count("\n") == 1


@pytest.mark.parametrize("command", ["ops", "csv", "requests", "log", "outliers"])
def test_a_limit_beyond_any_table_is_none(command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = small_run(tmp_path / "run")
    texts = []
    for limit in ((), ("--limit", "99999999999999999999")):
        assert main([command, str(run), *limit]) == 0
        texts.append(capfd.readouterr().out)
    assert texts[0] == texts[1] != ""


def test_requests_that_are_equally_slow_are_in_order(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = io_run(tmp_path / "run", [{"q": n, "d": n + 1, "c": n + 5} for n in range(2000)])
    assert main(["requests", str(run), "--slowest", "300", "--csv"]) == 0
    found = [int(line.split(",")[0]) for line in capfd.readouterr().out.splitlines()[1:]]
    assert found == list(range(found[0], found[0] + 300)) and found[0] < 2


def test_a_step_that_makes_more_rows_than_anybody_reads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = io_run(tmp_path / "run", [{"d": 1, "c": 2}, {"d": 1, "c": 900_000}])
    assert main(["hist", str(run), "--buckets", "linear", "--step", "1ns"]) == 2
    assert "rows: too many (> 100000). Choose a longer --step" in capfd.readouterr().err


@pytest.mark.parametrize(
    "words", [("--minlat", "x"), ("--minlat", "nan"), ("--maxlat", "1e400"), ("--steplat", "1us"), ("--maxlat", "")]
)
def test_numbers_of_two_columns(words: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "two").write_text("1 100\n2 300\n")
    assert main(["heatmap", str(tmp_path / "two"), "--unitstime", "s", *words]) == 2
    assert f"{words[0]} {words[1]}: not a number as in the second column." in capfd.readouterr().err
    assert main(["heatmap", str(tmp_path / "two"), "--unitstime", "s", "--minlat", "1.5e2", "--json"]) == 0
    assert '"row": -1' in capfd.readouterr().out, "100 is below 150"
