# SPDX-License-Identifier: MIT
"""One op in full, as a page of its own has it: for a page that holds its ops rounded. Reads no more than that op."""

from __future__ import annotations

from typing import Any

import numpy as np

from opline.errors import OplineError
from opline_analyses.base.colours import STATES, STATES_UNKNOWN
from opline_analyses.ops.rows import StageRows
from opline_analyses.ops.thread_names import NO_THREAD, names_of_threads
from opline_analyses.report.columns import Columns, zigzag
from opline_analyses.report.detail import add_lists, add_requests, add_stages, requests_of, states_of
from opline_analyses.report.head import common_head, short_name, stage_head
from opline_analyses.runs.columns import ABSENT
from opline_analyses.runs.run import Run


def op_data(run: Run, op_id: int, start_ns: int) -> tuple[dict[str, Any], Columns]:
    """Head and columns. ``start_ns``: of the run's clock, what times count from. Raises OplineError where the run has
    no such complete op.
    """
    found = run.rows("SELECT class, begin_ns, latency_ns, tainted FROM ops WHERE op_id = ? AND complete", [op_id])
    if not found:
        raise OplineError(f"The run has no complete op {op_id}.")
    op_class, begin_ns, latency_ns, tainted = found[0]
    stages = run.rows(
        "SELECT stage, kind, begin_ns, duration_ns, tid FROM stages WHERE op_id = ? ORDER BY seq", [op_id]
    )
    known = {stage: kind for stage, kind, *_ in stages}
    number = {stage: n for n, stage in enumerate(known)}
    tids = [ABSENT if tid is None else tid for *_, tid in stages]
    threads = sorted(set(tids))
    names = names_of_threads(run, threads)
    columns = Columns()
    columns.add("op_id", zigzag(np.array([op_id])))
    columns.add("tainted", np.array([int(tainted)]))
    columns.add("begin", np.array([begin_ns - start_ns]))
    columns.add("latency", np.array([latency_ns]))
    columns.add("dimension0", np.array([0]))
    columns.add("threads", np.array([0]))
    add_lists(columns, "thread_lists", [[threads.index(tid) for tid in tids]])
    count = len(stages)
    rows = StageRows(
        np.zeros(count, np.int64),
        np.arange(count),
        np.array([number[s[0]] for s in stages], np.int64),
        np.array([s[2] for s in stages], np.int64),
        np.array([s[3] for s in stages], np.int64),
        np.array(tids, np.int64),
    )
    ids = np.array([op_id], np.int64)
    states = states_of(run, ids)
    add_lists(columns, "paths", add_stages(columns, rows, np.array([begin_ns], np.int64), 1, states))
    flags = add_requests(columns, requests_of(run, ids), 1, start_ns, np.array([begin_ns - start_ns], np.int64))
    devices = run.rows(
        "SELECT DISTINCT r.dev FROM links l JOIN requests r USING (request_id) WHERE l.op_id = ?", [op_id]
    )
    device_names = run.device_names()
    head = {
        **common_head(run, start_ns),
        **flags,
        "full": True,
        "ops": 1,
        "tainted": int(tainted),
        "counts_tainted": True,
        "stages": [stage_head(name, kind) for name, kind in known.items()],
        "no_thread": NO_THREAD,
        "threads": [short_name(names[tid]) for tid in threads],
        "dimensions": [
            {"name": "class", "column": "dimension0", "values": [None if op_class is None else short_name(op_class)]}
        ],
        "states": list(STATES.values()) if states is not None else None,
        "states_unknown": STATES_UNKNOWN,
        "device_names": {
            str(dev): short_name(device_names.get(dev) or f"{dev >> 20}:{dev & 0xFFFFF}") for (dev,) in devices
        },
    }
    return head, columns
