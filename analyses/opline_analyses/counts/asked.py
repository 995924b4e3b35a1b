# SPDX-License-Identifier: MIT
"""The arguments of a reader of histograms or latencies: the input, and the options about the input."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers import pipes
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator


class Asked(Value):
    """An input, and the options about the input; None: not given."""

    path: str
    counted_in: str | None = None  # the unit of histograms without a unit
    datasource: str | None = None  # of PyLatencyMap's records without a data source
    event: str | None = None  # of Oracle's trace
    case_sensitive: bool = False
    unit: str | None = None  # of two columns: of the values
    unitstime: str | None = None  # of two columns: of the times

    def lines(self) -> Iterator[str]:
        """The lines of the input, one after the other. Raises OplineError."""
        try:
            with io.TextIOWrapper(pipes.opened(self.path), encoding="utf-8", errors="replace") as text:
                yield from text
        except OSError as error:
            raise OplineError(f"Cannot read {self.path}: {error.strerror}.") from error
