# SPDX-License-Identifier: MIT
"""The exports for HdrHistogram, Zipkin, DuckDB and fio, and the functions of `opline sql`: against the text and the
bytes of HdrHistogram 2.2.2 (Java), the fields of zipkin2-api.yaml, DuckDB itself, and fio's replay.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import struct
import subprocess
import zlib
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from tests.lib.build_run import P, Rq, RunBuilder
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import hostile_run
from tests.program.test_export import exported

import opline
from opline_analyses.cli import main
from opline_analyses.export.hdr_counts import HdrCounts, index_of, range_of
from opline_analyses.export.hgrm import lines

VALUES = (1, 100, 1000, 1000, 2047, 2048, 5000, 123456, 7777777)
# What HdrHistogram 2.2.2 prints of them: Histogram(1, 3600000000000, 3).outputPercentileDistribution(out, 5, 1000.0),
# and encodeIntoByteBuffer.
PRINTED = """\
       Value     Percentile TotalCount 1/(1-Percentile)

       0.001 0.000000000000          1           1.00
       0.001 0.100000000000          1           1.11
       0.100 0.200000000000          2           1.25
       1.000 0.300000000000          4           1.43
       1.000 0.400000000000          4           1.67
       2.047 0.500000000000          5           2.00
       2.047 0.550000000000          5           2.22
       2.049 0.600000000000          6           2.50
       2.049 0.650000000000          6           2.86
       5.003 0.700000000000          7           3.33
       5.003 0.750000000000          7           4.00
       5.003 0.775000000000          7           4.44
     123.519 0.800000000000          8           5.00
     123.519 0.825000000000          8           5.71
     123.519 0.850000000000          8           6.67
     123.519 0.875000000000          8           8.00
     123.519 0.887500000000          8           8.89
    7778.303 0.900000000000          9          10.00
    7778.303 1.000000000000          9
