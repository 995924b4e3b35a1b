# SPDX-License-Identifier: MIT
"""Histograms and latencies of bpftrace -f json, biolatency and fio; figures of benchmarks, as they are refused."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opline.errors import OplineError
from opline_analyses.cli import main
from opline_analyses.client.client import parse_report, read_report
from opline_analyses.counts.formats.fio_bins import bucket_of
from opline_analyses.counts.formats.fio_hist_log import low_edge

Captured = pytest.CaptureFixture[str]


def hist(path: Path, capfd: Captured, *options: str) -> tuple[dict[str, dict[tuple[int, int], int]], str]:
    """The buckets of all intervals by group, and what was said."""
    capfd.readouterr()
    assert main(["hist", str(path), "--json", *options]) == 0
    said = capfd.readouterr()
    found: dict[str, dict[tuple[int, int], int]] = {}
    for interval in json.loads(said.out)["intervals"]:
        for group in interval["groups"]:
            mine = found.setdefault(group["group"], {})
            for bucket in group["buckets"]:
                if bucket["count"]:
                    key = (bucket["low_ns"], bucket["high_ns"])
                    mine[key] = mine.get(key, 0) + bucket["count"]
    return found, said.err


LIST = [{"max": -1, "count": 1}, {"min": 2, "max": 3, "count": 7}, {"min": 4, "max": 7, "count": 2}]


@pytest.mark.parametrize(
    ("name", "unit", "said"), [("@usecs", 1000, ""), ("@ns", 1, ""), ("@x", 1000, "us is a guess")]
)
@pytest.mark.parametrize("keyed", [False, True])
def test_bpftraces_json(name: str, unit: int, said: str, keyed: bool, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.json"
    data: Any = {"sda": LIST, "sdb": LIST[1:2]} if keyed else LIST
    documents: list[dict[str, Any]] = [
        {"type": "attached_probes", "data": {"probes": 2}}, {"type": "time", "data": "10:00:01\n"},
        {"type": "hist", "data": {name: data}}, {"type": "map", "data": {"@n": 3}},
        {"type": "time", "data": "10:00:02\n"}, {"type": "hist", "data": {name: data}},
        {"type": "hist", "data": {"@bytes": LIST}},
    ]  # fmt: skip
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    found, err = hist(path, capfd)
    buckets = {(2 * unit, 4 * unit): 14, (4 * unit, 8 * unit): 4}
    wanted = {"sda": buckets, "sdb": {(2 * unit, 4 * unit): 14}} if keyed else {name: buckets}
    assert found == wanted
    assert said in err and "the map @bytes has no times" in err and "in buckets below 0" in err


BIOLATENCY = """\
Tracing block device I/O... Hit Ctrl-C to end.

{name}
     {unit}               : count     distribution
         0 -> 1          : 0        |                                        |
         2 -> 3          : 5        |***                                     |
         4 -> 7          : 12       |****************************************|

