# SPDX-License-Identifier: MIT
"""Runs and clients' logs that are made for tests."""

from __future__ import annotations

from pathlib import Path

from tests.lib.build_run import P, Rq, RunBuilder

#: What the demo store's client reports, as JSON.
DEMO = {
    "tool": "demo-bench", "version": 1, "queue_depth": 2, "begin_ns": 0, "end_ns": 2_000_000,
    "latency_ns": {"count": 2, "mean": 50_000.0}, "write_latency_ns": {"count": 2, "mean": 50_000.0},
    "read_latency_ns": {"count": 0},
}  # fmt: skip


def bench_run() -> RunBuilder:
    """Two ops of 40 us, 10 us of them unknown; the client says 50 us."""
    run = RunBuilder()
    for n in range(2):
        t = 1_000_000 * n + 5_000
        run.op(
            [
                P("begin", t),
                P("sent", t + 10_000, stage="queue", kind="wait"),
                P("end", t + 40_000, stage="unknown: C → end", kind="unknown"),
            ],
            [Rq(q=t + 12_000, g=t + 13_000, d=t + 14_000, c=t + 30_000)],
            obj=f"o{n}",
        )
    return run


def with_unknown(run: RunBuilder) -> RunBuilder:
    """The last interval of each op becomes unknown."""
    for stage in run.rows["stages"]:
        if stage["stage"] == "reap":
            stage["stage"], stage["kind"] = "unknown: C → end", "unknown"
    for op in run.rows["ops"]:
        op["unknown_ns"] = 10_000
    return run


def fio_ops(run: RunBuilder, epoch_ns: int, tid: int = 100) -> list[tuple[int, int, int, int]]:
    """Two reads of 4 KiB of one place, one of another; gives (offset, start, issue, complete) from the job's begin."""
    lines = []
    for n, offset in enumerate((8192, 0, 8192)):
        begin = epoch_ns + 1_000_000 * (n + 1)
        run.op([P("pread64", begin, tid=tid), P("return", begin + 50_000, tid=tid)], op_class="pread64")
        run.rows["ops"][-1].update(offset_bytes=offset, length_bytes=4096)
        before, after = 300 + 10 * n, 200 + 20 * n  # fio's own clock reads, before and after the call
        start = 1_000_000 * (n + 1) - before
        lines.append((offset, start, start + 100, 1_000_000 * (n + 1) + 50_000 + after))
    return lines


def fio_logs(folder: Path, lines: list[tuple[int, int, int, int]], job: int = 1, issue_times: bool = True) -> Path:
    """As fio 3.38 writes them (log_offset=1, log_issue_time=1): the lat log has 0 where the clat log has the issue."""
    lat, clat = folder / f"x_lat.{job}.log", folder / f"x_clat.{job}.log"
    texts = {lat: "", clat: ""}
    for offset, start, issue, complete in lines:
        for path, value, issued in ((lat, complete - start, 0), (clat, complete - issue, issue)):
            tail = f", {issued}" if issue_times else ""
            texts[path] += f"{complete // 1_000_000}, {value}, 0, 4096, {offset}, 0{tail}\n"
    for path, text in texts.items():
        path.write_text(text)
    return lat
