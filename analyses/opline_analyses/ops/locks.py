# SPDX-License-Identifier: MIT
"""The locks that an op's threads slept for: each lock's holder, and the op of the holder's work."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opline_analyses.ops.waited import InWait

#: For the ops in the temporary table chunk. Gives op_id, lock, holder_tid, and the op of the holder's stage at the
#: begin of the first of these waits.
HOLDERS = """
    WITH w AS (SELECT op_id, lock, holder_tid, min(begin_ns) AS begin_ns FROM waits SEMI JOIN chunk USING (op_id)
               WHERE op_id BETWEEN {low} AND {high} AND holder_tid IS NOT NULL GROUP BY ALL)
    SELECT w.op_id, w.lock, w.holder_tid, min(s.op_id)
    FROM w JOIN stages s ON s.states_tid = w.holder_tid AND s.op_id <> w.op_id
        AND s.begin_ns <= w.begin_ns AND s.begin_ns + s.duration_ns > w.begin_ns
    GROUP BY ALL"""


def with_holders(waits: list[InWait], ops: dict[tuple[int, int], int]) -> list[InWait]:
    """The same, with the op of each lock's holder. ``ops``: by lock and holder."""
    if not ops:
        return waits
    return [
        w if w.lock is None or w.holder_tid is None else w._replace(holder_op_id=ops.get((w.lock, w.holder_tid)))
        for w in waits
    ]


def lock_lines(waits: Iterable[InWait]) -> Iterator[str]:
    """A line for each lock, in the order of the waits."""
    told = set()
    for w in waits:
        if w.lock is None or (lock := (w.lock, w.lock_kind, w.holder_tid)) in told:
            continue
        told.add(lock)
        held = "" if w.holder_tid is None else f", held by {w.holder_comm or 'thread'} {w.holder_tid}"
        op = "" if w.holder_op_id is None else f" for op {w.holder_op_id}"
        yield f"  lock: {w.lock_kind} {w.lock:#x}{held}{op}"