"""


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("", ""), ("disk = 'xvdb'", "xvdb"), ("disk = b'xvdb'", "xvdb"), ("disk = xvdb", "xvdb"),
        ("flags = Sync-Read", "Sync-Read"), ("disk = xvdb\tflags = Write", "xvdb, Write"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("unit", "ns"), [("usecs", 1000), ("msecs", 10**6), ("nsecs", 1)])
def test_biolatency(name: str, group: str, unit: str, ns: int, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(BIOLATENCY.format(name=name, unit=unit))
    found, _ = hist(path, capfd)
    assert found == {group: {(2 * ns, 4 * ns): 5, (4 * ns, 8 * ns): 12}}


@pytest.mark.parametrize("rest", ["", ", 4096", ", 4096, 0x0004", ", 4096, 0, 123456789"])
def test_fios_log_of_all_jobs(rest: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "x_lat.log"
    path.write_text("".join(f"{at}, {ns}, {at % 2}, 4096{rest}\n" for at, ns in ((1, 100), (900, 300), (2, 5000))))
    found, err = hist(path, capfd, "--unit", "ns")
    assert found == {"": {(64, 128): 1, (256, 512): 1, (4096, 8192): 1}}
    assert ("fio before 3.0 wrote us" in err) == (rest == "")
    scaled = {(low * 1000, high * 1000): n for (low, high), n in found[""].items()}
    assert hist(path, capfd, "--unit", "us", "--counted-in", "us")[0] == {"": scaled}


def test_fios_averaged_log_is_said(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "x_clat.1.log"
    path.write_text("500, 1000, 0, 0, 0\n1000, 3000, 0, 0, 0\n")
    assert "is the mean of an interval (log_avg_msec)" in hist(path, capfd)[1]


@pytest.mark.parametrize("name", ["x_bw.1.log", "x_iops.log"])
def test_fios_logs_of_bandwidth_are_no_latencies(name: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / name
    path.write_text("500, 1000, 0, 0\n1000, 3000, 0, 0\n")
    assert main(["hist", str(path)]) == 1
    assert "log of bandwidth or IOPS" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("value", "bucket"),
    [
        (5, (5, 6)),
        (127, (127, 128)),
        (129, (128, 130)),
        (131, (130, 132)),
        (258, (256, 260)),
        (1003520, (999424, 1007616)),
    ],
)
def test_the_edges_of_fios_bins(value: int, bucket: tuple[int, int]) -> None:
    """The middles are those that fio's plat_idx_to_val gives: base + (k + 0.5) * width."""
    assert bucket_of(value) == bucket


