# SPDX-License-Identifier: MIT
"""Small runs of block requests that a test can read off: each I/O is a line with its times in microseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lib.build_run import P, Rq, RunBuilder

SDA, SDB = 8 << 20, 8 << 20 | 16
ZERO_NS = 5_000_000_000


def io_run(path: Path, ios: list[dict[str, Any]], *, seconds: float = 1.0, names: dict[int, str] | None = None) -> Path:
    """A run that begins at ZERO_NS and lasts so long. An I/O: q g i d c in us (absent: not seen), and dev, sector,
    sectors, kind, rwbs, tid, comm, cls, pid.
    """
    run = RunBuilder()
    for n, io in enumerate(ios):
        at: dict[str, Any] = {k: ZERO_NS + round(io[k] * 1000) if io.get(k) is not None else None for k in "qgidc"}
        request = Rq(
            **at,
            dev=io.get("dev", SDA),
            sector=io.get("sector", 8 * n),
            nr_sectors=io.get("sectors", 8),
            kind=io.get("kind", "read"),
            tid=io.get("tid", 100),
            critical=False,
        )
        times = [t for t in at.values() if t is not None]
        points = [P("begin", min(times), tid=request.tid), P("end", max(times), tid=request.tid)]
        run.op(points, [request], op_class=io.get("cls", "op"), pid=io.get("pid", 10))
        row = run.rows["requests"][-1]
        row["queue_comm"] = io.get("comm", "app")
        row["rwbs"] = io.get("rwbs", {"read": "R", "write": "W", "flush": "FF", "discard": "D"}[request.kind])
        if request.kind == "flush":
            row["sector"] = row["nr_sectors"] = None
    run.manifest["core"] = {
        "first_ns": ZERO_NS,
        "last_ns": ZERO_NS + round(seconds * 1e9),
        "devices": {str(dev): name for dev, name in (names or {SDA: "sda", SDB: "sdb"}).items()},
    }
    return run.write(path)
