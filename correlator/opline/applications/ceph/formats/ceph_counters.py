# SPDX-License-Identifier: MIT
"""What `ceph daemon osd.N perf dump` prints: counters since the daemon began. Their means are a client's figures for
`coverage`: osd.op_latency, op_r_latency and op_w_latency, in seconds. Format: src/common/perf_counters.cc (Hammer on).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.readers.registry import CERTAIN, FIGURES, NO

if TYPE_CHECKING:
    from opline.readers.registry import Head

CALLED, HAS = "the counters of a daemon of Ceph (perf dump)", FIGURES
_MEAN = re.compile(rb'"op_latency"\s*+:\s*+\{\s*+"avgcount"')


def probe(head: Head) -> int:
    """CERTAIN where op_latency has a count."""
    return CERTAIN if _MEAN.search(head.data) else NO
