# SPDX-License-Identifier: MIT
"""`opline heatmap --style latencymap`: PyLatencyMap's screen and its options; and, where OPLINE_PEERS names a folder
with the original, cell by cell what that prints of the same records.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.io.test_counts import records
from tests.lib.io_runs import io_run

from opline_analyses.cli import main
from opline_analyses.pictures.heatmap_text import BLUE, RED

PEERS = Path(os.environ.get("OPLINE_PEERS", "/nonexistent"))
Said = Callable[..., list[str]]


@pytest.fixture
def screen(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Said:
    """The lines of a text's screen."""

    def run(text: str, *options: str) -> list[str]:
        file = tmp_path / "input.txt"
        file.write_text(text)
        delay = [] if "--screen_delay" in options else ["--screen_delay", "0"]
        assert main(["heatmap", str(file), "--style", "latencymap", *delay, *options]) == 0
        return capfd.readouterr().out.splitlines()

    return run


def rows(lines: list[str]) -> dict[str, str]:
    """Of the first map what is behind each row's name."""
    end = next(place for place, line in enumerate(lines) if "x=time" in line)
    return {m[1]: m[2] for line in lines[2:end] if (m := re.fullmatch(r" *([<>]?[\d.]+) (.*)", line))}


STEADY = records(*("".join(f"{1 << k},{n}\n" for k in range(5, 20)) for n in range(1, 4)))


def test_c3_5_c3_11_c3_14_the_layout(screen: Said) -> None:
    """One event per second and bucket; 12 rows, what is outside is in the first and the last, and no event is lost."""
    lines = screen(STEADY, "-n", "30")
    assert lines[0] == "Latency bucket  Frequency Heatmap: events per sec".ljust(32) + "Latest values    Legend"
    assert lines[1].rstrip() == "(millisec)".ljust(36) + "(N#/sec)"
    found = rows(lines)
    assert list(found) == [">131", "131", "66", "33", "16", "8", "4", "2", "1", ".512", ".256", "<.128"]
    assert found["131"] == " " * 29 + "++......1    . >0", "the first record only begins the counting"
    assert found[">131"] == " " * 29 + "%%......2      0" and "......3" in found["<.128"]
    assert "Sum:.....15    15" in lines[14]
    assert lines[-5:-2] == [
        "Average latency: 104854 microsec. Average latency of latest values: 104854 microsec",
        "Sample num: 3. Delta time: 1.0 sec. Date: MAR 14, CET",
        "Label: 8 KB, reads",
    ]
    assert lines[-1] == "Reached EOF from data source, exiting."


def every(seconds: float, *bodies: str) -> str:
    """Records so far apart."""
    meta = "latencyunit,microsec\ndatasource,systemtap\n"
    return "".join(
        f"<begin record>\ntimestamp,microsec,{round(10**6 * seconds * n)},now\n{body}{meta}<end record>\n"
        for n, body in enumerate(bodies, 1)
    )


@pytest.mark.parametrize("seconds", [0.5, 1, 4])
def test_c3_5_rates_are_per_second_of_the_timestamps(screen: Said, seconds: float) -> None:
    """The same counts twice as far apart are half the rate; the first record only begins the counting."""
    counts = [f"1024,{8 * n}\n65536,{4 * n}\n" for n in (5, 6, 7)]
    lines = screen(every(seconds, *counts))
    found = rows(lines)
    latest = {row: int(re.findall(r"\.(\d+)(?: |$)", found[row])[0]) for row in ("1", "66")}
    assert latest == {"1": round(8 / seconds), "66": round(4 / seconds)}
    assert any(line.startswith(f"Sample num: 3. Delta time: {seconds:.1f} sec") for line in lines[-5:])


def test_c3_5_without_a_timestamp_counts_are_rates(screen: Said) -> None:
    text = "".join(line for line in STEADY.splitlines(keepends=True) if not line.startswith("timestamp"))
    assert text != STEADY and rows(screen(text))["131"].endswith("1    . >0")


