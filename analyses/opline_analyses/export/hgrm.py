# SPDX-License-Identifier: MIT
"""HdrHistogram's text of percentiles (.hgrm), for its plotter: the latencies of the ops that count, in microseconds.

Source: HdrHistogram 2.1, AbstractHistogram.outputPercentileDistribution.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import BinaryIO

from opline_analyses.export.hdr_counts import SUB_BUCKETS, HdrCounts
from opline_analyses.export.hlog import counted
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

_UNIT = 1000.0  # ns


def _fixed(value: float, digits: int = 3, width: int = 12) -> str:
    """As Java writes a number: half of the last digit is rounded up."""
    return f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):{width}f}"


def lines(found: HdrCounts) -> Iterator[str]:
    """The text."""
    yield f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}"
    yield ""
    for level in found.levels():
        share = level.percentile / 100
        line = f"{_fixed(level.value / _UNIT)} {_fixed(share, 12, 2)} {level.up_to:10d}"
        yield f"{line} {_fixed(1 / (1 - share), 2, 14)}" if share < 1 else line
    yield f"#[Mean    = {_fixed(found.mean() / _UNIT)}, StdDeviation   = {_fixed(found.deviation() / _UNIT)}]"
    yield f"#[Max     = {_fixed(found.greatest / _UNIT)}, Total count    = {found.total:12d}]"
    yield f"#[Buckets = {found.buckets:12d}, SubBuckets     = {SUB_BUCKETS:12d}]"


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the text; gives the number of ops: incomplete and tainted ones don't count, as in `opline stages`."""
    ops, _, _ = select_counted(run, which, False)
    whole: dict[int, int] = {}
    for _, _, counts in counted(run, None):
        for index, n in counts.items():
            whole[index] = whole.get(index, 0) + n
    out.writelines(f"{line}\n".encode() for line in lines(HdrCounts(whole)))
    return ops
