# SPDX-License-Identifier: MIT
"""A comparison as a result: a row per figure; for people the verdicts, for programs the document."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opline_analyses.base.result_table import ResultTable, of_items
from opline_analyses.compare import gate
from opline_analyses.compare.compare import Comparison, compare, doubts
from opline_analyses.compare.text import COLUMNS, document, records, text_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.compare.figures import Figures


class Found(NamedTuple):
    """The comparison, and what became of the conditions."""

    comparison: Comparison
    findings: list[gate.Finding]


def result(
    a: Sequence[Figures], b: Sequence[Figures], limit: float, everything: bool, conditions: Sequence[gate.Condition]
) -> ResultTable:
    """``limit``: a change below does not matter; ``everything``: a line for each figure."""
    findings = list(gate.judge(conditions, a, b)) if conditions else []
    found = compare(a, b, limit)
    doubted = list(doubts(found))
    return of_items(
        COLUMNS, records(found), found=Found(found, findings), ascii=False,
        notes=[f"warning: {line}" for line in doubted],
        text=lambda _: (*text_lines(found, everything), *gate.text_lines(findings)),
        document=lambda _: {**document(found, doubted), "conditions": [f.record() for f in findings]},
    )  # fmt: skip
