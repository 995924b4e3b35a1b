# SPDX-License-Identifier: MIT
"""Small runs of block requests that a test can read off: each I/O is a line with its times in microseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lib.build_run import P, Rq, RunBuilder

SDA, SDB = 8 << 20, 8 << 20 | 16
ZERO_NS = 5_000_000_000
# Time, reads/s, read KB/s, us per read, writes/s, write KB/s, us per write: ten rows a second, as "Beyond iostat 1
# second samples with DTrace" shows them.
TEN_HERTZ = """\
153.1 10 1280 3875 0 0 0
153.2 0 0 0 0 0 0
153.3 10 1280 5506 0 0 0
153.4 0 0 0 0 0 0
153.5 0 0 0 0 0 0
153.6 100 12800 4829 7550 331625 3194
153.7 10 1280 4082 13240 1993760 22143
153.8 20 2560 136888 4150 2171420 82941
153.9 40 5120 13776 1350 286795 73533
154.0 40 4000 8753 12890 99770 1640
154.1 80 10240 6460 1140 23800 879
154.2 30 1450 6748 240 240 923
154.3 20 2560 7926 0 0 0
154.4 200 25600 11560 0 0 0
154.5 0 0 0 0 0 0
154.6 1420 179665 9317 0 0 0
154.7 1300 151960 8097 0 0 0
154.8 0 0 0 0 0 0
154.9 0 0 0 0 0 0
155.0 10 1280 10052 0 0 0
"""


def io_run(path: Path, ios: list[dict[str, Any]], *, seconds: float = 1.0, names: dict[int, str] | None = None) -> Path:
    """A run that begins at ZERO_NS and lasts so long. An I/O: q g i d c in us (absent: not seen), and dev, sector,
    sectors, kind, rwbs, tid, comm, cls, pid, object, cgroup, merges; served_by: of a flush, the place in ``ios`` of the
    one that served it.
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
        run.op(points, [request], op_class=io.get("cls", "op"), pid=io.get("pid", 10), obj=io.get("object", "obj"))
        row = run.rows["requests"][-1]
        row["queue_comm"] = io.get("comm", "app")
        row["cgroup"] = io.get("cgroup")
        row["merge_count"] = io.get("merges", 0)
        row["rwbs"] = io.get("rwbs", {"read": "R", "write": "W", "flush": "FF", "discard": "D"}[request.kind])
        if request.kind == "flush":
            row["sector"] = row["nr_sectors"] = None
        if io.get("served_by") is not None:
            row["flushed_by"] = run.rows["requests"][io["served_by"]]["request_id"]
    run.manifest["core"] = {
        "first_ns": ZERO_NS,
        "last_ns": ZERO_NS + round(seconds * 1e9),
        "devices": {str(dev): name for dev, name in (names or {SDA: "sda", SDB: "sdb"}).items()},
    }
    return run.write(path)
