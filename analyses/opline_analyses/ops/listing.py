# SPDX-License-Identifier: MIT
"""A list of whole ops, as printed by `opline ops`: as text, as records, or as values.

Takes a run and a selection. Ops are read some thousand at a time, so a list of any length fits into memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline_analyses.base.result_table import rendered
from opline_analyses.ops.met import met, met_list
from opline_analyses.ops.oplist import read_ops
from opline_analyses.ops.transitions import STYLES, state_list
from opline_analyses.runs.selection import without_incomplete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.base.result_table import Part
    from opline_analyses.ops.oplist import OpDetail
    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection


class OpListing:
    """Ops, read again by each iteration, while the run is open."""

    def __init__(
        self, run: Run, which: Selection, style: str, states: bool, behind: bool, unfold: bool, most: int | None
    ) -> None:
        """See `api.ops.listed`."""
        self._run, self._which = run, which
        self._style, self._behind, self._unfold = STYLES[style], behind, unfold
        self._apart = style != "default"  # another tool's style: without requests, states and other ops
        self._states = states and not self._apart
        self.left_out = 0  # incomplete ops, without lines in the other tool's style
        self.hidden = 0  # ops beyond ``most``
        self.states_missing = False  # states were asked for, and the ops of the last text have none
        if self._apart:
            self._which, self.left_out = without_incomplete(run, which)
        elif most is not None and which.limit is None:
            (total,) = run.row(f"SELECT count(*) FROM ({which.sql()})", which.parameters)
            self._which, self.hidden = which.first(most), max(0, total - most)

    def __iter__(self) -> Iterator[OpDetail]:
        """The ops, in the order of the selection."""
        return read_ops(self._run, self._which, with_blocks=not self._apart)

    def records(self) -> Iterator[dict[str, Any]]:
        """For each op the JSON object; ``behind`` has rows only on demand."""
        for op in self:
            others = met(self._run, op) if self._behind else []
            yield op.record() | {"behind": [other._asdict() for other in others]}

    def parts(self) -> Iterator[list[Part]]:
        """For each op the parts of its text."""
        number = told = 0
        for op in self:
            states = list(state_list(op)) if self._states else []
            number, told = number + 1, told + bool(states)
            others = met(self._run, op) if self._behind and not self._apart else []
            lines: list[Part] = list(self._style(op, self._unfold))
            yield [*lines, *states, *met_list(others)]
        self.states_missing = self._states and number > 0 and not told

    def text(self) -> str:
        """All ops as text, with an empty line between two ops."""
        between = "\n" if self._apart else "\n\n"
        return between.join("\n".join(rendered(parts)) for parts in self.parts())
