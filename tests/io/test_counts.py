# SPDX-License-Identifier: MIT
"""Histograms of other tools: each layout gives the same counts in the same buckets, and what is odd is said."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opline_analyses.cli import main

Answer = Callable[..., Any]
RECORD = "<begin record>\ntimestamp, microsec, {at}, Mar 14, CET\nlabel, 8 KB, reads\n{body}<end record>\n\njunk, 7\n"


def records(*bodies: str, unit: str = "microsec", source: str | None = "systemtap") -> str:
    """Records one second apart."""
    meta = f"latencyunit,{unit}\n" + (f"datasource, {source}\n" if source else "")
    return "junk\n" + "".join(RECORD.format(at=10**6 * n, body=body + meta) for n, body in enumerate(bodies, 1000))


@pytest.fixture
def counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Answer:
    """The document of `opline hist` of a text, its intervals in seconds where asked for, and what was said."""

    def run(text: str, *options: str) -> tuple[Any, str]:
        file = tmp_path / "input.txt"
        file.write_text(text)
        assert main(["hist", str(file), *options, "--json"]) == 0
        out, err = capfd.readouterr()
        return json.loads(out), err

    return run


@pytest.fixture
def refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Answer:
    def run(text: str, *words: str, status: int = 1) -> str:
        file = tmp_path / "input.txt"
        file.write_text(text)
        assert main([words[0] if words else "hist", str(file), *words[1:]]) == status
        return capfd.readouterr().err

    return run


def buckets(found: Any, interval: int = 0) -> dict[str, dict[tuple[int, int], int]]:
    """Counts by group and bucket, in us where that is exact."""
    groups = found["intervals"][interval]["groups"]
    return {g["group"]: {(b["low_ns"], b["high_ns"]): b["count"] for b in g["buckets"]} for g in groups}


def us(*edges: tuple[int, int]) -> list[tuple[int, int]]:
    return [(low * 1000, high * 1000) for low, high in edges]


def test_c3_1_c3_5_records_in_any_form(counted: Answer) -> None:
    """Cases, spaces, commas in texts, lines in any order, junk between; the first record only begins the counting."""
    text = records("64,1\n", "64,4\n 128 , 2 \n", "64,4\n128,5\n")
    for form in (text, text.replace("<begin record>", " < Begin  Record >").replace("label", "LABEL")):
        found, _ = counted(form, "1")
        assert buckets(found, 0) == {"": dict(zip(us((64, 128), (128, 256)), (3, 2), strict=True))}
        assert buckets(found, 1) == {"": {(128_000, 256_000): 3}}
        assert found["label"] == "8 KB, reads" and len(found["intervals"]) == 2


@pytest.mark.parametrize("seed", range(5))
def test_c3_1_lines_of_a_record_in_any_order(counted: Answer, seed: int) -> None:
    """Buckets and what is said of them, all in capitals, with a comma in the date, junk before and behind."""
    chance = random.Random(seed)

    def record(at: int, counts: dict[int, int]) -> str:
        said = ["timestamp,microsec,{},Mar 14, 10:00:00, CET", "label,8 KB, reads, all", "latencyunit,millisec"]
        lines = [line.format(at) for line in said] + [f"{low},{n}" for low, n in counts.items()]
        lines += ["datasource,dtrace"]
        chance.shuffle(lines)
        return "\n".join(["junk, 3", "<begin record>", *lines, "<end record>", "4,99", ""])

    text = "".join(record(n * 10**6, {2: 3 * n, 64: n}) for n in range(1, 4))
    wanted = {"": {(2 * 10**6, 4 * 10**6): 3, (64 * 10**6, 128 * 10**6): 1}}
    for form in (text, text.upper()):
        found, _ = counted(form, "1")
        assert [buckets(found, n) for n in (0, 1)] == [wanted, wanted]
        assert found["label"].lower() == "8 kb, reads, all"


@pytest.mark.parametrize("source", ["oracle", "systemtap", "dtrace", "bpf"])
@pytest.mark.parametrize("unit", ["millisec", "microsec", "nanosec"])
def test_c3_1_c3_9_c3_17_every_source_in_every_unit(counted: Answer, source: str, unit: str) -> None:
    """8 holds 4 to 8 with Oracle, else 8 to 16: of whatever unit."""
    ns = {"millisec": 10**6, "microsec": 1000, "nanosec": 1}[unit]
    found, _ = counted(records("8,1\n", "8,3\n", unit=unit, source=source))
    low, high = (4, 8) if source == "oracle" else (8, 16)
    assert buckets(found) == {"": {(low * ns, high * ns): 2}}


def test_c3_3_c3_4_c3_9_buckets(counted: Answer, refused: Answer) -> None:
    """Of instances summed; 0 is the lowest; Oracle's end where they are named, the others begin there."""
    found, _ = counted(records("1,0\n", "1,5\n1,7\n0,2\n4,1\n"))
    assert buckets(found) == {"": dict(zip(us((0, 1), (1, 2), (4, 8)), (2, 12, 1), strict=True))}
    found, _ = counted(records("1,0\n", "1,5\n8,1\n", source="oracle"))
    assert buckets(found) == {"": dict(zip(us((0, 1), (4, 8)), (5, 1), strict=True))}, "5 us are in 8"
    assert "line 5: the bucket 3 is not a power of two" in refused(records("3,1\n"))
    assert "the latency unit weeks" in refused(records("4,1\n", unit="weeks"))
    assert "the data source stars" in refused(records("4,1\n", source="stars"))
    assert "not a bucket and its count: 4,x" in refused(records("4,x\n"))


