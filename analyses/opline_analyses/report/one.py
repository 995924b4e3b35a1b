# SPDX-License-Identifier: MIT
"""Some ops in full, as a page of their own has them: for a page that holds its ops rounded. Reads no more than these
ops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opline.errors import OplineError
from opline.store.arrays import ABSENT
from opline_analyses.base.colours import STATES, STATES_UNKNOWN
from opline_analyses.ops.rows import Column, StageRows
from opline_analyses.ops.thread_names import NO_THREAD, thread_keys
from opline_analyses.report.columns import Columns, zigzag
from opline_analyses.report.detail import add_lists, add_requests, add_stages, group, requests_of, states_of
from opline_analyses.report.head import common_head, short_name, stage_head
from opline_analyses.report.kinds import thread_head
from opline_analyses.runs.run import Run


def ops_data(run: Run, op_ids: Column, start_ns: int) -> tuple[dict[str, Any], Columns]:
    """Head and columns. ``start_ns``: of the run's clock, what times count from. Raises OplineError where the run has
    not all of these as complete ops.
    """
    ids = np.asarray(op_ids, np.int64)
    run.con.register("chosen", {"op_id": ids, "place": np.arange(len(ids))})
    ops = run.rows(
        """SELECT class, begin_ns, latency_ns, tainted FROM ops JOIN chosen USING (op_id) WHERE complete
           ORDER BY place"""
    )
    if len(ops) != len(ids):
        raise OplineError(f"The run has no complete op {ids[0]}." if len(ids) == 1 else "Some ops are not complete.")
    begin_ns = np.array([o[1] for o in ops], np.int64)
    classes = list(dict.fromkeys(o[0] for o in ops))
    rows, known = _stages(run)
    threads, at = np.unique(rows.tid, return_inverse=True)
    columns = Columns()
    columns.add("op_id", zigzag(np.diff(ids, prepend=-1) - 1))
    columns.add("tainted", np.array([int(o[3]) for o in ops], np.int64))
    columns.add("begin", begin_ns - start_ns)
    columns.add("latency", np.array([o[2] for o in ops], np.int64))
    columns.add("dimension0", np.array([classes.index(o[0]) for o in ops], np.int64))
    which, lists = group(rows, at.astype(np.int64), len(ids))
    columns.add("threads", which)
    add_lists(columns, "thread_lists", lists)
    states = states_of(run, ids)
    add_lists(columns, "paths", add_stages(columns, rows, begin_ns, len(ids), states))
    requests = requests_of(run, ids)
    flags = add_requests(columns, requests, len(ids), start_ns, begin_ns - start_ns)
    device_names = run.device_names()
    head = {
        **common_head(run, start_ns),
        **flags,
        "full": True,
        "ops": len(ids),
        "tainted": sum(int(o[3]) for o in ops),
        "counts_tainted": True,
        "stages": [stage_head(name, kind) for name, kind in known.items()],
        "no_thread": NO_THREAD,
        **thread_head(run, threads.tolist()),
        "dimensions": [
            {
                "name": "class",
                "column": "dimension0",
                "values": [None if one is None else short_name(one) for one in classes],
            }
        ],
        "states": list(STATES.values()) if states is not None else None,
        "states_unknown": STATES_UNKNOWN,
        "device_names": {
            str(dev): short_name(device_names.get(dev) or f"{dev >> 20}:{dev & 0xFFFFF}")
            for dev in np.unique(requests["dev"]).tolist()
        },
    }
    return head, columns


def _stages(run: Run) -> tuple[StageRows, dict[str, str]]:
    """The rows of the ops in the table ``chosen``, and the kind of each stage."""
    found = run.con.execute(
        f"""SELECT place, seq, stage, kind, begin_ns, duration_ns, coalesce(tid, {ABSENT}) AS tid,
                   coalesce(list_position(?::VARCHAR[], host), 0) - 1 AS host
            FROM stages JOIN chosen USING (op_id) ORDER BY place, seq""",
        [run.hosts()],
    ).fetchnumpy()
    known = dict(zip(found["stage"].tolist(), found["kind"].tolist(), strict=True))
    number = {stage: n for n, stage in enumerate(known)}
    stage = np.array([number[name] for name in found["stage"].tolist()], np.int64)
    place, seq, begin, took, tid, host = (
        np.asarray(found[name], np.int64) for name in ("place", "seq", "begin_ns", "duration_ns", "tid", "host")
    )
    return StageRows(place, seq, stage, begin, took, thread_keys(tid, host)), known
