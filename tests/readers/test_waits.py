# SPDX-License-Identifier: MIT
"""What threads waited for, on recorded kernels."""

from __future__ import annotations

import pytest
from tests.lib.core_driver import check_laws, check_waits, run
from tests.lib.recorded import RunOf
from tests.readers.test_sched import MODEL, SCHEDULED


@pytest.mark.parametrize("preempted", [256, 300])
def test_many_waits_of_a_stage_are_one_row(preempted: int) -> None:
    """More than 256 parts: those that are alike are summed, by who ran instead."""
    lines = ["5 sched_switch cpu=0 prev_tid=0 prev_state=0 next_tid=5 next_comm=t by=0", "6 sched_waking tid=9 by=0"]
    lines += ["10 app:begin tid=5 pid=5 id=1"]
    for n in range(preempted):
        other = 7 + n % 2
        lines.append(
            f"{20 + 3 * n} sched_switch cpu=0 prev_tid=5 prev_state=256 next_tid={other} next_comm=o{other} by=5"
        )
        lines.append(f"{22 + 3 * n} sched_switch cpu=0 prev_tid={other} prev_state=1 next_tid=5 next_comm=t by=7")
    lines += ["2000 app:end tid=5 pid=5 id=1"]
    driver = run(MODEL, lines)
    check_laws(driver, len(lines))
    waits = driver.tables()["waits"]
    assert {w["kind"] for w in waits} == {"cpu"} and {w["instead_comm"] for w in waits} == {"o7", "o8"}
    assert sum(w["part_count"] for w in waits) == preempted
    assert len(waits) == (preempted if preempted <= 256 else 2)


@pytest.mark.parametrize("name", SCHEDULED)
def test_waits_sum_and_hardly_any_is_unknown(name: str, run_of: RunOf) -> None:
    run = run_of(name)
    waits = run.rows("waits")
    check_waits({"waits": waits, "stages": run.rows("stages")})
    whole = sum(w["duration_ns"] for w in waits)
    assert sum(w["duration_ns"] for w in waits if w["kind"] in ("unknown", "thread")) < 0.01 * whole


def test_a_direct_write_waits_for_its_own_request(run_of: RunOf) -> None:
    """The chains know nothing of the links between ops and requests, and find the same requests."""
    run = run_of("fio-psync-qd1-nvme")
    at_device = {(s["op_id"], s["seq"]): s["request_id"] for s in run.rows("stages") if s["stage"] == "D2C"}
    found = [w for w in run.rows("waits") if w["kind"] == "device" and (w["op_id"], w["seq"]) in at_device]
    same = sum(w["request_id"] == at_device[w["op_id"], w["seq"]] for w in found)
    assert len(found) > 10_000 and same > 0.999 * len(found)
