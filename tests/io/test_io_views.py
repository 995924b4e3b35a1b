# SPDX-License-Identifier: MIT
"""`opline log`, `bitesize`, `outliers` and `heatmap`: the seeds' columns and layouts; no I/O is lost on the way."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lib.io_runs import SDA, SDB, io_run
from tests.lib.recorded import RunOf

from opline_analyses.block.outliers import probability
from opline_analyses.cli import main
from opline_analyses.pictures.heatmap_text import BLUE, RED, heat, step_of

Said = Callable[..., tuple[str, str]]
SVG = "{http://www.w3.org/2000/svg}"


# --- log --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path: Path) -> Path:
    ios = [
        {"q": 90, "i": 95, "d": 100, "c": 1420, "sector": 17039968, "kind": "write", "comm": "supervise", "tid": 1809},
        {"q": 200, "i": 210, "d": 300, "c": 7830, "sector": 8457608, "rwbs": "RM", "comm": "tar", "tid": 14794},
        {"q": 900, "i": 950, "d": 1000, "c": 1100, "sector": 8, "dev": SDB, "comm": "randread", "sectors": 48},
    ]
    return io_run(tmp_path / "run", ios, seconds=0.01)


def test_c5_1_iosnoops_columns(three: Path, said: Said) -> None:
    assert said("log", three)[0] == (
        "COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n"
        "randread     100    R    8,16     8            24576      0.10\n"
        "supervise    1809   W    8,0      17039968     4096       1.32\n"
        "tar          14794  RM   8,0      8457608      4096       7.53\n"
    )
    lines = said("log", three, "-s", "-t")[0].splitlines()
    assert lines[0].split()[:2] == ["STARTs", "ENDs"]
    assert lines[1].startswith("0.001000        0.001100        randread ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-d", "8,16"), ["randread"]), (("-i", "*R*"), ["randread", "tar"]), (("-p", "1809"), ["supervise"]),
        (("-n", "ta*"), ["tar"]), (("--sort", "latency", "--limit", "2"), ["tar", "supervise"]),
        (("--sort", "size", "--limit", "1"), ["randread"]), (("0.0015",), ["randread", "supervise"]),
        (("--sort", "start",), ["supervise", "tar", "randread"]), (("--latency", ">5ms"), ["tar"]),
    ],
)  # fmt: skip
def test_c5_2_each_option(three: Path, said: Said, options: tuple[str, ...], expected: list[str]) -> None:
    assert [line.split()[0] for line in said("log", three, *options)[0].splitlines()[1:]] == expected


def test_c5_2_the_time_in_the_queue(three: Path, said: Said) -> None:
    assert [line.split()[-1] for line in said("log", three, "-Q")[0].splitlines()[1:]] == ["0.15", "1.32", "7.62"]


def test_log_as_data(three: Path, said: Said) -> None:
    rows = list(csv.DictReader(io.StringIO(said("log", three, "--csv")[0])))
    listed = [json.loads(line) for line in said("log", three, "--json")[0].splitlines()]
    assert [int(r["latency_ns"]) for r in rows] == [r["latency_ns"] for r in listed] == [100_000, 1_320_000, 7_530_000]
    assert [{k: v for k, v in r.items() if v} for r in rows] == [
        {k: str(v) for k, v in r.items() if v not in (None, "")} for r in listed
    ]


@pytest.mark.parametrize("name", ["app-libaio-qd8-dmlinear"])
def test_c5_3_bios_of_a_mapped_device(run_of: RunOf, said: Said, name: str) -> None:
    run = run_of(name)
    devices = {b["dev"] for b in run.rows("bios")} - {r["dev"] for r in run.rows("requests")}
    (mapped,) = devices
    bios = [b for b in run.rows("bios") if b["dev"] == mapped]
    text, _ = said("log", run.path, "--of", "bios", "-d", f"{mapped >> 20},{mapped & 0xFFFFF}")
    assert len(text.splitlines()) - 1 == len(bios) > 900


def test_an_op_of_unknown_size_is_not_one_of_no_bytes(run_of: RunOf, said: Said) -> None:
    run = run_of("fio-libaio-qd16-hdd-bfq")
    sizes = [op["length_bytes"] for op in run.rows("ops")]
    assert sizes.count(None) > 0 and sizes.count(0) > 0
    listed = [json.loads(line)["bytes"] for line in said("log", run.path, "--of", "ops", "--json")[0].splitlines()]
    assert (listed.count(None), listed.count(0)) == (sizes.count(None), sizes.count(0))
    rows = list(csv.DictReader(io.StringIO(said("log", run.path, "--of", "ops", "--csv")[0])))
    assert sum(row["bytes"] == "" for row in rows) == sizes.count(None)
    cells = [line.split()[-2] for line in said("log", run.path, "--of", "ops", "--sort", "size")[0].splitlines()[1:]]
    assert cells[-sizes.count(None) :] == ["-"] * sizes.count(None) and cells.count("-") == sizes.count(None)


# --- bitesize ---------------------------------------------------------------------------------------------------------


def test_c5_5_sizes_in_buckets_of_ones_choice(tmp_path: Path, said: Said) -> None:
    """All that was issued: also a flush, and what never completed."""
    ios: list[dict[str, Any]] = [{"d": n, "c": n + 5, "sectors": s} for n, s in enumerate((1, 2, 15, 16, 17, 64, 256))]
    ios += [{"d": 9, "sectors": 16}, {"d": 10, "c": 11, "kind": "flush"}, {"q": 1}]
    run = io_run(tmp_path / "run", ios)
    text, err = said("bitesize", run, "--style", "bitesize")
    assert text == (
        "            Kbytes         : I/O      Distribution\n"
        "              -> 0.9       : 2        |###################                   |\n"
        "          1.0 -> 7.9       : 2        |###################                   |\n"
        "          8.0 -> 63.9      : 4        |######################################|\n"
        "         64.0 -> 127.9     : 0        |                                      |\n"
        "        128.0 ->           : 1        |##########                            |\n"
    )
    assert "1 of 10 I/Os is not counted: 1 without an issue." in err
    found = json.loads(said("bitesize", run, "-b", "8 9", "--json")[0])
    assert [b["count"] for b in found["buckets"]] == [4, 3, 2]
    assert main(["bitesize", str(run), "-b", "8 8"]) == 2


# --- outliers ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Two devices of 40 I/Os of 1 to 4.9 ms each; on sdb 8 of them take 600 to 607 ms. Two more at the threshold."""
    ios = []
    for n in range(40):
        ios.append({"d": 1000 * n, "c": 1000 * n + 1000 + 100 * n, "dev": SDA, "sector": n})
        late = 600_000 + 1000 * (n // 5) if n % 5 == 0 else 1000 + 100 * n
        ios.append({"d": 1000 * n, "c": 1000 * n + late, "dev": SDB, "sector": 1000 + n})
    ios += [{"d": 0, "c": 500_000, "sector": 1}, {"d": 0, "c": 500_001, "sector": 2}]
    return io_run(tmp_path / "run", ios, seconds=1.5)


def test_c2_1_c2_2_what_is_above_the_threshold(odd: Path, said: Said) -> None:
    script = ("--style", "systemtap")
    lines = said("outliers", odd, *script)[0].splitlines()
    assert lines[:2] == [
        "Measuring block I/O latency and statistics",
        "A warning will be printed for I/Os with latency higher than 500000 microseconds",
    ]
    warnings = [line for line in lines if line.startswith("latency warning")]
    assert len(warnings) == 9
    assert warnings[0] == "latency warning, >500000 microsec: device=sda, sector=2, latency=500001"
    assert not [line for line in warnings if "sector=1," in line], "exactly the threshold is not above it"
    assert warnings[1] == "latency warning, >500000 microsec: device=sdb, sector=1000, latency=600000"
    other = said("outliers", odd, "10", "604500", *script)[0]
    assert other.count(">604500 microsec") == 3
    assert other.splitlines()[1].endswith("with latency higher than 604500 microseconds")
    assert "measurement time: 10 seconds" in other
    assert "measurement time: 0.5 seconds" in said("outliers", odd, "0.5", *script)[0]
    text, err = said("outliers", odd, "--limit", "2", *script)
    assert text.count("latency warning") == 2 and "7 more I/Os above the threshold" in err


def test_c2_3_statistics_per_device_and_interval(odd: Path, said: Said) -> None:
    lines = said("outliers", odd, "10", "--style", "systemtap")[0].splitlines()
    at = lines.index("Disk name          Num I/Os    Min latency    Avg latency    Max latency")
    assert lines[at - 2] == "I/O latency basic statistics per device, measurement time: 10 seconds"
    assert lines[at + 1].startswith("-----")
    usual = [1000 + 100 * n for n in range(40)]
    sdb = [600_000 + 1000 * (n // 5) if n % 5 == 0 else usual[n] for n in range(40)]
    sda = [*usual, 500_000, 500_001]
    for line, name, values in ((lines[at + 2], "sdb", sdb), (lines[at + 3], "sda", sda)):
        expected = [len(values), min(values), sum(values) // len(values), max(values)]
        assert line == f"{name:<19}{expected[0]:>8}{expected[1]:>15}{expected[2]:>15}{expected[3]:>15}"
    found = json.loads(said("outliers", odd, "0.5", "--json")[0])
    counts = [{d["device"]: d["count"] for d in i["devices"]} for i in found["intervals"]]
    assert counts == [{"sda": 40, "sdb": 32}, {"sda": 2, "sdb": 8}, {}, {}], "reset in each, idle ones too"


def test_c2_17_the_suspect_against_a_good_device(odd: Path, said: Said) -> None:
    text, _ = said("outliers", odd, "--threshold", "500ms")
    assert "The suspect sdb against sda, all I/Os of both on one scale:" in text
    assert "Above 500 ms: 8 of sdb's 40 I/Os (20.0 %) and 1 of sda's 42 I/Os (2.4 %)." in text
    assert "That may be chance (p = 0.012, Fisher's exact test)." in text
    assert "They differ (p = " in said("outliers", odd, "--threshold", "500001us")[0]
    assert "suspect" not in said("outliers", odd, "--threshold", "1s")[0], "no outlier, no suspect"


def test_an_outlier_takes_ten_times_the_median_or_more_than_all_but_one_in_a_thousand(
    odd: Path, tmp_path: Path, said: Said
) -> None:
    text, err = said("outliers", odd)
    assert text.startswith("10 of 82 I/Os (12.2 %) take longer than 32 ms, 10 times the median.\n"), text
    slowest = [line.split()[-1] for line in text.splitlines() if line.endswith("000") and "read" in line]
    assert slowest == sorted(slowest, key=float, reverse=True) and len(slowest) == 10 and "more I/Os" not in err
    assert [line.split() for line in text.splitlines() if line.startswith("sdb")] == [
        [
            "sdb",
            "40",
            "8",
            "1100.000",
            f"{(sum(1000 + 100 * n for n in range(40) if n % 5) + 8 * 603_500) / 40:.3f}",
            "607000.000",
        ]
    ]
    document = json.loads(said("outliers", odd, "--json")[0])
    assert (document["threshold_ns"], document["threshold"]) == (32_000_000, "10 times the median")
    even = io_run(tmp_path / "even", [{"d": 1000 * n, "c": 1000 * n + 500 + n // 10} for n in range(2000)], seconds=3)
    text, _ = said("outliers", even)
    assert text.startswith("0 of"), text


def test_c2_17_the_probability_is_that_of_all_ways_to_share_out_the_outliers() -> None:
    """Counted out: of 3 outliers among 4 + 5 I/Os, 2 or more on the first device in 34 of 84 ways."""
    assert probability(2, 4, 1, 5) == pytest.approx(34 / 84)
    assert probability(0, 4, 3, 5) == pytest.approx(1)
    assert probability(41, 199, 0, 196) < 1e-12, "the seed's sdy"


# --- heatmap ----------------------------------------------------------------------------------------------------------


def cells_of(path: Path) -> list[ET.Element]:
    return [e for e in ET.parse(path).iter(f"{SVG}rect") if e.get("class") == "cell"]


@pytest.mark.parametrize(
    "options", [(), ("--log",), ("--maxlat=15000",), ("--minlat=100us", "--rows=7"), ("--stepsec=0.5",)]
)
def test_c7_8_no_event_is_dropped(run_of: RunOf, said: Said, tmp_path: Path, options: tuple[str, ...]) -> None:
    """C7.13: a zoomed map has what is outside in a row of its own."""
    run = run_of("fio-libaio-qd16-hdd-bfq")
    done = [r for r in run.rows("requests") if r["complete_ns"] is not None]
    said("heatmap", run.path, "-o", tmp_path / "h.svg", *options)
    assert sum(int(e.get("data-count", "0")) for e in cells_of(tmp_path / "h.svg")) == len(done)
    found = json.loads(said("heatmap", run.path, "--json", *options)[0])
    assert sum(c["count"] for c in found["cells"]) == len(done)
    assert sum(c["sum"] for c in found["cells"]) == sum(r["complete_ns"] - r["issue_ns"] for r in done)


@pytest.mark.parametrize(
    ("name", "of", "value", "column"),
    [
        ("fio-libaio-qd16-hdd-bfq", "ops", "size", "length_bytes"), ("fdatasync-2-queues", "ops", "offset", "sector"),
        ("fdatasync-2-queues", "requests", "offset", "sector"),
    ],
)  # fmt: skip
def test_what_is_nowhere_on_the_axis_is_told(
    run_of: RunOf, said: Said, name: str, of: str, value: str, column: str
) -> None:
    run = run_of(name)
    rows = run.rows(of) if of == "ops" else [r for r in run.rows(of) if r["flushed_by"] is None and r["issue_ns"]]
    without = sum(row[column] is None for row in rows)
    out, err = said("heatmap", run.path, "--of", of, "--value", value, "--json")
    assert without > 0 and f"{without} without {value}" in err
    assert sum(c["count"] for c in json.loads(out)["cells"]) == len(rows) - without


@pytest.mark.parametrize("words", [(), ("-o", "-")])
def test_a_picture_on_standard_output(three: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    with (tmp_path / "x.svg").open("wb") as out:
        subprocess.run([sys.executable, "-m", "opline_analyses", "heatmap", three, *words], stdout=out, check=True)
    assert len(cells_of(tmp_path / "x.svg")) == 3


def test_c7_5_c7_6_cells_tell_what_they_hold_and_list_their_ios(run_of: RunOf, said: Said, tmp_path: Path) -> None:
    """The command that a click shows lists exactly the I/Os of the cell."""
    run = run_of("fio-libaio-qd16-hdd-bfq")
    filters = ("-i", "reads", "-d", "8:0", "--window", "1.4:3.03", "--latency", "100us..10ms")
    said("heatmap", run.path, "-o", tmp_path / "h.svg", "--grid", "--accstats", *filters)
    cells = cells_of(tmp_path / "h.svg")
    fullest = max(cells, key=lambda e: int(e.get("data-count", "0")))
    assert fullest.get("fill") == "rgb(255,0,0)"
    for cell in (fullest, cells[0], cells[-1]):
        told, command = cell.get("data-told", ""), shlex.split(cell.get("data-list", ""))
        assert f"count: {cell.get('data-count')}, colpct: " in told and ", acc pct: " in told
        assert command[:2] == ["opline", "log"]
        assert len(said(*command[1:])[0].splitlines()) - 1 == int(cell.get("data-count", "0"))
        assert [e.text for e in cell.iter(f"{SVG}title")] == [told]


def test_c7_3_the_pictures_options(three: Path, said: Said, tmp_path: Path) -> None:
    def drawn(*options: str) -> ET.Element:
        said("heatmap", three, "-o", tmp_path / "x.svg", *options)
        return ET.parse(tmp_path / "x.svg").getroot()

    def cells(root: ET.Element) -> list[ET.Element]:
        return [e for e in root.iter(f"{SVG}rect") if e.get("class") == "cell"]

    def texts(root: ET.Element) -> list[str]:
        return [e.text or "" for e in root.iter(f"{SVG}text")]

    plain = drawn()
    assert "Latency Heat Map" in texts(plain) and not list(plain.iter(f"{SVG}line"))
    assert list(drawn("--grid").iter(f"{SVG}line"))
    assert "<b> & c" in texts(drawn("--title=<b> & c"))
    assert "\\x1b[31mred" in texts(drawn("--title=\x1b[31mred")), "XML has no such character"
    assert {e.get("width") for e in cells(drawn("--boxsize=5"))} == {"5"}
    fonts = {(e.get("font-family") or "").split(",")[0] for e in drawn("--fonttype=Arial").iter(f"{SVG}text")}
    assert fonts == {"Arial"}
    assert "20" in {e.get("font-size") for e in drawn("--fontsize=20").iter(f"{SVG}text")}
    tall = [float(drawn(f"--rows={n}", "--linear").get("height", "0")) for n in (10, 20)]
    assert tall[1] - tall[0] == pytest.approx(10 * 8)
    assert len(cells(drawn("--stepsec=0.0001", "--maxcol=12"))) == 1, "only the first I/O completed by then"

    def told(*options: str) -> str:
        return "\n".join(e.get("data-told") or "" for e in cells(drawn(*options)))

    whole = told("--steplat=100")
    lows = sorted(int(low) for low in re.findall(r"range (\d+)-\d+us", whole))
    assert len(lows) == 3, whole
    assert f"below {lows[1]}us" in told(f"--minlat={lows[1]}", "--steplat=100"), "what --minlat leaves out has a row"
    assert f"{lows[1]}us and above" in told(f"--maxlat={lows[1]}", "--steplat=100")
    assert "acc pct" in told("--accstats") and "acc pct" not in whole
    assert any("range 1000-1500us" in (e.get("data-told") or "") for e in cells(drawn("--steplat=500")))
    assert any("time 0.0078-0.0079s" in (e.get("data-told") or "") for e in cells(drawn("--stepsec=0.0001")))


def test_c7_4_too_many_columns_or_rows(three: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["heatmap", str(three), "--stepsec=0.0000001"]) == 2
    assert "Too many columns" in capfd.readouterr().err
    assert main(["heatmap", str(three), "--steplat=0"]) == 2
    assert "Row resolution too high" in capfd.readouterr().err


def test_c7_11_c7_16_sizes_offsets_and_a_map_per_disk(three: Path, said: Said) -> None:
    found = json.loads(said("heatmap", three, "--value", "size", "--json")[0])
    assert sum(c["sum"] for c in found["cells"]) == 4096 + 4096 + 24576
    found = json.loads(said("heatmap", three, "--value", "offset", "--json")[0])
    assert sum(c["sum"] for c in found["cells"]) == (17039968 + 8457608 + 8) * 512
    text, _ = said("heatmap", three, "--per-device")
    assert "Heat Map: sda: 2 I/Os" in text and "Heat Map: sdb: 1 I/O," in text


def test_c7_16_pictures_of_several_devices(three: Path, said: Said, tmp_path: Path) -> None:
    said("heatmap", three, "--per-device", "-o", tmp_path / "x.svg")
    ios = {path.name: path.read_text().count('data-count="') for path in tmp_path.glob("x*.svg")}
    assert ios == {"x-sda.svg": 2, "x-sdb.svg": 1}
    assert main(["heatmap", str(three), "--per-device", "--json"]) == 2


def test_subsecond_offsets_of_a_run_are_when_in_their_second_its_ios_completed(said: Said, tmp_path: Path) -> None:
    """A second is counted from the first event, a column is a second, and a cell's command lists its I/Os."""
    text = tmp_path / "a.txt"
    first_ns, ends_ns = 50_250_000_000, [900_000_000, 1_010_000_000, 1_015_000_000, 3_990_000_000, 4_000_000_000]
    lines = [
        f" fio 10 [001] {ns // 10**9}.{ns % 10**9:09}: block:block_rq_{step} {8 * n} + 8 [{last}]\n"
        for n, end in enumerate(ends_ns, 1)
        for ns, step, last in (
            (first_ns + (0 if n == 1 else end - 1000), "issue: 8,0 W 4096 ()", "fio"),
            (first_ns + end, "complete: 8,0 W ()", "0"),
        )
    ]
    text.write_text("".join(lines))
    found = json.loads(said("heatmap", text, "--value", "subsecond", "--rows=50", "--json")[0])
    assert (found["step_ns"], found["columns"], len(found["rows"])) == (10**9, 5, 50)
    expected = {(end // 10**9, end % 10**9 // 20_000_000) for end in ends_ns}
    cells = {(cell["column"], cell["row"]): cell["count"] for cell in found["cells"]}
    assert set(cells) == expected and cells[1, 0] == 2
    picture = tmp_path / "a.svg"
    said("heatmap", text, "--value", "subsecond", "-o", picture)
    command = re.search(rf"log {text} --window 1.000000000:1.020000000", picture.read_text())
    assert command is not None
    assert len(said(*shlex.split(command[0]), "--csv")[0].splitlines()) == 3
    assert "low_ns" in said("heatmap", text, "--value", "subsecond", "--csv")[0]


def test_c7_3_the_defaults_of_trace2heatmap(three: Path, said: Said, tmp_path: Path) -> None:
    """A column is a second, and there are 50 rows of one height; both can be set."""
    style = ("heatmap", "--style", "trace2heatmap", "--json")
    found = json.loads(said(*style, three)[0])
    assert (found["step_ns"], len(found["rows"])) == (10**9, 50)
    assert len({high - low for low, high in found["rows"]}) == 1
    assert json.loads(said(*style, three, "--stepsec=0.5", "--rows=10")[0])["step_ns"] == 500_000_000
    text = tmp_path / "a.txt"
    text.write_text("".join(f"{n * 1_000_000} {n}\n" for n in range(100)))
    found = json.loads(said(*style, text, "--unitstime=us")[0])
    assert (found["columns"], len(found["rows"])) == (100, 50)


def test_c3_7_c3_8_c3_13_colours_of_the_terminal(three: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [step_of(v, 60) for v in (0, 1, 9, 10, 59, 60, 99)] == [0, 1, 1, 2, 6, 6, 6]
    assert (BLUE, RED) == ((15, 51, 45, 39, 33, 27, 21), (15, 226, 220, 214, 208, 202, 196))
    assert (heat(0), heat(1)) == ((255, 255, 255), (255, 0, 0))
    blue, red = (said("heatmap", three, "--color", "256", "--map", m)[0] for m in ("count", "waited"))
    assert "\x1b[48;5;21m" in blue and "\x1b[48;5;196m" in red and "\x1b[48;5;21m" not in red
    assert "\x1b[48;2;255;0;0m" in said("heatmap", three, "--color", "true")[0]
    plain, _ = said("heatmap", three)
    assert "\x1b" not in plain, "a pipe gets no colours"
    assert max(map(len, plain.splitlines())) <= 80
    rows = [line.split("|")[1] for line in plain.splitlines() if line.count("|") == 2]
    assert sum(c != " " for row in rows for c in row) == 3