#[Mean    =      878.994, StdDeviation   =     2438.847]
#[Max     =     7778.303, Total count    =            9]
#[Buckets =           32, SubBuckets     =         2048]
"""
ENCODED = "HISTEwAAABUAAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAAACwwEChQ4EqxACAsETAstKAr9fAg=="


def counts(values: tuple[int, ...]) -> HdrCounts:
    return HdrCounts(Counter(map(index_of, values)))


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


def test_the_text_of_percentiles_is_hdrhistograms_to_the_character() -> None:
    assert "".join(f"{line}\n" for line in lines(counts(VALUES))) == PRINTED


def test_the_encoding_is_hdrhistograms_to_the_byte() -> None:
    packed = base64.b64decode(counts(VALUES).encoded())
    assert struct.unpack(">ii", packed[:8]) == (0x1C849314, len(packed) - 8)
    assert zlib.decompress(packed[8:]) == base64.b64decode(ENCODED)


@pytest.mark.parametrize("value", [0, 1, 2047, 2048, 2049, 4095, 4096, 10**9, 2**40 + 7])
def test_a_value_lies_where_it_is_counted(value: int) -> None:
    least, size = range_of(index_of(value))
    assert least <= value < least + size
    assert size <= max(1, value / 1000)


def test_hgrm_has_all_ops_that_count(demo: Correlated, tmp_path: Path) -> None:
    text = exported(demo.path, "hgrm", tmp_path).decode()
    with opline.open(demo.path) as run:
        ((count, most),) = run.sql("SELECT count(*), max(latency_ns) FROM ops WHERE complete AND NOT tainted").rows()
    assert f"Total count    = {count:12d}]" in text
    shown = re.search(r"#\[Max     = +([0-9.]+),", text)
    assert shown is not None and float(shown[1]) * 1000 == pytest.approx(most, rel=0.001)


def decoded(text: str) -> Counter[int]:
    """Counts by index, of an encoded histogram."""
    payload = zlib.decompress(base64.b64decode(text)[8:])[40:]
    found: Counter[int] = Counter()
    index = number = shift = 0
    for byte in payload:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            value = (number >> 1) ^ -(number & 1)
            if value > 0:
                found[index] = value
            index += -value if value < 0 else 1
            number = shift = 0
    return found


def test_the_interval_log_has_each_op_in_its_second_and_class(demo: Correlated, tmp_path: Path) -> None:
    log = exported(demo.path, "hlog", tmp_path).decode().splitlines()
    assert log[1] == "#[Histogram log format version 1.3]"
    whole: Counter[tuple[str, int]] = Counter()
    starts = []
    for line in log[4:]:
        found = re.fullmatch(r"Tag=(\w+),(\d+\.000),1\.000,([0-9.]+),(\S+)", line)
        assert found is not None, line
        starts.append((float(found[2]), found[1]))
        for index, n in decoded(found[4]).items():
            whole[found[1], index] += n
    assert starts == sorted(set(starts))
    with opline.open(demo.path) as run:
        rows = run.sql("SELECT class, latency_ns FROM ops WHERE complete AND NOT tainted").rows()
    assert whole == Counter((name, index_of(latency)) for name, latency in rows)


def test_zipkins_spans(demo: Correlated, tmp_path: Path) -> None:
    """zipkin2-api.yaml: Span. A span lies in its parent, to the microsecond."""
    spans = json.loads(exported(demo.path, "zipkin", tmp_path, "--slowest", "20"))
    by_id = {(span["traceId"], span["id"]): span for span in spans}
    assert len(by_id) == len(spans)
    roots = [span for span in spans if "parentId" not in span]
    assert len(roots) == 20
    for span in spans:
        assert re.fullmatch(r"[0-9a-f]{32}", span["traceId"]) and re.fullmatch(r"[0-9a-f]{16}", span["id"])
        assert isinstance(span["timestamp"], int) and span["duration"] >= 1
        assert all(isinstance(value, str) for value in span["tags"].values())
        assert span["localEndpoint"]["serviceName"] == "demo"
        if "parentId" in span and not span["name"].startswith("block request"):
            parent = by_id[span["traceId"], span["parentId"]]
            assert parent["timestamp"] <= span["timestamp"]
            assert span["timestamp"] + span["duration"] <= parent["timestamp"] + parent["duration"] + 1
    for root in roots:
        stages = [s for s in spans if s.get("parentId") == root["id"] and "opline.kind" in s["tags"]]
        total = sum(int(s["tags"]["opline.duration_ns"]) for s in stages)
        assert total + int(root["tags"]["opline.unattributed_ns"]) == int(root["tags"]["opline.latency_ns"])


@pytest.mark.parametrize("which", [(), ("--class", "read")])
def test_one_duckdb_file_has_the_tables(which: tuple[str, ...], demo: Correlated, tmp_path: Path) -> None:
    file = tmp_path / "run.duckdb"
    assert main(["export", str(demo.path), "--to", "duckdb", "-o", str(file), *which]) == 0
    where = "WHERE class = 'read'" if which else ""
    with opline.open(demo.path) as run, duckdb.connect(str(file), read_only=True) as con:
        for query in (
            f"SELECT count(*), sum(latency_ns) FROM ops {where}",
            f"SELECT count(*), sum(duration_ns) FROM stages WHERE op_id IN (SELECT op_id FROM ops {where})",
            "SELECT count(*), sum(d2c_ns) FROM requests",
        ):
            assert con.sql(query).fetchall() == run.sql(query).rows()
        assert con.sql("SELECT DISTINCT dev_name(dev) FROM requests").fetchall() == [("loop1",)]
        (row,) = con.sql("SELECT min(begin_ns), min(wall(begin_ns))::VARCHAR FROM ops").fetchall()
        assert row[1].startswith("2026-11-21 11:50:5")
        ((schema,),) = con.sql("SELECT manifest->>'schema' FROM manifest").fetchall()
        assert schema == "opline-run"


def block_run(path: Path) -> Path:
    run = RunBuilder()
    for n in range(4):
        begin = 1_000_000 * n
        run.op(
            [P("begin", begin), P("end", begin + 90_000)],
            [
                Rq(
                    q=begin + 10_000,
                    g=begin + 11_000,
                    d=begin + 12_000,
                    c=begin + 80_000,
                    dev=(8 << 20) | 16,
                    sector=8 * n,
                )
            ],
            op_class="write" if n % 2 else "read",
        )
    return run.write(path)


def test_fios_log_has_the_requests_at_their_times(tmp_path: Path) -> None:
    log = exported(block_run(tmp_path / "run"), "fio-iolog", tmp_path).decode().splitlines()
    name = log[1].split()[1]
    assert log[0] == "fio version 3 iolog" and name in ("/dev/sdb", "/dev/block/8:16")
    assert log[1:3] == [f"0 {name} add", f"0 {name} open"] and log[-1] == f"3000 {name} close"
    assert [line.split()[0] for line in log[3:-1]] == ["0", "1000", "2000", "3000"]
    assert [line.split()[3] for line in log[3:-1]] == ["0", "4096", "8192", "12288"]
    of_two = exported(tmp_path / "run", "fio-iolog", tmp_path, "--class", "read").decode().splitlines()
    assert [line.split()[0] for line in of_two[3:-1]] == ["0", "2000"]


@pytest.mark.skipif(shutil.which("fio") is None, reason="no fio")
def test_fio_replays_the_log(demo: Correlated, tmp_path: Path) -> None:
    """Every request, with the engine that does no I/O."""
    (tmp_path / "log").write_bytes(exported(demo.path, "fio-iolog", tmp_path))
    (tmp_path / "disk").touch()
    with (tmp_path / "disk").open("r+b") as disk:
        disk.truncate(256 << 20)
    argv = ["fio", "--name=again", f"--read_iolog={tmp_path}/log", f"--replay_redirect={tmp_path}/disk"]
    argv += ["--ioengine=null", "--replay_no_stall=1", "--output-format=json", f"--output={tmp_path}/said"]
    subprocess.run(argv, check=True, capture_output=True, cwd=tmp_path, timeout=60)
    said = (tmp_path / "said").read_text()
    (job,) = json.loads(said[said.index("{") :])["jobs"]
    with opline.open(demo.path) as run:
        kinds = dict(run.sql("SELECT kind, count(*) FROM requests GROUP BY kind").rows())
    assert {name: job[name]["total_ios"] for name in ("read", "write")} == kinds


@pytest.mark.parametrize("form", ["hgrm", "hlog", "zipkin", "duckdb", "fio-iolog"])
def test_names_of_any_kind_do_not_break_a_format(form: str, tmp_path: Path) -> None:
    found = exported(hostile_run(tmp_path / "run"), form, tmp_path)
    if form == "zipkin":
        json.loads(found)
    if form == "hlog":
        assert all(
            re.fullmatch(r"Tag=[^,\s]+,[0-9.]+,1\.000,[0-9.]+,\S+", line) for line in found.decode().splitlines()[4:]
        )


def test_names_and_times_in_sql(demo: Correlated, capfd: pytest.CaptureFixture[str]) -> None:
    query = "SELECT dev_name(dev) AS name, wall(min(issue_ns)) AS at FROM requests GROUP BY 1"
    assert main(["sql", str(demo.path), query, "--csv"]) == 0
    assert re.fullmatch(r"name,at\nloop1,2026-11-21 11:50:59\.\d{6,9}\n", capfd.readouterr().out)
