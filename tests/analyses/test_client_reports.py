# SPDX-License-Identifier: MIT
"""Clients' reports: rados bench's, fio's, the demo store's (C1.10 to C1.12)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opline.errors import OplineError
from opline_analyses.client import checks
from opline_analyses.client.client import parse_report, read_report
from opline_analyses.client.client_report import ClientReport
from opline_analyses.client.coverage import ratio

# The ceph-devel mail's block, tabs as in the mail.
MAIL = """
	Total time run:         20.001899
	Total writes made:      16136
	Write size:             4096
	Bandwidth (MB/sec):     3.151 

	Stddev Bandwidth:       0.721435
	Max bandwidth (MB/sec): 3.39453
	Min bandwidth (MB/sec): 0
	Average Latency:        0.00123722
	Stddev Latency:         0.000103216
	Max latency:            0.002637
	Min latency:            0.000401
"""  # noqa: W291


NEW_WRITE = """\
hints = 1
Maintaining 16 concurrent writes of 4096 bytes to objects of size 4096 for up to 5 seconds or 0 objects
  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
    0       0         0         0         0         0           -           0
Total time run:         5.00021
Total writes made:      20730
Write size:             4096
Object size:            4096
Bandwidth (MB/sec):     16.1943
Stddev Bandwidth:       1.68626
Max bandwidth (MB/sec): 17.8047
Min bandwidth (MB/sec): 13.707
Average IOPS:           4145
Stddev IOPS:            431.563
Max IOPS:               4558
Min IOPS:               3509
Average Latency(s):     0.000240245
Stddev Latency(s):      0.00012136
Max latency(s):         0.0108942
Min latency(s):         0.000113671
"""


NEW_READ = """\
Total time run:       2.00013
Total reads made:     9001
Read size:            4096
Object size:          4096
Bandwidth (MB/sec):   17.5788
Average IOPS:         4500
Stddev IOPS:          12.5
Max IOPS:             4600
Min IOPS:             4400
Average Latency(s):   0.000221
Max latency(s):       0.0091
Min latency(s):       0.0001
"""


def parsed(text: str) -> ClientReport:
    report = parse_report(text)
    assert report is not None
    return report


def test_c1_12_all_numbers_of_the_mails_block() -> None:
    """Eleven are read, two follow from them: rate and bytes per second."""
    report = parsed(MAIL)
    assert report.tool == "rados bench"
    assert report.numbers == {
        "total_time_run": 20.001899,
        "total_writes_made": 16136,
        "write_size": 4096,
        "bandwidth": 3.151,
        "stddev_bandwidth": 0.721435,
        "max_bandwidth": 3.39453,
        "min_bandwidth": 0,
        "average_latency": 0.00123722,
        "stddev_latency": 0.000103216,
        "max_latency": 0.002637,
        "min_latency": 0.000401,
        "iops": pytest.approx(806.7234, abs=1e-4),
        "bytes_per_second": pytest.approx(3.151 * 2**20, rel=1e-3),
    }
    assert len(report.numbers) == 13
    assert (report.count, report.seconds, round(report.mean_ns)) == (16136, 20.001899, 1237220)


def test_c1_12_newer_text_and_read_variants() -> None:
    write, read = parsed(NEW_WRITE), parsed(NEW_READ)
    assert (write.count, write.numbers["max_iops"], write.numbers["stddev_iops"]) == (20730, 4558, 431.563)
    assert len(write.numbers) == 16 + 2
    assert (read.count, read.numbers["read_size"], round(read.mean_ns)) == (9001, 4096, 221000)


@pytest.mark.parametrize("quoted", [False, True])
def test_c1_12_json(quoted: bool) -> None:
    """Some versions write dump_format's numbers as strings; the list of seconds is no number."""
    numbers = {"total_time_run": 5.0, "total_reads_made": 10, "average_latency": 0.5, "read_size": 4096}
    document = {k: str(v) if quoted else v for k, v in numbers.items()} | {"datas": [{"sec": "1"}]}
    report = parsed(json.dumps(document))
    assert (report.count, report.iops, report.mean_ns) == (10, 2.0, 5e8)


def test_c1_10_coverage_of_the_mails_numbers() -> None:
    client = parsed(MAIL)
    assert round(100 * ratio(750_000, client.mean_ns), 1) == 60.6
    assert round(100 * ratio(726_000, client.mean_ns), 1) == 58.7


@pytest.mark.parametrize(("completions", "passed"), [(16136, True), (15820, True), (15800, False), (16500, False)])
def test_c1_11_iops(completions: int, passed: bool) -> None:
    """16136 / 20.001899 = 806.7; more than 2 % off warns."""
    check = checks.iops(completions, parsed(MAIL))
    assert check.passed is passed
    assert "client 806.7" in check.text


def test_fio_json_and_text_agree_on_what_fio_is() -> None:
    stats = {"lat_ns": {"mean": 173310.5, "N": 16629}, "runtime": 3001, "total_ios": 16629}
    idle = {"lat_ns": {"mean": 0.0, "N": 0}, "runtime": 0}
    job = {"jobname": "j", "read": idle, "write": stats, "trim": idle, "job options": {"iodepth": "4"}}
    report = parsed('fio: a warning\n{\n "fio version": "fio-3.33", "jobs": [' + json.dumps(job) + "]\n}\n")
    assert (report.tool, report.count, report.mean_ns, report.seconds, report.queue_depth) == (
        "fio",
        16629,
        173310.5,
        3.001,
        4,
    )
    text = """
j: (groupid=0, jobs=1): err= 0: pid=1183: Fri Nov 20 20:47:32 2026
  read: IOPS=1695, BW=6783KiB/s (6946kB/s)(19.9MiB/3002msec)
    clat (usec): min=163, max=89186, avg=4551.26, stdev=7191.22
     lat (usec): min=490, max=89275, avg=4776.10, stdev=7338.34
  write: IOPS=1714, BW=6857KiB/s (7021kB/s)(20.1MiB/3002msec); 0 zone resets
     lat (msec): min=1, max=88, avg= 4.50, stdev=5919.64
  lat (usec)   : 250=0.01%, 500=0.12%, 750=0.72%, 1000=2.98%
     issued rwts: total=100,300,0,0 short=0,0,0,0 dropped=0,0,0,0
"""
    report = parsed(text)
    assert report.bytes is None  # the header with the sizes is not there
    assert report.by_class == {"read": (100, 4776100.0), "write": (300, 4.5e6)}
    assert report.mean_ns == pytest.approx((100 * 4776100.0 + 300 * 4.5e6) / 400)
    of_reads = report.of_classes(["read"])
    assert of_reads is not None and of_reads.mean_ns == 4776100.0


def test_a_file_without_a_report_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("hello: 5\n{ not json\n")
    with pytest.raises(OplineError, match="no mean latency"):
        read_report(path)