@pytest.mark.parametrize(("unit", "least"), [("millisec", 0), ("microsec", 7), ("nanosec", 17)])
def test_c3_11_twelve_rows_from_the_units_own_exponent(screen: Said, unit: str, least: int) -> None:
    """From 2^least to 2^(least + 11); what lies outside is in the first and the last row, so that all is there."""
    places = sorted({max(0, least - 3), least, least + 11, least + 14})
    bodies = ["".join(f"{1 << k},{n}\n" for k in places) for n in (1, 2, 3)]
    lines = screen(records(*bodies, unit=unit))
    found = rows(lines)
    assert len(found) == 12 and next(iter(found)).startswith(">") and list(found)[-1].startswith("<")
    latest = [int(numbers[0]) for row in found.values() if (numbers := re.findall(r"\.(\d+)(?: |$)", row))]
    assert sum(latest) == len(places), found


def test_c3_10_the_screens_come_slowly_and_the_help_says_all(screen: Said, capfd: pytest.CaptureFixture[str]) -> None:
    """-d 2 prints each of three screens; after each it waits."""
    begin = time.monotonic()
    screen(STEADY, "-d", "2", "--screen_delay", "0.4")
    assert time.monotonic() - begin > 1.2
    assert main(["heatmap", "-h"]) == 0
    told = capfd.readouterr().out
    for option in ("num_records", "min_bucket", "max_bucket", "frequency_maxval", "intensity_maxval", "screen_delay",
                   "debug_level"):  # fmt: skip
        assert f"--{option}" in told


def test_c3_10_c3_13_each_option(screen: Said) -> None:
    last = screen(STEADY, "-d", "2", "--num_records=3")[-34:]
    assert "   131 0:0.0, 0:0.0, 3:1.0, 3:1.0, ......1    . >0" in last
    few = rows(screen(STEADY, "--min_bucket", "8", "--max_bucket", "10"))
    assert list(few) == [">.512", ".512", "<.256"]
    assert [int(few[row].split("    ")[-2].lstrip("@%*+-. ")) for row in few] == [10, 1, 4]
    fixed = screen(STEADY, "--frequency_maxval", "600", "--intensity_maxval", "12e6", "-n", "40")
    assert any(line.endswith(">500") for line in fixed) and any(line.endswith(">1e+07") for line in fixed)
    coloured = screen(STEADY, "--color", "256", "-n5")
    for palette in (BLUE, RED):
        assert all(any(f"\x1b[48;5;{colour}m" in line for line in coloured) for colour in palette)


def test_c3_12_the_quirks_of_1_2(screen: Said) -> None:
    """One row more than asked for, scales by 1.2, and the lowest row twice as high."""
    new, old = (list(rows(screen(STEADY, "--compat", v, "--max_bucket", "15"))) for v in ("1.3", "1.2"))
    assert (new[0], new[-1], old[0], old[-1]) == (">16", "<.128", ">33", "<.256")
    assert any(line.endswith(">600") for line in screen(STEADY, "--frequency_maxval", "600", "--compat", "1.2"))


def test_c3_6_c3_15_a_restart_is_marked_and_units_are_ms(screen: Said) -> None:
    lines = screen(records("131072,5\n", "131072,6\n", "131072,2\n", "131072,3\n"), "-n", "5")
    assert lines[14] == " " * 7 + "    ! " + "  ! the counts began again"
    assert ".....1" in rows(lines)["131"]
    assert list(rows(screen(records("1,0\n", "1,9\n", unit="millisec"))))[-1] == "<1"
    assert list(rows(screen(records("1,0\n", "1,9\n", unit="nanosec"))))[-1] == "<.131"