def test_c3_6_a_tool_that_began_again(counted: Answer) -> None:
    found, err = counted(records("64,100\n", "64,103\n", "64,2\n", "64,5\n"), "1")
    assert [i["count"] for i in found["intervals"]] == [3, 2, 3]
    assert [i["restarted"] for i in found["intervals"]] == [False, True, False]
    assert "the tool began again here" in err


def test_c3_8_c3_17_time_waited_is_the_buckets_middles(counted: Answer) -> None:
    """1024 of Oracle is about 768, of the others 1536; the unit is the records'."""
    for source, unit, about in (
        ("oracle", "microsec", 768_000),
        ("bpf", "millisec", 1_536_000_000),
        ("dtrace", "nanosec", 1536),
    ):
        found, _ = counted(records("1024,0\n", "1024,1\n", unit=unit, source=source))
        ((bucket,),) = (group["buckets"] for group in found["intervals"][0]["groups"])
        assert bucket["about_ns"] == about


def test_what_records_do_not_say(counted: Answer, refused: Answer) -> None:
    text = records("64,0\n", "64,1\n", source=None)
    assert "2 records" in counted(text)[1] and "--datasource oracle" in counted(text)[1]
    assert buckets(counted(text, "--datasource", "oracle")[0]) == {"": {(32_000, 64_000): 1}}
    assert "one histogram of counts that grow" in counted(records("64,3\n"))[1]
    assert "has no end" in counted(records("64,0\n", "64,1\n") + "<begin record>\n64,2\n")[1]
    assert "has no complete histogram" in refused("<begin record>\n64,2\n")


HIST_LOG = """\
Block I/O latency histogram, measurement time: 10 seconds, I/O count: {n}
Value = latency bucket (microseconds), count=I/O operations in 10 seconds
 value |-------------------------------------------------- count
    64 |                                                    0
   128 |@@@@@                                               5
     ~
  4096 |@@                                                  {n}
"""
QUANTIZE = """\
 CPU     ID                    FUNCTION:NAME
   3  72639                        :tick-10s
  {name}
           value  ------------- Distribution ------------- count
              -1 |                                         2
            4096 |@@@@                                     5
            8192 |                                         0
           16384 |@                                        1
"""
BIOLATENCY = """\
{time}
disk = 'sda'
     usecs               : count     distribution
         0 -> 1          : 3        |******              |
         2 -> 3          : 0        |                    |
         4 -> 7          : 20       |********************|

disk = 'sdb'
     usecs               : count     distribution
         0 -> 1          : 1        |********************|

"""
BPFTRACE = """\
Attaching 3 probes...
@usecs[sda]:
[0]                    1 |@@                       |
[4, 8)                 3 |@@@                      |
[1K, 2K)               2 |@@@                      |
"""


def test_c3_16_systemtaps_tables(counted: Answer) -> None:
    """Alone, and in records, where PyLatencyMap needs a connector. The gap `~` is empty."""
    found, _ = counted(HIST_LOG.format(n=9) + HIST_LOG.format(n=2), "10")
    wanted = dict(zip(us((128, 256), (4096, 8192)), (5, 9), strict=True))
    assert buckets(found) == {"": wanted} and [i["count"] for i in found["intervals"]] == [14, 7]
    inside, _ = counted(records(*(HIST_LOG.format(n=n).split("10 seconds\n")[1] for n in (0, 9))))
    assert buckets(inside) == {"": {(4096_000, 8192_000): 9}}
    assert buckets(counted(HIST_LOG.format(n=9).split("10 seconds\n")[1], "--counted-in", "ms")[0])[""] == {
        (low * 1000, high * 1000): n for (low, high), n in wanted.items()
    }


