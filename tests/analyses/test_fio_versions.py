# SPDX-License-Identifier: MIT
"""fio's reports of other versions and of other ways to run it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from opline_analyses.client.client import parse_report

STATS = {"io_bytes": 409600, "total_ios": 100, "runtime": 1000, "iops": 100.0, "lat_ns": {"mean": 129302.0, "N": 100}}
ZERO = {"io_bytes": 0, "total_ios": 0, "runtime": 0, "iops": 0.0, "lat_ns": {"mean": 0.0, "N": 0}}
SLOW = STATS | {"lat_ns": {"mean": 329302.0, "N": 300}, "total_ios": 300}


@pytest.mark.parametrize(
    ("job", "count", "mean_ns", "classes"),
    [
        ({"mixed": STATS}, 100, 129302, {}),
        ({"read": ZERO, "write": ZERO, "mixed": STATS}, 100, 129302, {}),
        ({"read": STATS, "write": SLOW, "mixed": SLOW | {"total_ios": 400}}, 400, 279302, {"read": 100, "write": 300}),
    ],
)
@pytest.mark.parametrize("client", [False, True])
def test_directions_in_one(job: dict[str, Any], count: int, mean_ns: int, classes: Any, client: bool) -> None:
    """unified_rw_reporting=1 and =both; of a client (fio --client) the sum of all comes last."""
    jobs = [{"jobname": "a", **job}]
    whole = {"jobname": "All clients", **job}
    report = parse_report(json.dumps({"client_stats": [*jobs, whole]} if client else {"jobs": jobs}))
    assert report is not None and report.counts() == classes
    assert (report.count, round(report.mean_ns)) == (count, mean_ns)


OLD = """\
a: (groupid=0, jobs=1): err= 0: pid=3187: Sun Nov 29 14:00:01 2026
  read : io=1024.0KB, bw=1024.0KB/s, iops=256, runt=  1000msec
    clat ({unit}): min=50, max=200, avg=120.30, stdev= 1.00
     lat ({unit}): min=51, max=201, avg=129.30, stdev= 1.00
  write: io=4096B, bw=4096B/s, iops=1, runt=  1000msec
     lat ({unit}): min=51, max=201, avg=29.30, stdev= 1.00
     issued    : total=r=256/w=1/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0
"""
MIXED = """\
a: (groupid=0, jobs=1): err= 0: pid=3187: Sun Nov 29 14:00:01 2026
  mixed: IOPS=256, BW=1024KiB/s (1049kB/s)(1024KiB/1000msec)
     lat (usec): min=51, max=201, avg=129.30, stdev= 1.00
     issued rwts: total=200,56,0,0 short=0,0,0,0 dropped=0,0,0,0
"""


@pytest.mark.parametrize(("unit", "unit_ns"), [("usec", 1000), ("msec", 1_000_000)])
@pytest.mark.parametrize("quoted", [False, True])
def test_the_text_of_fio_1_and_2(unit: str, unit_ns: int, quoted: bool) -> None:
    text = OLD.format(unit=unit)
    report = parse_report("fio-2.2.10\n" + text if quoted else text)
    assert report is not None and report.counts() == {"read": 256, "write": 1} and report.seconds == 1
    assert report.by_class["read"][1] == pytest.approx(129.3 * unit_ns)


def test_the_text_with_directions_in_one() -> None:
    report = parse_report(MIXED)
    assert report is not None and (report.count, report.by_class) == (256, {})
    assert report.mean_ns == pytest.approx(129300)