def test_fios_bins(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.json"
    job = {"read": {"clat_ns": {"bins": {"129": 3, "257": 4}}}, "write": {}, "job_runtime": 2000}
    path.write_text("fio: a warning\n" + json.dumps({"fio version": "fio-3.33", "jobs": [job, job]}, indent=1))
    assert hist(path, capfd)[0] == {"read": {(128, 130): 6, (256, 260): 8}}


@pytest.mark.parametrize(("bins", "unit_ns"), [(1856, 1), (1216, 1000)])
@pytest.mark.parametrize("coarse", [0, 3])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fios_log_of_histograms(
    bins: int, unit_ns: int, coarse: int, end: str, tmp_path: Path, capfd: Captured
) -> None:
    """Each bin's edges are those of the bins of json+, whose names are their middles."""
    path = tmp_path / "x_clat_hist.1.log"
    latencies = [5, 127, 300, 4095, 70_000, 70_001]
    counts = [0] * (bins >> coarse)
    expected: dict[tuple[int, int], int] = {}
    for latency in latencies:
        place = next(n for n in range(bins) if low_edge(n) <= latency < low_edge(n + 1)) >> coarse
        counts[place] += 1
        edges = (low_edge(place << coarse) * unit_ns, low_edge((place + 1) << coarse) * unit_ns)
        assert coarse or edges == tuple(edge * unit_ns for edge in bucket_of(latency))
        expected[edges] = expected.get(edges, 0) + 1
    line = ", ".join(map(str, counts))
    cut = f"1500, 0, 4096, {line[: len(line) // 2]}"
    path.write_text("".join(f"{at}, {way}, 4096, {line}{end}" for at, way in ((500, 0), (504, 1), (1000, 0))) + cut)
    found, err = hist(path, capfd, "--unit", "ns")
    assert found == {"read": {edges: 2 * n for edges, n in expected.items()}, "write": expected}
    assert "line 4: cut off" in err


def test_fios_terse_report_is_refused_with_the_reason(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text("3;fio-3.33;a;0;0;15700;15684;3921;1001;0;0;0.000000;0.000000;33;8952;125.595379;489.393960\n")
    assert main(["hist", str(path)]) == 2
    assert "is fio's report" in capfd.readouterr().err
    with pytest.raises(OplineError, match="--output-format=json"):
        read_report(path)


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip -dc": gzip.compress,
    "xz -dc": lzma.compress,
    "bzip2 -dc": bz2.compress,
}


@pytest.mark.parametrize("command", PACKED)
def test_a_compressed_input_is_named_with_the_command_that_unpacks_it(
    command: str, tmp_path: Path, capfd: Captured
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(PACKED[command](b"  8,0 1 1 0.000000000 697 D W 8 + 8 [x]\n"))
    for words in (["hist", str(path)], ["losses", str(path)], ["coverage", str(path), "--client", str(path)]):
        assert main(words) == 1
        err = capfd.readouterr().err
        assert f"({command} {path} > FILE)" in err and err.count("\n") == 1
    path = path.rename(tmp_path / "a.tar.gz")
    assert main(["hist", str(path)]) == 1
    assert f"tar -xf {path}" in capfd.readouterr().err


def test_output_of_another_tool_besides_is_said_to_be_left_out(tmp_path: Path, capfd: Captured) -> None:
    histogram = "$ biolatency\n" + ROWS.format(5, 5)
    listing = "$ biosnoop\nTIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n1.5 fio 7 sda W 8 4096 3.00\n"
    for number, text in enumerate((histogram + listing, listing + histogram + "regards\n")):
        path = tmp_path / f"{number}.txt"
        path.write_text(text)
        for command in ("hist", "log"):
            assert main([command, str(path)]) == 0
        (said,) = capfd.readouterr().err.splitlines()
        assert "has histograms as text, too: that is left out" in said
    path = tmp_path / "one.txt"
    path.write_text(listing)
    assert main(["log", str(path)]) == 0
    assert "left out" not in capfd.readouterr().err


def test_a_picture_for_each_group_of_histograms(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text("@us[sda]: \n[8, 16)  4 |@|\n@us[sdb]: \n[8, 16)  6 |@|\n")
    assert main(["heatmap", str(path), "-o", str(tmp_path / "x.svg")]) == 0
    assert sorted(one.name for one in tmp_path.glob("x*")) == ["x-sda.svg", "x-sdb.svg"]


def test_an_empty_input_is_said_to_be(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    assert main(["hist", str(path)]) == 1
    assert "is empty" in capfd.readouterr().err


ROWS = """\
     usecs               : count     distribution
         0 -> 1          : {}        |**                                      |
         2 -> 3          : 0        |                                        |
"""


@pytest.mark.parametrize(
    ("titles", "names"),
    [
        (("operation = read", "operation = 'write'"), ["read", "write"]),
        (("Function = b'vfs_read'", 'Function = "vfs_write"'), ["vfs_read", "vfs_write"]),
        (("pid = 12", "pid = 13"), ["pid 12", "pid 13"]),
        (("Bucket ptr = b'xvdb'", "Bucket ptr = b'xvdc'"), ["xvdb", "xvdc"]),
        (("disk = sda\t\nflags = Read", "disk = sdb\t\nflags = Read"), ["sda, Read", "sdb, Read"]),
        (("filesystem = ext4", "filesystem = 'proc fs'"), ["ext4", "proc fs"]),
    ],
)
def test_each_title_of_bcc_is_a_histogram_of_its_own(
    titles: tuple[str, str], names: list[str], tmp_path: Path, capfd: Captured
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"\n{title}\n{ROWS.format(n)}avg = 1 usecs\n" for n, title in enumerate(titles, 3)))
    found, _ = hist(path, capfd)
    assert found == {name: {(0, 2000): n} for n, name in enumerate(names, 3)}


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("length", [1, 5])
def test_iolatencys_table(unit: str, length: int, tmp_path: Path, capfd: Captured) -> None:
    """Its buckets do not have their upper ends, as its header says."""
    path = tmp_path / "a.txt"
    table = f"\n  >=({unit}) .. <({unit})   : I/O      |Distribution                          |\n"
    table += "       0 -> 1       : 4381     |######################################|\n"
    table += "       4 -> 8       : 5        |#                                     |\n"
    path.write_text(f"Tracing block I/O. Output every {length} seconds. Ctrl-C to end.\n{table}{table}")
    scale = {"ms": 10**6, "us": 1000}[unit]
    assert hist(path, capfd)[0] == {"": {(0, scale): 2 * 4381, (4 * scale, 8 * scale): 2 * 5}}
    assert main(["hist", str(path), "--json", "1"]) == 0
    last = json.loads(capfd.readouterr().out)["intervals"][-1]
    assert last["end_ns"] == 2 * length * 10**9


def test_a_unit_with_a_number_is_none(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text("@lat_100us: \n[2, 4)   7 |@@@@ |\n")
    found, err = hist(path, capfd)
    assert found == {"@lat_100us": {(2000, 4000): 7}} and "us is a guess" in err


@pytest.mark.parametrize("line", ["501 12345 R 12345678 4096 bash", "1 2 3", "7 8 no 3"])
def test_a_table_of_more_columns_is_no_time_and_value(line: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"  UID   PID D     BLOCK   SIZE       COMM\n{line}\n" * 2)
    assert main(["heatmap", str(path)]) == 1
    assert "of no format that opline knows" in capfd.readouterr().err


OSD = {
    "op_latency": {"avgcount": 4, "sum": 0.02, "avgtime": 0.005}, "op_out_bytes": 4096, "op_in_bytes": 0,
    "op_r_latency": {"avgcount": 1, "sum": 0.002}, "op_w_latency": {"avgcount": 3, "sum": 0.018},
}  # fmt: skip
COUNTERS = {"osd": OSD}
FIGURES = {
    "fio": json.dumps({"fio version": "fio-3.33", "jobs": []}),
    "fio text": "a: (groupid=0, jobs=1): err= 0: pid=1: Tue\n  read: IOPS=1\n",
    "rados": "Total time run:         10.1\nTotal writes made:      100\nAverage Latency(s):     0.1\n",
    "demo": json.dumps({"tool": "demo-bench"}),
    "ceph": json.dumps(COUNTERS, indent=4),
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("command", ["hist", "log", "stages", "heatmap", "requests", "events"])
def test_figures_are_refused_in_the_same_line(name: str, command: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a"
    path.write_text(FIGURES[name])
    assert main([command, str(path)]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"opline: {path} is ")
    assert line.endswith(f": figures of a benchmark: `opline coverage RUN --client {path}` compares a run with them.")


def test_cephs_counters_are_a_clients_figures() -> None:
    report = parse_report(json.dumps(COUNTERS))
    assert report is not None
    assert (report.mean_ns, report.count) == (5_000_000, 4)
    assert report.by_class == {"read": (1, 2_000_000), "write": (3, 6_000_000)}


@pytest.mark.parametrize(
    ("text", "buckets"),
    [
        ("@ms: \n[2, 4)   7 |@@@@ |\n", {(2_000_000, 4_000_000): 7}),
        (
            "     msecs         : count     distribution\n         2          : 5        |***|\n",
            {(2_000_000, 3_000_000): 5},
        ),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_mark_of_utf_8_and_ends_of_lines_of_other_systems(
    text: str, buckets: dict[tuple[int, int], int], end: str, mark: str, tmp_path: Path, capfd: Captured
) -> None:
    """Editors of other systems put them there. bcc's linear histograms have a bucket for each value."""
    path, pipe = tmp_path / "a.txt", tmp_path / "pipe"
    data = (mark + text.replace("\n", end)).encode()
    path.write_bytes(data)
    found, err = hist(path, capfd)
    assert [*found.values()] == [buckets]
    assert err == ""
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    assert hist(pipe, capfd) == (found, "")
    writer.join()


def test_a_mark_of_utf_8_before_a_report(tmp_path: Path) -> None:
    path = tmp_path / "osd.json"
    path.write_text("\ufeff" + json.dumps(COUNTERS))
    assert read_report(path).count == 4
