# SPDX-License-Identifier: MIT
"""The lines on standard error about a run's losses: lost events before the figures, and gaps known to the recorder
after the figures. A command and a task of an engine print the same.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from opline.gaps import closing_line
from opline.losses import Gap
from opline.talk import talk
from opline_analyses.runs import ledger
from opline_analyses.runs.not_yours import line_of_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opline_analyses.runs.run import Run


def tell_losses(found: list[ledger.Entry], ops: Mapping[str, int] | None, recorded: bool, whose: str = "") -> None:
    """Reports lost events, on stderr, before anything else. ``ops``, ``recorded``: see ledger.unsaid; ``whose``: begin
    of the line.
    """
    if (line := ledger.unsaid(found, ops, recorded)) is not None:
        talk(f"{whose}{line}")


def tell_not_yours(line: str | None, whose: str = "") -> None:
    """Reports the uncounted work of other programs, on stderr."""
    if line is not None:
        talk(f"{whose}{line}")


def tell_before(run: Run, whose: str = "") -> None:
    """The lines before the figures of a run; ``whose``: begin of each line."""
    tell_losses(ledger.entries(run), run.core("ops"), run.is_recorded, whose)
    tell_not_yours(line_of_run(run), whose)


def tell_gaps(line: str | None, whose: str = "") -> None:
    """Reports gaps known to the recorder, on stderr, after everything else; ``whose``: begin of the line."""
    if line is not None:
        sys.stdout.flush()
        talk(f"{whose}{line}")


def gaps_line(run: Run) -> str | None:
    """The line after the figures of a run: the recording is not whole; None for a whole recording."""
    return closing_line([Gap(**gap) for gap in run.manifest.get("gaps", ())], run.manifest.get("recording"))
