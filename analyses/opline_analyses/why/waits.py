# SPDX-License-Identifier: MIT
"""What the slow ops waited for, against the typical ones: the causes of their waits, all stages together.

Takes a run and the temporary table `sides` (why/sets.py). In integers, for each of the two sets, the causes sum to the
time in which the threads of the ops' stages did not run, as far as the scheduler's events cover the stages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opline_analyses.base.text import device_name
from opline_analyses.ops.user_places import place_of, stacks_of
from opline_analyses.ops.waited import Spent, holder_besides, plain_name, plain_path
from opline_analyses.runs.columns import ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from opline_analyses.runs.run import Run
    from opline_analyses.why.sets import Sets


class WaitedFor(NamedTuple):
    """A cause: sums over the slow and the typical ops, ns. ``stages``: of the slow ops, those with the most of it
    first; ``inferred_ns``: of the slow ops' time, where an interrupt may have met the thread that is named;
    ``function``: of the program, in which the slow ops waited for it longest. None: no user stack tells.
    """

    spent: Spent
    slow_ns: int
    typical_ns: int
    inferred_ns: int
    stages: list[tuple[str, int]]
    function: str | None = None


class Waits(NamedTuple):
    """The causes, the largest difference first."""

    slow: int
    typical: int
    causes: list[WaitedFor]

    def more_ns(self, *causes: WaitedFor) -> float:
        """How much more of them there is in a slow op than in a typical one."""
        return sum(c.slow_ns for c in causes) / self.slow - sum(c.typical_ns for c in causes) / self.typical


_WAITS = """
    WITH d AS (SELECT op_id, slow FROM sides WHERE op_id BETWEEN {first} AND {last}),
         s AS (SELECT op_id, seq, stage FROM stages SEMI JOIN (SELECT op_id FROM d WHERE slow) USING (op_id)
               WHERE op_id BETWEEN {first} AND {last}),
         r AS (SELECT request_id, kind, dev FROM all_requests WHERE request_id BETWEEN {least} AND {most})
    SELECT d.slow, s.stage, w.kind, w.path, w.comm, r.kind, r.dev, w.instead_comm, w.reason,
           w.cause, w.last_cause, w.holder_comm, w.certain, CASE WHEN d.slow THEN {stack} END,
           sum(w.duration_ns)::BIGINT
    FROM waits w JOIN d USING (op_id) LEFT JOIN s ON s.op_id = w.op_id AND s.seq = w.seq
    LEFT JOIN r ON r.request_id = w.request_id
    WHERE w.op_id BETWEEN {first} AND {last} AND (s.op_id IS NOT NULL OR NOT d.slow)
    GROUP BY ALL"""  # a typical op's stages are not asked for


_OPS = 1 << 16  # at a time: an op can have ten waits


def _sums(run: Run, stacks: bool) -> Iterator[tuple[Any, ...]]:
    """The rows of `_WAITS`: several may be of one cause. ``stacks``: the slow ops' waits by stack, too."""
    for part in ranges(run, "waits", "op_id", "request_id", _OPS):
        yield from run.rows(_WAITS.format(**part._asdict(), stack="w.stack_id" if stacks else "NULL"))


class WaitSums(NamedTuple):
    """By cause: ns of the slow ops, of the typical ones, inferred; and ns of the slow ops by stage, and by function of
    the program.
    """

    sums: dict[Spent, list[int]]
    stages: dict[Spent, dict[str, int]]
    functions: dict[Spent, dict[str, int]]

    def add(
        self,
        spent: Spent,
        sums: Iterable[int],
        stages: Iterable[tuple[str, int]] = (),
        functions: Iterable[tuple[str, int]] = (),
    ) -> None:
        """More of a cause."""
        of = self.sums.setdefault(spent, [0, 0, 0])
        for place, ns in enumerate(sums):
            of[place] += ns
        for by, more in ((self.stages, stages), (self.functions, functions)):
            for name, ns in more:
                there = by.setdefault(spent, {})
                there[name] = there.get(name, 0) + ns


def wait_sums(run: Run) -> WaitSums:
    """What the waits in `sides` sum to."""
    names = run.device_names()
    found = WaitSums({}, {}, {})
    places = _places(run)
    for row in _sums(run, bool(places)):
        slow, stage, kind, path, comm, request, dev, instead, reason, cause, last, holder, certain, stack, ns = row
        device = None if dev is None else device_name(names, dev)
        spent = Spent(kind, plain_path(path), plain_name(comm), request, device, plain_name(instead), reason, cause)
        if path is not None:
            spent = spent._replace(last_cause=last, holder=plain_name(holder_besides(path, cause, holder)))
        if slow:
            function = [(places[stack], ns)] if stack in places else ()
            found.add(spent, (ns, 0, 0 if certain else ns), [(stage, ns)], function)
        else:
            found.add(spent, (0, ns, 0))
    return found


def _places(run: Run) -> dict[int, str]:
    """The function of the program in which a thread waited, by stack. Empty where no user stacks were recorded."""
    stacks = stacks_of(run)
    found = {} if stacks is None else {number: place_of(stack) for number, stack in stacks.of.items()}
    return {number: place for number, place in found.items() if place is not None}


def waits_of(run: Run, sets: Sets) -> Waits | None:
    """The causes of the waits in `sides`. None where no wait was recorded."""
    return waits_from(wait_sums(run), sets)


def waits_from(found: WaitSums, sets: Sets) -> Waits | None:
    """The causes, of sums over one run or several. None where no wait was recorded."""
    sums, stages, functions = found
    if not sums:
        return None
    _name_short(found)
    causes = [
        WaitedFor(
            spent,
            slow,
            typical,
            inferred,
            sorted(stages.get(spent, {}).items(), key=lambda s: (-s[1], s[0])),
            max(functions.get(spent, {}).items(), key=lambda f: (f[1], f[0]), default=(None, 0))[0],
        )
        for spent, (slow, typical, inferred) in sums.items()
    ]
    waits = Waits(sets.slow, sets.typical, causes)
    causes.sort(key=lambda c: (-waits.more_ns(c), str(c.spent)))
    return waits


def _name_short(found: WaitSums) -> None:
    """Short waits have no stacks. Their time joins the only cause with stacks that is alike in all else, if one is."""
    named: dict[Spent, list[Spent]] = {}
    for spent in found.sums:
        if spent.cause is not None or spent.last_cause is not None:
            named.setdefault(spent._replace(cause=None, last_cause=None, holder=None), []).append(spent)
    for bare, same in named.items():
        if len(same) == 1 and bare in found.sums:
            by_stage, by_function = (by.pop(bare, {}).items() for by in (found.stages, found.functions))
            found.add(same[0], found.sums.pop(bare), by_stage, by_function)
