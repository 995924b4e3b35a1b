# SPDX-License-Identifier: MIT
"""Which ops are slow, and which ones they are compared with.

Takes a run, a selection and a rule (a share, a number, a latency); gives their numbers and the temporary table `sides`
(op_id, slow). Slow are those with the longest latencies; typical is the middle half of the others, p25 to p75 by
nearest rank. Only complete ops count, and those that no lost event touches.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from opline.errors import OplineError, UsageError
from opline.values import Value
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.base.text import count_of
from opline_analyses.ops.stages import none_counts, select_counted

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

_LATENCY = re.compile(r"\s*+(>=?)?\s*+(\d++(?:\.\d++)?)\s*+(ns|us|ms|s)\s*+")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


class Rule(Value):
    """What makes an op slow: one of ``share`` of the ops (0 to 1), ``number`` of ops, ``over_ns``: a longer latency."""

    text: str
    share: Decimal | None = None
    number: int | None = None
    over_ns: int | None = None


class Sets(Value):
    """The two sets. Latencies in ns."""

    ops: int
    incomplete: int
    tainted: int
    slow: int
    slow_from_ns: int  # the shortest latency of the slow ones
    typical: int
    typical_from_ns: int
    typical_to_ns: int
    example: int  # op_id: of the slow ones the one in the middle
    rule: str
    programs: list[tuple[str, int, int]]  # names of processes, the ops they began, the slow ones: the most first


def slowest_rule(text: str) -> Rule:
    """`1%` or a number of ops. Raises UsageError."""
    if found := _SHARE.fullmatch(text.strip()):
        share = Decimal(found[1]) / 100
        if 0 < share < 1:
            return Rule(f"the slowest {found[1]} %", share=share)
    elif text.isdecimal() and int(text):
        return Rule("the slowest op" if int(text) == 1 else f"the slowest {int(text)} ops", number=int(text))
    raise UsageError(f"--slowest {text}: a share of the ops as 1%, or a number of ops.")


def latency_rule(text: str) -> Rule:
    """`>5ms`, `>=800us`; without a sign `>=` is meant. Raises UsageError."""
    found = _LATENCY.fullmatch(text)
    if not found:
        raise UsageError(f"--latency {text}: a latency with its unit (ns, us, ms, s), as '>5ms'.")
    sign = found[1] or ">="
    whole = Decimal(found[2]) * DURATIONS[found[3]]
    over = -int(-whole // 1) - 1 if sign == ">=" else int(whole)  # more than this many whole ns
    words = "of at least" if sign == ">=" else "of more than"
    return Rule(f"ops {words} {found[2]} {found[3]}", over_ns=over)


def rule_of(slowest: str, latency: str | None) -> Rule:
    """Which ops are slow: those of a latency, or so many. Raises UsageError."""
    return latency_rule(latency) if latency is not None else slowest_rule(slowest)


def rank_ops(run: Run, which: Selection, tainted: bool) -> tuple[int, int, int]:
    """Makes `ranked` (op_id, latency_ns, rank from 1). The number of its ops, of incomplete ones, of tainted ones."""
    found = select_counted(run, which, tainted)
    run.con.execute(
        """CREATE OR REPLACE TEMP TABLE ranked AS
           SELECT op_id, latency_ns, row_number() OVER (ORDER BY latency_ns, op_id) AS rank
           FROM ops SEMI JOIN counted USING (op_id)"""
    )
    return found


def slow_by_rank(rule: Rule, n: int) -> int | None:
    """How many of ``n`` ops are slow; None where their latencies say it."""
    if rule.over_ns is not None:
        return None
    return min(n, rule.number) if rule.number is not None else max(1, int((rule.share or 0) * n))


def check_slow(rule: Rule, slow: int, n: int, longest_ns: int) -> None:
    """Raises OplineError where there are no two sets."""
    if slow == 0:
        raise OplineError(f"No {rule.text} among {count_of(n, 'op')}: the longest takes {longest_ns} ns.")
    if n == 1:
        raise OplineError("There is 1 op: nothing to compare it with.")
    if slow == n:
        raise OplineError(f"All {count_of(n, 'op')} are slow by this rule: there is nothing to compare them with.")


def typical_ranks(others: int) -> tuple[int, int]:
    """The first and the last rank of the middle half of those that are not slow."""
    return -(-others // 4), -(-3 * others // 4)


def make_sides(run: Run, others: int, low: int, high: int) -> None:
    """Makes `sides` of `ranked`: slow are the ranks above ``others``, typical those from ``low`` to ``high``."""
    run.con.execute(
        f"""CREATE OR REPLACE TEMP TABLE sides AS SELECT op_id, rank > {others} AS slow FROM ranked
            WHERE rank > {others} OR rank BETWEEN {low} AND {high}"""
    )


def choose(run: Run, which: Selection, rule: Rule, tainted: bool = False) -> Sets:
    """Makes `sides`. Raises OplineError where there are no two sets."""
    n, incomplete, touched = rank_ops(run, which, tainted)
    if n == 0:
        raise OplineError(none_counts(f" in {run.given}", incomplete, touched))
    slow = slow_by_rank(rule, n)
    if slow is None:
        (slow,) = run.row("SELECT count(*) FROM ranked WHERE latency_ns > ?", [rule.over_ns])
    (longest,) = run.row("SELECT max(latency_ns) FROM ranked")
    check_slow(rule, slow, n, longest)
    others = n - slow
    low, high = typical_ranks(others)
    make_sides(run, others, low, high)
    at = {others + 1: 0, low: 0, high: 0}
    at |= dict(run.rows(f"SELECT rank, latency_ns FROM ranked WHERE rank IN ({', '.join(map(str, at))})"))
    (example,) = run.row("SELECT op_id FROM ranked WHERE rank = ?", [others + (slow + 1) // 2])
    return Sets(
        n,
        incomplete,
        touched,
        slow,
        at[others + 1],
        high - low + 1,
        at[low],
        at[high],
        int(example),
        rule.text,
        programs_of(run, others),
    )


def programs_of(run: Run, others: int) -> list[tuple[str, int, int]]:
    """The ops of `ranked` by process, with those above the rank ``others``. A process is called by its program, else by
    its first thread here.
    """
    return run.rows(
        f"""SELECT name, sum(n)::BIGINT, sum(slow)::BIGINT FROM (
                SELECT coalesce(program, arg_min(comm, op_id), '?') AS name, count(*) AS n,
                       count_if(rank > {others}) AS slow
                FROM ops JOIN ranked USING (op_id) GROUP BY host, pid, program)
            GROUP BY name ORDER BY 2 DESC, 1"""
    )
