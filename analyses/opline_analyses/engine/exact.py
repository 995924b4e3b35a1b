# SPDX-License-Identifier: MIT
"""Answers about many recordings with several questions: measured percentiles of stages, and the slow ops of all
recordings against the typical ops.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline_analyses.engine.added import PARTS, rank_of, stages
from opline_analyses.engine.cells import NONE, added, by_group
from opline_analyses.engine.ranks import Rank, refine
from opline_analyses.engine.recordings import FewerError
from opline_analyses.ops.stages import none_counts
from opline_analyses.ops.waited import Spent
from opline_analyses.why.of_many import WhyOfMany
from opline_analyses.why.sets import Sets, check_slow, slow_by_rank, typical_ranks
from opline_analyses.why.waits import WaitSums, waits_from
from opline_analyses.why.why import compared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from opline_analyses.engine.recordings import Answers, Asking
    from opline_analyses.ops.stages import StageTable
    from opline_analyses.why.sets import Rule

LATENCY = "of latency"


def exact_stages(asking: Asking) -> tuple[StageTable, Answers]:
    """The table of all runs' ops, with measured percentiles. Raises OplineError."""
    while True:
        answers = asking.first("stages")
        of_runs = [by_group(summary["cells"]) for summary in answers.summaries]
        ranks: dict[str, dict[int, Rank]] = {}
        for group in sorted({group for run in of_runs for group in run}):
            mine = [run.get(group, NONE) for run in of_runs]
            whole = added(mine)
            places = {rank_of(part, whole.values) for part in PARTS}
            ranks[group] = {place: Rank(group, place, mine, whole) for place in places}
        try:
            refine(asking, [rank for group in ranks.values() for rank in group.values()])
        except FewerError:
            continue
        known = {group: {place: rank.low for place, rank in mine.items()} for group, mine in ranks.items()}
        return stages(answers.summaries, known), answers


def why_of_many(asking: Asking, rule: Rule) -> tuple[WhyOfMany, Answers]:
    """Raises OplineError."""
    while True:
        answers = asking.first("latencies")
        try:
            return _why(asking, rule, answers), answers
        except FewerError:
            continue


def _why(asking: Asking, rule: Rule, answers: Answers) -> WhyOfMany:
    n, incomplete, tainted = (_sum(answers.summaries, name) for name in ("ops", "incomplete", "tainted"))
    if n == 0:
        raise OplineError(none_counts("", incomplete, tainted))
    of_runs = [by_group(summary["cells"]).get(LATENCY, NONE) for summary in answers.summaries]
    whole = added(of_runs)
    slow = slow_by_rank(rule, n)
    slow = _sum(answers.summaries, "over") if slow is None else slow
    check_slow(rule, slow, n, int(whole.most.max()))
    others = n - slow
    low, high = typical_ranks(others)
    middle = others + (slow + 1) // 2
    ranks = {place: Rank(LATENCY, place, of_runs, whole) for place in (others, others + 1, low, high, middle)}
    refine(asking, list(ranks.values()))
    until_middle, before_middle = ranks[middle].up_to(middle), ranks[middle].up_to(middle - 1)
    holder = next(i for i, count in enumerate(until_middle) if count > before_middle[i])
    not_slow, before = ranks[others].up_to(others), ranks[low].up_to(low - 1)
    typical = ranks[high].up_to(high)
    asked = [
        {"ranks": [last, before[i] + 1, typical[i], until_middle[i] if i == holder else None]}
        for i, last in enumerate(not_slow)
    ]
    found = asking.more("slow", asked)
    example, requests = found[holder]["example"]
    programs: Counter[str] = Counter()
    of_slow: Counter[str] = Counter()
    for one in found:
        for name, ops, mine in one["programs"]:
            programs[name] += ops
            of_slow[name] += mine
    by_ops = sorted(((name, ops, of_slow[name]) for name, ops in programs.items()), key=lambda p: (-p[1], p[0]))
    sets = Sets(
        n, incomplete, tainted, slow, ranks[others + 1].low, high - low + 1, ranks[low].low, ranks[high].low, example,
        rule.text, by_ops,
    )  # fmt: skip
    waits = WaitSums({}, {}, {})
    for one in found:
        for spent, sums, of_stages, of_functions in one["waits"]:
            waits.add(Spent(*spent), sums, of_stages, of_functions)
    why = compared(sets, (r for one in found for r in one["stages"]), (r for one in found for r in one["ops"]), [])
    recordings = [
        (name, summary["ops"], summary["ops"] - last)
        for name, summary, last in zip(answers.names, answers.summaries, not_slow, strict=True)
    ]
    recordings.sort(key=lambda r: -r[2])
    return WhyOfMany(why, waits_from(waits, sets), answers.paths[holder], requests > 0, recordings)


def _sum(summaries: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(summary[name] for summary in summaries)
