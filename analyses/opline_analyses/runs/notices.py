# SPDX-License-Identifier: MIT
"""The lines on standard error about what is missing in a run: what was lost comes before the figures, the gaps that the
recorder knew come after them. A command and a task of an engine say the same.
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
    """What was lost, on stderr, before anything else. ``ops``, ``recorded``: see ledger.unsaid; ``whose``: what begins
    the line.
    """
    if (line := ledger.unsaid(found, ops, recorded)) is not None:
        talk(f"{whose}{line}")


def tell_not_yours(line: str | None, whose: str = "") -> None:
    """What other programs did and is not counted, on stderr."""
    if line is not None:
        talk(f"{whose}{line}")


def tell_before(run: Run, whose: str = "") -> None:
    """What comes before the figures of a run; ``whose``: what begins each line."""
    tell_losses(ledger.entries(run), run.core("ops"), run.is_recorded, whose)
    tell_not_yours(line_of_run(run), whose)


def tell_gaps(line: str | None, whose: str = "") -> None:
    """What the recorder knew to be missing, on stderr, after everything else; ``whose``: what begins the line."""
    if line is not None:
        sys.stdout.flush()
        talk(f"{whose}{line}")


def gaps_line(run: Run) -> str | None:
    """What comes after the figures of a run: that the recording is not whole; None if it is."""
    return closing_line([Gap(**gap) for gap in run.manifest.get("gaps", ())], run.manifest.get("recording"))
