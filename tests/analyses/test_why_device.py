# SPDX-License-Identifier: MIT
"""`opline why`: time at the device is shared out among the requests ahead, as `opline interference` does it."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from tests.lib.build_run import P, Rq, RunBuilder
from tests.lib.recorded import RunOf

from opline_analyses.base.result_table import rendered
from opline_analyses.ops.interference import NOBODY, interference
from opline_analyses.runs.run import Run, open_tables
from opline_analyses.runs.selection import Selection
from opline_analyses.why.device import Devices
from opline_analyses.why.root import Cause, charge
from opline_analyses.why.sets import choose, slowest_rule
from opline_analyses.why.tail import Tail, tail_blame
from opline_analyses.why.tail_text import cause_lines, caused_sentence


def agrees(run: Run, ops: list[int]) -> int:
    """Compares the shares of all requests of these ops with interference's; gives how many shares there were."""
    devices, compared = Devices(run), 0
    for op in ops:
        for blame in interference(run, op):
            found = devices.shares(*(np.array([v]) for v in (blame.request_id, blame.queue_ns, blame.complete_ns)))
            mine: defaultdict[bool, Counter[str]] = defaultdict(Counter)
            for owner, ns, waited in zip(found.owner.tolist(), found.ns.tolist(), found.waited.tolist(), strict=True):
                mine[waited]["this op" if owner.endswith(" ops") else owner] += ns
            for waited, theirs in ((True, blame.wait), (False, blame.service)):
                ahead = sum(ns for owner, ns in theirs.items() if owner not in (NOBODY, "itself"))
                got = sum(mine[waited].values())
                assert ahead - got in range(blame.ahead + 1), (op, blame.request_id, waited)  # whole ns
                compared += got > 0
    return compared


def test_it_agrees_with_interference(run_of: RunOf) -> None:
    for name in ("demo-qd4", "fio-libaio-qd16-hdd-bfq"):
        run = open_tables(run_of(name).path)
        ops = run.rows(
            "SELECT op_id FROM ops WHERE complete AND request_count > 0 ORDER BY latency_ns DESC, op_id LIMIT 60"
        )
        assert agrees(run, [op for (op,) in ops]) > 10


def one_bad_neighbour(tmp_path: Path, slow: int = 20) -> Run:
    """Ops of 100 us; behind the slow ones' requests a backup's stays for 5 ms: before their D, and after it."""
    run = RunBuilder()
    for n in range(1000):
        t = 20_000_000 * n
        late = 5_000_000 if n % (1000 // slow) == 7 else 0
        if late:
            run.request(Rq(q=t - 30, d=t - 20, c=t + late, nr_sectors=2048), comm="backup")
        issued = t + 20 + late // 2
        run.op([P("begin", t), P("end", t + 100_000 + late)], [Rq(q=t + 10, d=issued, c=t + 90_000 + late)])
    return open_tables(run.write(tmp_path))


def test_it_is_charged_to_who_was_ahead(tmp_path: Path) -> None:
    run = one_bad_neighbour(tmp_path)
    c = charge(run, np.array([7]))
    found = {cause: int(ns) for cause, ns in zip(c.causes, c.by_cause(np.arange(1)), strict=True) if ns}
    assert found == {
        Cause("submit", False, False, False): 10,
        Cause("D2C", False, True, False, "backup"): 2_500_010,  # it waited to be issued
        Cause("D2C", False, False, False, "backup"): 2_499_980,  # it was there behind the other
        Cause("D2C", False, False, False): 90_000,
        Cause("reap", False, False, True): 10_000,
    }


def test_the_root_is_said(tmp_path: Path) -> None:
    run = one_bad_neighbour(tmp_path)
    t: Tail = tail_blame(run, choose(run, Selection(), slowest_rule("20")))
    assert t.sums
    (device,) = (c for c in t.causes if c.stage == "D2C" and not c.cpu)
    assert [(a.owner, a.slow_ns, a.typical_ns) for a in device.ahead] == [("backup", 20 * 4_999_990, 0)]
    said = caused_sentence(t)
    assert said is not None
    assert "In `D2C` they wait 5 ms behind requests of backup at the device." in said
    rows = [line.split() for line in rendered(cause_lines(t))]
    assert ["behind", "backup", "5000.0", "0.0", "5000.0", "100.0"] in rows
