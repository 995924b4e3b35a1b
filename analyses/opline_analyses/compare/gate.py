# SPDX-License-Identifier: MIT
"""Conditions under which a comparison fails, for CI: `p99(D2C) > +5 %`.

Takes the texts of --fail-if and the figures of both sides; gives a `Finding` for each. A condition holds when the whole
interval of the change lies beyond its limit, so that noise fails nobody's build: one-sided at 2.5 %, by Holm over the
conditions given. What is not shown to lie within the limit either is undecided.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from opline.errors import OplineError, UsageError
from opline.values import Value
from opline_analyses.compare.figures import LATENCY, MEASURED
from opline_analyses.compare.power import runs_needed
from opline_analyses.compare.verdicts import (
    HISTORY,
    Difference,
    change,
    difference,
    holm,
    number,
    prediction,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any
    from xml.etree.ElementTree import Element

    from opline_analyses.compare.figures import Figures

ENOUGH = 5
LEVEL = 0.025  # one-sided: the limit of a 95 % interval
HISTORY_LEVEL = 0.005
FAILED, PASSED, UNDECIDED = "fail", "pass", "undecided"
# exit statuses of `opline compare --fail-if`, beside 1 (failed) and 2 (usage)
STATUS_FAILED, STATUS_UNDECIDED = 4, 5

_CONDITION = re.compile(
    r"\s*+(?P<figure>mean|iops|p\d{1,2}(?:\.\d++)?)\s*+(?:\((?P<stage>.*)\))?\s*+(?P<sign>[<>])\s*+"
    r"(?P<limit>[+-]?\s*+\d++(?:\.\d++)?)\s*+%\s*+"
)
FORM = "a condition is FIGURE(STAGE) > +N %: mean, p50, p99 ... of a stage or of `latency`; or iops < -N %"


class Condition(Value):
    """One --fail-if. ``limit``: a log ratio."""

    text: str
    figure: str
    stage: str
    above: bool
    limit: float

    @property
    def of_sketch(self) -> bool:
        """A percentile that only distributions have."""
        return self.figure.startswith("p") and self.figure not in MEASURED


class Finding(Value):
    """What the runs say of a condition. ``p``: corrected; of so large a change, if it were the limit."""

    condition: Condition
    outcome: str
    difference: Difference
    p: float
    text: str

    def record(self) -> dict[str, Any]:
        """For JSON."""
        ratio, p = math.exp(self.difference.log_ratio), self.p
        return {"condition": self.condition.text, "outcome": self.outcome, "ratio": ratio, "p": p, "text": self.text}


def parse(text: str) -> Condition:
    """A condition. Raises UsageError."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UsageError(f"--fail-if {text}: {FORM}.")
    share = float(found["limit"].replace(" ", "")) / 100
    above = found["sign"] == ">"
    if (share < 0) if above else (share > 0 or share <= -1):
        raise UsageError(f"--fail-if {text}: after > comes a growth (+5 %), after < a loss (-5 %).")
    figure, stage = found["figure"], (found["stage"] or "").strip() or LATENCY
    if figure == "iops" and stage != LATENCY:
        raise UsageError(f"--fail-if {text}: iops are of the run, not of a stage.")
    return Condition(" ".join(text.split()), figure, stage, above, math.log1p(share))


def judge(conditions: Sequence[Condition], a: Sequence[Figures], b: Sequence[Figures]) -> list[Finding]:
    """The findings. Raises UsageError where the runs are too few or have no such stage."""
    of_history = len(a) >= HISTORY and len(b) == 1
    if not of_history and min(len(a), len(b)) < ENOUGH:
        raise UsageError(
            f"--fail-if needs {ENOUGH} runs of each side or more, or {HISTORY} earlier ones of A and one of B: here "
            f"are {len(a)} of A and {len(b)} of B. (opline record --repeat {ENOUGH} makes them.)"
        )
    found = [_difference(c, a, b, of_history) for c in conditions]
    p = [d.p_beyond(c.limit, c.above) or 0.0 for c, d in zip(conditions, found, strict=True)]
    level = HISTORY_LEVEL if of_history else LEVEL
    return [
        _finding(c, d, corrected, level, len(conditions))
        for c, d, corrected in zip(conditions, found, holm(p), strict=True)
    ]


