# SPDX-License-Identifier: MIT
"""What rados bench says of its run, as text and as JSON.

The hook `client_report`: TOOL names the benchmark; `of_lines` and `of_json` give its figures, or None where the text is
another tool's. Format: Ceph's src/common/obj_bencher.cc (write_bench, seq_read_bench, rand_read_bench; names with and
without "(s)", "Write size" or "Read size").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

TOOL = "rados bench"

# Text before the colon, without a unit in brackets -> our name. Times in seconds, bandwidths in MB/s (2^20), sizes in
# bytes.
_NAMES = {
    "total time run": "total_time_run",
    "total writes made": "total_writes_made",
    "total reads made": "total_reads_made",
    "write size": "write_size",
    "read size": "read_size",
    "object size": "object_size",
    "bandwidth": "bandwidth",
    "stddev bandwidth": "stddev_bandwidth",
    "max bandwidth": "max_bandwidth",
    "min bandwidth": "min_bandwidth",
    "average iops": "average_iops",
    "stddev iops": "stddev_iops",
    "max iops": "max_iops",
    "min iops": "min_iops",
    "average latency": "average_latency",
    "stddev latency": "stddev_latency",
    "max latency": "max_latency",
    "min latency": "min_latency",
}


def of_lines(lines: Iterable[tuple[str, str, str]]) -> dict[str, Any] | None:
    """The summary that rados bench prints at its end. A line is its name, unit and number; a unit of us is another
    benchmark's.
    """
    numbers: dict[str, float] = {}
    for name, unit, value in lines:
        key = _NAMES.get(name.strip().lower())
        if key is not None and unit not in ("us", "usec"):
            numbers[key] = float(value)
    return _figures(numbers)


def of_json(document: Any) -> dict[str, Any] | None:
    """`rados bench --format json`; some versions write the numbers as strings. Or `ceph daemon osd.N perf dump`."""
    if isinstance(document, dict) and isinstance(document.get("osd"), dict):
        return _of_counters(document["osd"])
    if not isinstance(document, dict) or "average_latency" not in document:
        return None
    return _figures({k: float(document[k]) for k in _NAMES.values() if k in document})


def _figures(numbers: dict[str, float]) -> dict[str, Any] | None:
    """A report's figures from the numbers of rados bench, which get what they imply: iops and mean bytes per second."""
    if "average_latency" not in numbers:
        return None
    made = [numbers[k] for k in ("total_writes_made", "total_reads_made") if k in numbers]
    count = int(sum(made)) if made else None
    seconds = numbers.get("total_time_run")
    iops = count / seconds if count is not None and seconds else numbers.get("average_iops")
    size = numbers.get("write_size", numbers.get("read_size", numbers.get("object_size")))
    moved = None if count is None or size is None else count * int(size)
    if count is not None and seconds:
        numbers["iops"] = count / seconds
        if moved is not None:
            numbers["bytes_per_second"] = moved / seconds
    mean_ns = numbers["average_latency"] * 1e9
    return {
        "tool": TOOL, "mean_ns": mean_ns, "count": count, "seconds": seconds, "iops": iops, "numbers": numbers,
        "bytes": moved,
    }  # fmt: skip


def _of_counters(osd: dict[str, Any]) -> dict[str, Any] | None:
    """The mean latency of an OSD's ops since it began, of reads and writes apart: src/common/perf_counters.cc."""

    def mean_of(name: str) -> tuple[int, float]:
        found = osd.get(name) or {}
        count = int(found.get("avgcount", 0))
        return count, float(found["sum"]) * 1e9 / count if count else 0.0

    count, mean_ns = mean_of("op_latency")
    classes = {name: mean_of(key) for name, key in (("read", "op_r_latency"), ("write", "op_w_latency"))}
    moved = {name: int(osd[key]) for name, key in (("read", "op_out_bytes"), ("write", "op_in_bytes")) if key in osd}
    if not count:
        return None
    return {
        "tool": "perf dump of an OSD", "mean_ns": mean_ns, "count": count, "bytes_by_class": moved,
        "by_class": {name: one for name, one in classes.items() if one[0]},
    }  # fmt: skip