def test_c3_16_dtraces_tables(counted: Answer) -> None:
    """What is below 0 is left out and said; keys are groups; nanoseconds."""
    found, err = counted(QUANTIZE.format(name="read") + QUANTIZE.format(name="write"))
    assert buckets(found) == {name: {(4096, 8192): 5, (16384, 32768): 1} for name in ("read", "write")}
    assert "4 counts" in err and "below 0" in err
    linear = QUANTIZE.format(name="q").replace("4096", "  10").replace("8192", "  20").replace("   16384", ">=    30")
    assert buckets(counted(linear.replace("-1", "0"))[0]) == {"q": {(0, 10): 2, (10, 20): 5, (30, 60): 1}}


def test_c3_16_bccs_tables_and_dictionaries(counted: Answer, refused: Answer) -> None:
    """0 and 1 us share a bucket. A dictionary is Python's, or JSON."""
    wanted = {"sda": {(0, 2000): 3, (4000, 8000): 20}, "sdb": {(0, 2000): 1}}
    text = "Tracing block device I/O... Hit Ctrl-C to end.\n" + "".join(
        BIOLATENCY.format(time=t) for t in ("23:59:58", "00:00:00")
    )
    found, err = counted(text, "2")
    assert [buckets(found, n) for n in (0, 1)] == [wanted, wanted]
    assert found["intervals"][1]["end_ns"] == 4 * 10**9 or err
    data = [{"interval-start": 0, "interval-end": 1, "count": 3}, {"interval-start": 4, "interval-end": 7, "count": 20}]
    lines = [
        {"ts": "2024-05-01 10:00:00", "val_type": "usecs", "data": data, "disk": "sda"},
        {"ts": "2024-05-01 10:00:00", "val_type": "usecs", "data": [data[0] | {"count": 1}], "disk": "sdb"},
    ]
    for form in (str, json.dumps):
        assert buckets(counted("".join(f"\n{form(line)}\n" for line in lines))[0]) == wanted
    assert "a bucket without begin, end and count" in refused(json.dumps(lines[0] | {"data": [{}]}) + "\n")
    assert buckets(counted(BPFTRACE)[0]) == {"sda": {(0, 1000): 1, (4000, 8000): 3, (1024_000, 2048_000): 2}}


def netapp(counts: dict[str, int]) -> str:
    return "beautifier: vol1 reads\n" + "".join(f"volume:vol1:read_latency.{edge}:{n}\n" for edge, n in counts.items())


