# SPDX-License-Identifier: MIT
"""Times and latencies without known I/Os, for the views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opline.errors import OplineError
from opline_analyses.intervals.intervals import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline.paths import StrPath


def batch_of(times: Sequence[int], values: Sequence[int], path: StrPath) -> Batch:
    """Times and values in ns. Raises OplineError for a number too large for a column."""
    nothing: Any = np.zeros(len(times), np.int64)
    try:
        if max(times) - min(times) >= 2**63:
            raise OverflowError
        return Batch(np.array(times, np.int64), np.array(values, np.int64), nothing, nothing, [""])
    except OverflowError as error:
        raise too_large(path) from error


def too_large(path: StrPath) -> OplineError:
    """The error about a number too large for a column."""
    return OplineError(f"{path} has a number that is too large: 2^63 ns are 292 years.")
