# SPDX-License-Identifier: MIT
"""Adds the summaries of several runs (`summaries.py`), in the order of the runs. The result does not depend on the
assignment of summaries to workers.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.block.io_series import Series
from opline_analyses.block.iostat import Row
from opline_analyses.engine.cells import NONE, added, by_group
from opline_analyses.engine.of_ops import REST
from opline_analyses.intervals.intervals import Cell, Grid
from opline_analyses.ops.stages import Deferred, StageRow, StageTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    from opline_analyses.engine.cells import Buckets
    from opline_analyses.intervals.intervals import Cells

    Summary: TypeAlias = Mapping[str, Any]

PARTS = (0.5, 0.9, 0.99, 0.999)


def cells_of(summaries: Sequence[Sequence[Sequence[Any]]]) -> Cells:
    """The sums of cells written by `summaries.cells`."""
    found: Cells = {}
    for summary in summaries:
        for group, bucket, *numbers in summary:
            found.setdefault((group, bucket), Cell()).add(Cell(*numbers))
    return found


def rank_of(part: float, count: int) -> int:
    """The nearest rank of a percentile among ``count`` values, from 1; 0 without values."""
    return -(-int(part * 1000) * count // 1000)


def quantiles(buckets: Buckets, known: Mapping[int, int]) -> list[int]:
    """The values of the ranks of PARTS: known values, else the middle between the least and the greatest value of the
    rank's bucket.
    """
    if not (whole := buckets.values):
        return [0] * len(PARTS)
    ranks = [rank_of(part, whole) for part in PARTS]
    places = [buckets.place(rank) for rank in ranks]
    middle = (buckets.least + buckets.most) // 2
    return [known.get(rank, int(middle[place])) for rank, place in zip(ranks, places, strict=True)]


def _stage(name: str, kind: str, buckets: Buckets, squares: int, known: Mapping[int, int]) -> StageRow:
    """``squares``: the sum of the squares of all values; ``known``: values by their ranks."""
    count, total = buckets.values, sum(buckets.total.tolist())
    p50, p90, p99, p999 = quantiles(buckets, known)
    if not count:
        return StageRow(name, kind, 0, 0.0, 0, p50, p90, p99, p999, 0, 0.0, 0)
    spread = count * squares - total**2  # in integers: nothing is lost where both are great
    deviation = math.sqrt(max(spread, 0)) / count
    least, most = int(buckets.least.min()), int(buckets.most.max())
    return StageRow(name, kind, count, total / count, least, p50, p90, p99, p999, most, deviation, total)


def _order(summaries: Sequence[Summary]) -> list[str]:
    """The stages in the order in which an op meets the stages: by the median, then the mean, of the stage's first place
    in an op, as the core orders one run's stages.
    """
    places: dict[str, Counter[int]] = {}
    for summary in summaries:
        for stage, place, count in summary["places"]:
            places.setdefault(stage, Counter())[place] += count

    def key(stage: str) -> tuple[float, float, str]:
        counts = places[stage]
        whole, passed = counts.total(), 0
        median = 0
        for median in sorted(counts):
            passed += counts[median]
            if passed >= (whole + 1) // 2:
                break
        return median, sum(place * n for place, n in counts.items()) / whole, stage

    return sorted(places, key=key)


def stages(summaries: Sequence[Summary], known: Mapping[str, Mapping[int, int]] | None = None) -> StageTable:
    """The table of all runs' ops. ``known``: by group the values of the ranks of its percentiles (`ranks.py`)."""
    of_group = known or {}
    of_runs = [by_group(summary["cells"]) for summary in summaries]
    names = {name for run in of_runs for name in run}
    groups = {name: added([run[name] for run in of_runs if name in run]) for name in names}
    kinds = {stage: kind for summary in reversed(summaries) for stage, kind in summary["kinds"]}
    ordered = [name for name in _order(summaries) if f"stage {name}" in groups]
    ordered += sorted(g[6:] for g in groups if g.startswith("stage ") and g[6:] not in ordered)
    squares: Counter[str] = Counter()
    for summary in summaries:
        squares.update({group: int(whole) for group, whole in summary["squares"].items()})

    def row(name: str, kind: str, group: str) -> StageRow:
        return _stage(name, kind, groups.get(group, NONE), squares[group], of_group.get(group, {}))

    rows = [row(name, kinds[name], f"stage {name}") for name in ordered]
    unattributed, unknown, latency = (row(name, name, f"of {name}") for name in REST)
    programs: Counter[str] = Counter()
    for summary in summaries:
        for name, count in summary["programs"]:
            programs[name] += count
    later = Deferred(*(sum(summary["deferred"][n] for summary in summaries) for n in range(4)))
    incomplete, tainted = (sum(summary[name] for summary in summaries) for name in ("incomplete", "tainted"))
    by_ops = sorted(programs.items(), key=lambda p: (-p[1], p[0]))
    exact = known is not None or all(group.is_exact for group in groups.values())
    return StageTable(
        latency.count, incomplete, tainted, rows, unattributed, unknown, latency, later, by_ops, exact
    )  # fmt: skip


def series(summaries: Sequence[Summary]) -> Series:
    """Intervals counted by each run from the run's own first event. Raises UsageError for different begins."""
    found = [summary["series"] for summary in summaries]
    if len(origins := {one["origin_ns"] for one in found}) > 1 and all(one["last"] > one["first"] for one in found):
        raise UsageError(
            f"The intervals begin at different times of the runs ({', '.join(map(str, sorted(origins)))} ns): give "
            "--since in seconds from each run's first event."
        )
    step = max(one["step_ns"] for one in found)
    last = max(one["last"] for one in found)
    until = {one["until_ns"] for one in found}
    return Series(Grid(min(origins), step), 0, last, 0, until.pop() if len(until) == 1 else None)


def intervals(
    summaries: Sequence[Summary], whole: Series, names: Sequence[str] | None = None
) -> list[tuple[int, Cells]]:
    """The cells of each interval, empty intervals too. ``names``: of the runs, a group each; None: sums."""
    found: dict[int, list[Any]] = {}
    for place, summary in enumerate(summaries):
        for index, cells in summary["intervals"]:
            own = cells if names is None else [[names[place], *cell[1:]] for cell in cells]
            found.setdefault(index, []).append(own)
    return [(index, cells_of(found.get(index, []))) for index in range(whole.first, whole.last + 1)]


def _row(row: Mapping[str, Any], name: str) -> Row:
    cells = {name: Cell(*row[name]) for name in ("reads", "writes", "others", "flushes")}
    return Row(**{**row, **cells, "name": name})


def iostat_rows(names: Sequence[str], summaries: Sequence[Summary], by: str | None) -> list[Row]:
    """With ``by`` all rows, with the runs' names before the groups' names; else a row per interval."""
    if by is not None:
        rows = [
            _row(row, f"{name}:{row['name']}")
            for name, summary in zip(names, summaries, strict=True)
            for row in summary["rows"]
        ]
        return sorted(rows, key=lambda row: row.end_ns) if _several(summaries) else rows
    found: dict[int, Row] = {}
    for summary in summaries:
        for one in summary["rows"]:
            row = _row(one, "")
            if (known := found.setdefault(row.begin_ns, row)) is row:
                continue
            for name in ("reads", "writes", "others", "flushes"):
                getattr(known, name).add(getattr(row, name))
    return [found[begin] for begin in sorted(found)]


def _several(summaries: Sequence[Summary]) -> bool:
    return any(summary["series"]["last"] > summary["series"]["first"] for summary in summaries)
