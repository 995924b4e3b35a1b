# SPDX-License-Identifier: MIT
"""Where the threads of ops waited: the stacks of their waits, with the time of these, for flame graphs.

A stack begins with the class of the op and the stage, then has the functions of the program, if they were recorded,
and those of the kernel, outermost first. Takes the run's `waits` and the `stacks.json` of its recording. In integers,
the stacks sum to the waits of the ops that count: a wait without a stack has a frame that says so, and of a wait for a
CPU a frame names the thread that ran instead.

Of slow ops against typical ones, which are more, a stack has the mean of each side: nanoseconds per op.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from opline.readers.stacks import Stacks
from opline.talk import shown, talk
from opline_analyses.base.text import count_of, duration
from opline_analyses.ops.stages import counted_ranges, select_counted
from opline_analyses.ops.user_places import OFFSET, stacks_of
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection
from opline_analyses.why.sets import Rule, choose

NO_STACK, FOR_A_CPU = "[no stack]", "[waits for a CPU]"
_SUMS = """
    SELECT coalesce(o.class, '?'), s.stage, w.stack_id, w.kind = 'cpu' AND w.depth = 0,
           CASE WHEN w.depth = 0 THEN w.instead_comm END, o.slow, sum(w.duration_ns)::HUGEINT
    FROM (SELECT * FROM waits WHERE op_id BETWEEN {first} AND {last} AND duration_ns > 0) w
    JOIN (SELECT op_id, class, slow FROM ops JOIN {sides} USING (op_id) WHERE op_id BETWEEN {first} AND {last}) o
        USING (op_id)
    JOIN (SELECT op_id, seq, stage FROM stages WHERE op_id BETWEEN {first} AND {last}) s
        ON s.op_id = w.op_id AND s.seq = w.seq
    GROUP BY ALL"""
_ALL, _SIDES = "(SELECT op_id, true AS slow FROM counted)", "sides"


class Waited(NamedTuple):
    """Nanoseconds in which threads of one class and stage waited. ``frames``: outermost first."""

    op_class: str
    frames: tuple[str, ...]
    ns: int


class Against(NamedTuple):
    """Mean nanoseconds per op, rounded, of the typical ops and of the slow ones. ``frames``: outermost first."""

    op_class: str
    frames: tuple[str, ...]
    typical_ns: int
    slow_ns: int


def _frames(stacks: Stacks | None, number: int | None, for_cpu: bool) -> tuple[str, ...] | None:
    """Functions of one stack; None: there is none."""
    found = None if stacks is None or number is None or for_cpu else stacks.of.get(number)
    return None if found is None else tuple(OFFSET.sub("", shown(f)) for f in reversed((*found.frames, *found.user)))


def _why_not(stacks: Stacks | None) -> str:
    """Which waits have no stack."""
    if stacks is None:
        return ": the recording has no stacks.json, or is not there. `opline record` takes stacks through BPF."
    short = [f"waits of less than {duration(stacks.threshold_ns)}"] if stacks.threshold_ns else []
    beyond = [f"{count_of(stacks.left_out, 'wait')} beyond the budget"] if stacks.left_out else []
    late = [] if stacks.ended else ["waits at the end, as the recorder was killed"]
    return f"; without: {', '.join(['waits for a CPU', *short, *beyond, *late])}"


def _rows(run: Run, sides: str = _ALL) -> Iterator[tuple[Any, ...]]:
    """Sums of the waits, of a range of ops at a time. ``sides``: the ops (op_id, slow)."""
    for first, last in counted_ranges(run):
        yield from run.rows(_SUMS.format(first=first, last=last, sides=sides))


def _sums(run: Run, sides: str) -> list[tuple[str, tuple[str, ...], int, int]]:
    """Class, frames, and the ns of the ops that are not slow and of the slow ones, in the order of the stacks. Says on
    stderr how much of the time has a stack.
    """
    stacks = stacks_of(run)
    sums: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    whole = with_stack = 0
    for op_class, stage, number, for_cpu, instead, slow, ns in _rows(run, sides):
        functions = _frames(stacks, number, bool(for_cpu))
        whole += ns
        with_stack += ns if functions else 0
        without = (FOR_A_CPU, *((f"[{shown(instead)} runs]",) if instead else ())) if for_cpu else (NO_STACK,)
        frames = (shown(stage), *(functions or without))
        sums.setdefault((shown(op_class), frames), [0, 0])[slow] += ns
    talk(f"{duration(with_stack)} of {duration(whole)} of waits have a stack{_why_not(stacks)}")
    return [(op_class, frames, rest, slow) for (op_class, frames), (rest, slow) in sorted(sums.items())]


def waited(run: Run, which: Selection) -> tuple[int, Iterator[Waited]]:
    """Number of the ops that count, and their waits by stack. Raises OplineError if stacks.json is damaged."""
    ops, _, _ = select_counted(run, which, False)
    return ops, (Waited(op_class, frames, ns) for op_class, frames, _, ns in _sums(run, _ALL))


def waited_against_typical(run: Run, which: Selection, rule: Rule) -> tuple[int, Iterator[Against]]:
    """Number of the ops on both sides, and their waits by stack. ``rule`` says which ops are slow, and
    why/sets.py which ones are typical. Raises OplineError where there are no two sides, and if stacks.json is damaged.
    """
    sets = choose(run, which, rule)
    talk(f"{count_of(sets.slow, 'slow op')} ({sets.rule}) against {sets.typical} typical: mean ns per op")

    def mean(ns: int, ops: int) -> int:
        return (2 * ns + ops) // (2 * ops)

    means = (
        Against(op_class, frames, mean(typical, sets.typical), mean(slow, sets.slow))
        for op_class, frames, typical, slow in _sums(run, _SIDES)
    )
    return sets.slow + sets.typical, (one for one in means if one.typical_ns or one.slow_ns)
