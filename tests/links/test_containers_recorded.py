# SPDX-License-Identifier: MIT
"""Two containers at once in the kernel domain, each with a process 1: whose block requests are whose."""

from __future__ import annotations

import pytest
from tests.lib.recorded import RunOf

OPS = 53  # of each
DISKS = {"vdc": 254 << 20 | 32, "vdd": 254 << 20 | 48}


@pytest.mark.parametrize("reader", ["native", "bt2"])
def test_each_container_has_the_requests_of_its_disk(run_of: RunOf, reader: str) -> None:
    run = run_of("lab-containers-6.12", reader=reader)
    process = {op["op_id"]: op["pid"] for op in run.rows("ops")}
    disk = {request["request_id"]: request["dev"] for request in run.rows("requests")}
    found = [(process[link["op_id"]], disk[link["request_id"]]) for link in run.rows("links") if link["request_id"]]
    assert len(process) == len(found) == 2 * OPS
    assert sorted(found.count(pair) for pair in set(found)) == [OPS, OPS]
    assert {dev for _, dev in found} == set(DISKS.values())
    assert run.core["losses"]["threads_unknown"] == 0