def test_c3_18_netapps_counters(
    counted: Answer, refused: Answer, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Upper ends in any unit, the last one open: nothing is dropped. As a record, 600 us are in 1024."""
    text = netapp({"<400us": 1, "<600us": 5, "<1ms": 0, "<2s": 2, "<120s": 1, ">120s": 3})
    found, err = counted(text)
    assert buckets(found)[""] == dict(
        zip(us((0, 400), (400, 600), (1000, 2 * 10**6), (2 * 10**6, 12 * 10**7), (12 * 10**7, 24 * 10**7)),
            (1, 5, 2, 1, 3), strict=True)
    )  # fmt: skip
    assert found["label"] == "vol1 reads" and "3 are in a bucket without an upper end" in err
    assert main(["hist", str(tmp_path / "input.txt"), "--style", "latencymap"]) == 0
    out = capfd.readouterr().out
    assert "datasource,oracle" in out and "\n1024,5\n" in out and "\n512,1\n" in out
    page = (Path(__file__).resolve().parents[2] / "docs" / "coming-from.md").read_text()
    for option in ("-jp", "-user", "-password", "-clustermgmt", "-histogram", "-iteractions", "-interval"):
        assert option in page, "what the script that asks a filer is to be given"
    assert "line 3: the bucket <20us is not above" in refused(netapp({"<40us": 1, "<20us": 5, ">20us": 0}))


def waits(*rows: tuple[int, int, str]) -> str:
    return "PARSING IN CURSOR #1\n" + "".join(
        f"WAIT #46929157733848: nam='{name}' ela= {ela} file#=7 blocks=1 obj#=82008 tim={tim}\n"
        for tim, ela, name in rows
    )


def test_c3_16_oracles_trace_has_exact_waits(counted: Answer, refused: Answer) -> None:
    read, sync = "db file sequential read", "log file sync"
    text = waits((10**6, 977, read), (10**6 + 5, 4, sync), (3 * 10**6, 1024, read.upper()))
    found, _ = counted(text, "1")
    assert [i["groups"] and i["groups"][0]["sum_ns"] for i in found["intervals"]] == [977_000, [], 1024_000]
    assert counted(text, "-e", "Log File Sync")[0]["intervals"][0]["groups"][0]["sum_ns"] == 4000
    assert len(counted(text, "1", "--case-sensitive")[0]["intervals"]) == 1
    assert "--event names another one: db file sequential read, log file sync" in refused(text, "hist", "-e", "none")


def test_numbers_that_no_column_holds_are_one_line(refused: Answer) -> None:
    err = refused("1000000 5\n3000000 1e300\n")
    assert "has a number that is too large" in err and len(err.splitlines()) == 1
    assert "too large" in refused(waits((10**18, 977, "db file sequential read")))
    assert "not a bucket and its count" in refused(records("9" * 5000 + ",1\n"))
    assert "too large" in refused("0 1e15\n1 9e15\n", "hist", "--unit", "s")
    for command in ("hist", "heatmap"):
        assert "too large" in refused("-9e18 5\n9e18 5\n", command, "--unitstime", "ns")


def test_sums_are_exact_beyond_64_bits(counted: Answer) -> None:
    found, _ = counted("0 9e12\n0 9e12\n0 9e12\n" * 2000, "--unit", "us")
    assert found["intervals"][0]["groups"][0]["sum_ns"] == 6000 * 9 * 10**15


@pytest.mark.parametrize("text", ["1 5\n3000000 9\n", records("64,1\n", "64,3\n", "64,9\n")])
def test_more_intervals_than_anybody_reads_are_refused(text: str, refused: Answer, counted: Answer) -> None:
    """An input of two lines could fill the memory."""
    step = "1" if text.startswith("1") else "1us"
    assert "choose a longer one" in refused(text, "hist", step, status=2)
    assert len(counted(text, step, "5")[0]["intervals"]) == 5


def test_intervals_that_fall_together_are_summed(counted: Answer) -> None:
    found, _ = counted(records("64,0\n", "64,3\n", "64,9\n") + records("64,9\n", "64,9\n", "64,11\n"), "1")
    assert sum(i["count"] for i in found["intervals"]) == 11


def test_histograms_without_a_count_are_not_drawn(refused: Answer, tmp_path: Path) -> None:
    text = (
        BIOLATENCY.format(time="10:00:00").partition("     usecs ")[0]
        + "     usecs               : count     distribution\n"
    )
    assert "nothing to draw" in refused(text, "heatmap", "-o", str(tmp_path / "x.svg"))
    assert not (tmp_path / "x.svg").exists()


def test_two_columns_have_a_histogram(counted: Answer) -> None:
    found, _ = counted("1000000 5\n3000000 9.5\n", "--unitstime", "us", "--unit", "ms")
    assert found["intervals"][0]["groups"][0]["sum_ns"] == 14_500_000


def test_a_map_of_histograms(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A column for each, a row for each bucket; a picture, too. Nothing is left out."""
    file = tmp_path / "input.txt"
    file.write_text(records("64,0\n", "64,3\n1024,2\n", "64,4\n1024,9\n"))
    assert main(["heatmap", str(file), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert [(c["column"], c["row"], c["count"]) for c in found["cells"]] == [(0, 0, 3), (0, 4, 2), (1, 0, 1), (1, 4, 7)]
    assert found["rows"][4] == [1024_000, 2048_000]
    assert main(["heatmap", str(file), "-o", str(tmp_path / "x.svg"), "--map", "waited"]) == 0
    assert main(["heatmap", str(file)]) == 0
    assert "Latency Heat Map: 8 KB, reads: 13 events, a column is 1 s" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("iostat",), "only `opline hist` and `opline heatmap`"),
        (("stages", "--model", "generic"), "only `opline hist` and `opline heatmap`"),
        (("hist", "-d", "sda"), "without single I/Os --device can't be answered"),
        (("heatmap", "--percentiles", "50"), "without single I/Os --percentiles can't be answered"),
    ],
)
def test_what_counts_cannot_answer(words: tuple[str, ...], said: str, refused: Answer) -> None:
    err = refused(records("64,1\n", "64,2\n"), *words, status=2)
    assert said in err and len(err.splitlines()) == 1


def test_c7_19_a_pipe_is_looked_into_and_read_from_its_begin(tmp_path: Path) -> None:
    """In pieces, with a pause in the middle of a line."""
    text = records("64,0\n", "64,3\n").encode()
    program = [sys.executable, "-m", "opline_analyses", "hist", "-", "--csv"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as process:
        assert process.stdin is not None and process.stdout is not None
        for piece in (text[:1], text[1:30], text[30:]):
            process.stdin.write(piece)
            process.stdin.flush()
        process.stdin.close()
        assert b",64000,128000,3," in process.stdout.read()