def test_c3_8_of_a_run_time_waited_is_exact(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """1000 us and 600 us in one second: 1600 us, not 1536."""
    run = io_run(tmp_path / "run", [{"d": 0, "c": 1000}, {"d": 2000, "c": 2600}], seconds=0.9)
    assert main(["heatmap", str(run), "--style", "latencymap"]) == 0
    out = capfd.readouterr().out
    assert "Average latency: 800 microsec" in out and re.search(r"color=time waited +Sum:\.\.\.1600    1600", out)


def test_c3_19_a_replay_is_what_was_live(screen: Said, tmp_path: Path) -> None:
    """From a pipe that is written bit by bit, as from the file."""
    program = [sys.executable, "-m", "opline_analyses", "heatmap", "-", "--style", "latencymap", "-n", "9", "-d", "2"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        for part in STEADY.split("<end record>"):
            process.stdin.write(part + "<end record>")
            process.stdin.flush()
        process.stdin.close()
        live = process.stdout.read().splitlines()
    assert live == screen(STEADY, "-n", "9", "-d", "2") and process.returncode == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--num_records", "0"), "--num_records must be 1 or more"),
        (("--min_bucket", "9", "--max_bucket", "9"), "exponents of two, the lower one first"),
        (("--json",), "--json is not for --style latencymap"),
        (("--device", "sda"), "without single I/Os --device can't be answered"),
    ],
)
def test_bad_use(options: tuple[str, ...], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text(STEADY)
    assert main(["heatmap", str(tmp_path / "x"), "--style", "latencymap", *options]) == 2
    err = capfd.readouterr().err
    assert said in err and len(err.splitlines()) == 1


@pytest.mark.skipif(not PEERS.is_dir(), reason="OPLINE_PEERS names no folder with the original programs")
@pytest.mark.parametrize("name", ["test_SystemTap_data", "calibration_data", "calibration_data_oracle"])
def test_c3_14_cell_by_cell_as_the_original(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Every number of every frame, on its own sample data; only the label it has in small letters."""
    folder = PEERS / "PyLatencyMap"
    text = (folder / "SampleData" / f"{name}.txt").read_text()

    def run(*words: str, given: str) -> str:
        return subprocess.run([sys.executable, *words], input=given, text=True, capture_output=True, check=True).stdout

    def frames(said: str) -> list[str]:
        lines = [re.sub(r"\x1b\[[\d;]*[mJH]", "", line).lower() for line in said.splitlines()]
        return [line for line in lines if line and not re.match(r"latencymap\.py|cli heatmaps|latest data|\{", line)]

    joined = run(str(folder / "SystemTap" / "systemtap_connector.py"), given=text)
    theirs = run(str(folder / "LatencyMap.py"), "-d", "2", "--screen_delay", "0", given=joined)
    source = str(folder / "SampleData" / f"{name}.txt")
    words = ["heatmap", source, "--style", "latencymap", "-d", "2", "--screen_delay", "0", "--color", "256"]
    assert main(words) == 0
    assert frames(capfd.readouterr().out) == frames(theirs)


EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "latencymap" / "run"


def test_c3_20_its_examples_run_on_sample_data() -> None:
    """All of them, each as one command: those of the same latencies say the same mean."""
    done = subprocess.run([EXAMPLES], capture_output=True, text=True, check=True, timeout=300)
    names = re.findall(r"^== (\w+):", done.stdout, re.MULTILINE)
    numbers = {name.split("_")[0] for name in names}
    assert numbers == {*map(str, range(1, 12)), "9b", "9c", "9e", "9f", "10b"} and len(names) == 16
    means = dict(zip([n for n in names if "9e" not in n], re.findall(r"^Average latency: (\S+) ", done.stdout, re.M),
                     strict=True))  # fmt: skip
    exact = [name for name in names if name.startswith(("4_", "9b_"))]
    assert {means[name] for name in exact} == {means[exact[0]]}, "10046 and perf are the same latencies, exactly"
    assert means["1_oracle_random_read"] == means["9_SystemTap_blockIO_req"] == means["8_calibrate_io"]
    assert done.stdout.count("I/O count: 200") == 12, "9e: each interval of the scheduler's variant"
    wrong = subprocess.run([EXAMPLES, "1_oracle_random_read", "none"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "no such example: none" in wrong.stderr


def test_c3_16_the_connectors_own_interval(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """10046_connector.py's -i, in all three views."""
    trace = "PARSING IN CURSOR #1\n" + "".join(
        f"WAIT #1: nam='db file sequential read' ela= {100 + n} file#=7 blocks=1 obj#=82008 tim={10**6 * n}\n"
        for n in range(12)
    )
    (tmp_path / "x.trc").write_text(trace)
    said: dict[str, list[str]] = {}
    for option in ("-i", "--interval"):
        for words in (["hist"], ["heatmap"], ["heatmap", "--style", "latencymap"]):
            assert main([*words, str(tmp_path / "x.trc"), option, "3"]) == 0
            said.setdefault(option, []).append(capfd.readouterr().out)
    assert said["-i"] == said["--interval"] and "9 to 12 s" in said["-i"][0]
    assert main(["hist", str(tmp_path / "x.trc"), "-i", "reads"]) == 2, "there are no reads to choose among"
