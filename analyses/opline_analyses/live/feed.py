# SPDX-License-Identifier: MIT
"""From records of the BPF ring to rows: a separate core, finished only at the end.

Gives the rows of a run's table `requests`: requests settled since the last look, and requests in flight. Keeps nothing
else: memory grows only with the requests in flight.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opline import _core
from opline.losses import from_core
from opline.model import load_model
from opline.readers.ring import RingReader
from opline.store.run import BLOCKS_MODEL
from opline_analyses.live.rows import CoreRows

if TYPE_CHECKING:
    from opline_analyses.live.rows import Tables


class Feed:
    """Records in (``ring.feed``), tables out."""

    def __init__(self) -> None:
        self._core = _core.Core(load_model(BLOCKS_MODEL).plan_json())
        self._core.keep_tables(("requests",))
        self._rows = CoreRows(("requests",))
        self.ring = RingReader(self._core)

    @property
    def first_ns(self) -> int | None:
        """See Source."""
        return self.ring.first_ns

    @property
    def until_ns(self) -> int | None:
        """See Source."""
        return self.ring.until_ns

    @property
    def processes(self) -> dict[int, int]:
        """See Source."""
        return self.ring.processes

    def finish(self) -> None:
        """The end of the records: requests in flight are settled as not completed."""
        self._core.finish()

    def losses(self) -> dict[str, int]:
        """See Source."""
        return from_core(json.loads(self._core.summary()), {})

    def settled(self) -> Tables:
        """The requests settled since the last call."""
        return self._rows.take(self._core)

    def under_way(self) -> Tables:
        """The unsettled requests. Take the settled requests before."""
        self._core.show_open()
        return self._rows.take(self._core)
