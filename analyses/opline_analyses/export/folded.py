# SPDX-License-Identifier: MIT
"""Folded stacks: a line per stack, `class;thread;stage nanoseconds`, summed over the ops.

The format of flamegraph.pl's stackcollapse programs (https://github.com/brendangregg/FlameGraph), which speedscope and
Perfetto open as well. The weights of an op sum to its latency; what no stage claims is the frame `unattributed`.
"""

from __future__ import annotations

from typing import BinaryIO

from opline.talk import shown
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

_STACKS = """
    SELECT coalesce(o.class, '?'), coalesce(o.comm, '?'), s.stage, sum(s.duration_ns)::HUGEINT
    FROM stages s JOIN ops o USING (op_id) SEMI JOIN counted USING (op_id) GROUP BY ALL
    UNION ALL
    SELECT coalesce(class, '?'), coalesce(comm, '?'), 'unattributed', sum(unattributed_ns)::HUGEINT
    FROM ops SEMI JOIN counted USING (op_id) GROUP BY ALL
    ORDER BY ALL"""


def frame(name: str) -> str:
    """A name as one frame: `;` parts frames, a line ends a stack."""
    return shown(name).replace(";", ":")


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the stacks; gives the number of ops: incomplete and tainted ones don't count, as in `opline stages`."""
    ops, _, _ = select_counted(run, which, False)
    for op_class, comm, stage, total in run.rows(_STACKS):
        if total:
            out.write(f"{frame(op_class)};{frame(comm)};{frame(stage)} {total}\n".encode())
    return ops
