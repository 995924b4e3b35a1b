# SPDX-License-Identifier: MIT
"""The block I/O steps of the counted ops, known and missing (coverage).

Takes a run with the temporary table `counted` of `stages.select_counted`; gives numbers of ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.steps import STEPS
from opline.store.arrays import read
from opline_analyses.ops.stages import counted_flags
from opline_analyses.runs.columns import batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from opline.steps import Step
    from opline_analyses.runs.run import Run

    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]

_QUEUED = STEPS[0]
REQUIRED = tuple(step.letter for step in STEPS if not step.optional)


def block_steps(run: Run) -> dict[str, Any]:
    """The number of counted ops with a queued bio (Q), and with all REQUIRED steps of every request; the missing steps.

    Optional steps are listed and not required. Split remainders have no own Q. A bio may have the first step without
    a request.
    """
    import numpy as np

    requests, bios = _by_number(run, "requests", STEPS), _by_number(run, "bios", STEPS[:1])
    with_io, has_q = (np.zeros(len(counted_flags(run)), bool) for _ in range(2))
    lacks = {step.letter: np.zeros(len(with_io), bool) for step in STEPS[1:]}
    for op, bio, request in _pairs(run):
        with_io[op] = True
        has_q[op[_of(bios[_QUEUED.letter], bio) | _of(requests[_QUEUED.letter], request)]] = True
        for letter, lacking in lacks.items():
            lacking[op[~_of(requests[letter], request)]] = True
    lacks = {_QUEUED.letter: with_io & ~has_q, **lacks}
    required = np.any([lacks[letter] for letter in REQUIRED], axis=0)
    ops, all_bios, all_requests = run.row(
        "SELECT (SELECT count(*) FROM counted), (SELECT count(*) FROM bios), (SELECT count(*) FROM requests)"
    )
    reasons = dict(
        run.rows(
            """SELECT no_request, count(*) FROM ops WHERE op_id IN (SELECT op_id FROM counted)
               AND no_request IS NOT NULL GROUP BY ALL ORDER BY ALL"""
        )
    )
    return {
        "ops": ops,
        "with_q": int(np.count_nonzero(has_q)),
        "with_q_to_c": int(np.count_nonzero(with_io & ~required)),
        "missing": {letter: int(np.count_nonzero(flags)) for letter, flags in lacks.items()},
        "no_request": reasons,
        "bios": all_bios,
        "requests": all_requests,
    }


def _by_number(run: Run, table: str, steps: Sequence[Step]) -> dict[str, Flags]:
    """By letter: which rows of the table have the step, by row number; the last entry is for absent rows."""
    import numpy as np

    number = f"{table[:-1]}_id"
    (most,) = run.row(f"SELECT coalesce(max({number}), 0) FROM {table}")
    found = {step.letter: np.zeros(most + 2, bool) for step in steps}
    seen = ", ".join(f"{step.column} IS NOT NULL AS {step.letter}" for step in steps)
    for batch in read(run.con.sql(f"SELECT {number}, {seen} FROM {table}")):
        for letter, flags in found.items():
            flags[batch.array(number)] = batch.array(letter)
    return found


def _of(has: Flags, numbers: Ints) -> Flags:
    """``numbers``: -1 for none. A number without a row has no step."""
    import numpy as np

    found: Flags = has[np.where(numbers < len(has), numbers, -1)]
    return found


def _pairs(run: Run) -> Iterator[tuple[Ints, Ints, Ints]]:
    """The counted ops' bios with their requests, and the requests of their stages; -1: none."""
    import numpy as np

    counts = counted_flags(run)
    for batch in batches(run, "links", ("op_id", "bio_id", "request_id")):
        op, bio, request = (batch.numbers(name).filled(np.int64, -1) for name in batch.names)
        kept = (op >= 0) & (counts[op] == 1)
        yield op[kept], bio[kept], request[kept]
    for batch in batches(run, "stages", ("op_id", "request_id")):
        op, request = (batch.numbers(name).filled(np.int64, -1) for name in batch.names)
        kept = (request >= 0) & (counts[op] == 1)
        yield op[kept], np.full(np.count_nonzero(kept), -1), request[kept]