def _difference(c: Condition, a: Sequence[Figures], b: Sequence[Figures], of_history: bool) -> Difference:
    if of_history and c.figure not in ("p50", "mean", "iops"):
        raise UsageError(
            f"--fail-if {c.text}: one run can be held against a history by mean, p50 or iops only; "
            f"{c.figure} takes {ENOUGH} runs of each side."
        )
    values = []
    for label, side in (("A", a), ("B", b)):
        mine = [f.value(c.figure, c.stage) for f in side]
        known = [v for v in mine if v is not None]
        if len(known) < len(mine):
            names = dict.fromkeys(name for f in (*a, *b) for name in f.stages)
            missing = "no run" if not known else f"not every run of {label}"
            raise UsageError(f"--fail-if {c.text}: {missing} has the stage. Stages: {', '.join([LATENCY, *names])}.")
        values.append(known)
    resolution = 0.0 if c.figure == "iops" else 1.0
    d = prediction(values[0], values[1][0], resolution) if of_history else difference(values[0], values[1], resolution)
    if d is None:
        raise OplineError(f"--fail-if {c.text}: 0 in some runs, which has no ratio.")
    return d


def _finding(c: Condition, d: Difference, p: float, level: float, conditions: int) -> Finding:
    interval = d.interval(1 - 2 * level)
    low, high = interval or (-math.inf, math.inf)
    within = high <= c.limit if c.above else low >= c.limit
    outcome = FAILED if p <= level else PASSED if within else UNDECIDED
    text = f"{change(d.log_ratio)} [{change(low)}, {change(high)}]"
    if outcome == UNDECIDED:
        limit = math.expm1(abs(c.limit)) or 0.05
        needed = runs_needed(d.scatter or 0.0, d.scatter_df or 1.0, limit, 2 * level / conditions)
        text += f"; about {needed} runs of each side tell {number(limit)} %"
    return Finding(c, outcome, d, p, text)


def text_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each, for people."""
    if findings:
        yield ""
    for f in findings:
        yield f"{f.outcome:9}  {f.condition.text}: {f.text}"


def status(findings: Sequence[Finding], undecided: str) -> int:
    """The exit status; ``undecided``: fail, warn or pass."""
    outcomes = [f.outcome for f in findings]
    if FAILED in outcomes:
        return STATUS_FAILED
    return STATUS_UNDECIDED if UNDECIDED in outcomes and undecided == "fail" else 0


def junit(findings: Sequence[Finding], undecided: str) -> bytes:
    """A test case per condition, as JUnit's XML has them (https://github.com/testmoapp/junitxml)."""
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    outcomes = [f.outcome for f in findings]
    skipped = 0 if undecided == "fail" else outcomes.count(UNDECIDED)
    failures = outcomes.count(FAILED) + outcomes.count(UNDECIDED) - skipped
    counts = {"tests": str(len(findings)), "failures": str(failures), "skipped": str(skipped), "errors": "0"}
    root = Element("testsuites", counts)
    suite = SubElement(root, "testsuite", {"name": "opline compare", **counts})
    for f in findings:
        case = SubElement(suite, "testcase", {"classname": "opline.compare", "name": _xml_text(f.condition.text)})
        said = {"message": _xml_text(f.text)}
        if f.outcome == FAILED or (f.outcome == UNDECIDED and undecided == "fail"):
            SubElement(case, "failure", {**said, "type": f.outcome})
        elif f.outcome == UNDECIDED:
            SubElement(case, "skipped", said)
        else:
            _said(case, f.text)
    indent(root)
    text: str = tostring(root, "unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _said(case: Element, text: str) -> None:
    from xml.etree.ElementTree import SubElement

    SubElement(case, "system-out").text = _xml_text(text)


def _xml_text(text: str) -> str:
    """Without what XML can't hold (XML 1.0, 2.2): a stage's name comes from a trace or a model."""
    return "".join(
        c if c in "\t\n" or "\x20" <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000" else "?"
        for c in text
    )
