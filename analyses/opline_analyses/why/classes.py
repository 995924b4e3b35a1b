# SPDX-License-Identifier: MIT
"""The class that most slow ops are of, in a run with several: what slows that class is a question of its own.

Takes a run and the temporary table `ranked` (why/sets.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opline_analyses.base.text import percent

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run
    from opline_analyses.why.sets import Sets

MOST = 0.5  # of the slow ops, and not of all ops: the class is worth a look by itself
LEAST = 10  # slow ops of it
NEARLY_ALL = 0.9  # of the slow ops: said


class SlowClass(NamedTuple):
    """``slow_met`` of ``slow`` slow ops and ``met`` of all ``ops`` are of the class."""

    name: str
    slow_met: int
    slow: int
    met: int
    ops: int

    def text(self) -> str | None:
        """A sentence where nearly all slow ops are of the class."""
        if self.slow_met < NEARLY_ALL * self.slow:
            return None
        part = percent(self.slow_met, self.slow, 0)
        return (
            f"{part} % of the slow ops are of class {self.name}, against {percent(self.met, self.ops, 0)} % of all ops."
        )


def slow_class(run: Run, sets: Sets) -> SlowClass | None:
    """None in a run of one class, where no class has most of the slow ops, and where that class has most of all ops."""
    rows = run.rows(
        """SELECT class::VARCHAR, count(*) FILTER (rank > ?), count(*) FROM ranked JOIN ops USING (op_id)
           GROUP BY ALL ORDER BY 2 DESC, 1""",
        [sets.ops - sets.slow],
    )
    name, slow_met, met = rows[0]
    if len(rows) < 2 or name is None or slow_met < max(LEAST, MOST * sets.slow) or met > MOST * sets.ops:
        return None
    return SlowClass(name, slow_met, sets.slow, met, sets.ops)
