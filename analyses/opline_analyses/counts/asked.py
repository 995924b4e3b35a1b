# SPDX-License-Identifier: MIT
"""What a reader of histograms or of latencies is given: the input, and what the options say of it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers import pipes
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator


class Asked(Value):
    """An input, and what the options say of it; None where they don't."""

    path: str
    counted_in: str | None = None  # the unit of histograms that do not say theirs
    datasource: str | None = None  # of PyLatencyMap's records that do not say theirs
    event: str | None = None  # of Oracle's trace
    case_sensitive: bool = False
    unit: str | None = None  # of two columns: of the values
    unitstime: str | None = None  # of two columns: of the times

    def lines(self) -> Iterator[str]:
        """The lines of the input, as they come. Raises OplineError."""
        try:
            with io.TextIOWrapper(pipes.opened(self.path), encoding="utf-8", errors="replace") as text:
                yield from text
        except OSError as error:
            raise OplineError(f"Cannot read {self.path}: {error.strerror}.") from error
