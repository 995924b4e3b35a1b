# SPDX-License-Identifier: MIT
"""fio's report: JSON and text.

Formats: fio's stat.c (show_thread_status_normal, add_ddir_status_json), 2.0 to 3.41.
"""

from __future__ import annotations

import re
from typing import Any

from opline.values import Value
from opline_analyses.client.client_report import ClientReport, possible
from opline_analyses.client.fio_rate import rates_of

_MIXED = "mixed"  # unified_rw_reporting: all directions in one, or (both) beside them
_NAMES = ("read", "write", "trim", _MIXED)


class _Part(Value):
    """One direction of one job."""

    name: str
    ops: int
    mean_ns: float
    seconds: float
    bytes: int | None


def _fio(parts: list[_Part]) -> ClientReport | None:
    parts = [p for p in parts if p.ops > 0]
    parts = [p for p in parts if p.name != _MIXED] or parts
    count = sum(p.ops for p in parts)
    if not count:
        return None
    seconds = next((p.seconds for p in parts if not possible(p.seconds)), max(p.seconds for p in parts))
    by_class, bytes_by_class = {}, {}
    for name in sorted({p.name for p in parts}):
        mine = [p for p in parts if p.name == name]
        total = sum(p.ops for p in mine)
        by_class[name] = (total, sum(p.ops * p.mean_ns for p in mine) / total)
        moved = [p.bytes for p in mine if p.bytes is not None]
        if len(moved) == len(mine):
            bytes_by_class[name] = next((n for n in moved if not possible(n)), sum(moved))
    mean = sum(p.ops * p.mean_ns for p in parts) / count
    report = ClientReport(
        "fio", mean, count, seconds or None, count / seconds if seconds else None, by_class=by_class,
        bytes=sum(bytes_by_class.values()) if len(bytes_by_class) == len(by_class) else None,
        bytes_by_class=bytes_by_class,
    )  # fmt: skip
    if _MIXED in by_class:
        report.by_class, report.bytes_by_class = {}, {}
    return report


_FIO_MEANS = (("lat_ns", 1), ("clat_ns", 1), ("lat", 1000), ("clat", 1000))


def _direction(name: str, stats: dict[str, Any]) -> _Part | None:
    """One direction of a job, None where it did no I/O. fio before 3.18 has no number of values (N) beside a mean, but
    the number of I/Os (total_ios; before 2.1 only their rate); before 3.0 means are in us and io_bytes in KiB.
    """
    key, unit_ns = next(((k, u) for k, u in _FIO_MEANS if (stats.get(k) or {}).get("mean")), ("", 1))
    if not key:
        return None
    seconds = stats.get("runtime", 0) / 1000
    count = stats[key].get("N") or stats.get("total_ios") or round(stats.get("iops", 0) * seconds)
    if not count:
        return None
    moved = stats.get("io_bytes")
    if moved is not None and unit_ns != 1:
        moved *= 1024
    return _Part(name, int(count), float(stats[key]["mean"]) * unit_ns, seconds, moved)


def _jobs(document: Any) -> list[Any] | None:
    """Of a run on this machine, or of each client of a server (fio --client), whose last one is the sum."""
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("jobs"), list):
        return list(document["jobs"])
    clients = document.get("client_stats")
    return [job for job in clients if job.get("jobname") != "All clients"] if isinstance(clients, list) else None


def fio_json(document: Any) -> ClientReport | None:
    """`fio --output-format=json`: the means of lat (submission to completion; clat where lat is switched off)."""
    jobs = _jobs(document)
    if jobs is None:
        return None
    parts = []
    depths = []
    for job in jobs:
        depths.append(job.get("job options", {}).get("iodepth"))
        for name in _NAMES:
            stats = job.get(name, {})
            part = _direction(name, stats) if isinstance(stats, dict) else None
            if part is not None:
                parts.append(part)
    report = _fio(parts)
    if report and len(depths) == 1 and depths[0]:
        report.queue_depth = int(depths[0])
    if report:
        shared = document.get("global options") or {}
        report.ramp_seconds = _ramp_seconds(shared, jobs)
        report.syncs = _syncs([_syncs_of(job) for job in jobs])
        rates, report.rates_source = _rates(shared, jobs)
        report.rates = {name: rate for name, rate in rates.items() if name in report.by_class}
    return report


def _syncs(found: list[tuple[int, float]]) -> tuple[int, float] | None:
    """Count and mean of all parts."""
    count = sum(n for n, _ in found)
    return (count, sum(n * mean for n, mean in found) / count) if count else None


def _syncs_of(job: dict[str, Any]) -> tuple[int, float]:
    """A job's fsyncs and the like: since fio 3.5."""
    sync = job.get("sync") or {}
    latency = sync.get("lat_ns") or {}
    return int(latency.get("N") or sync.get("total_ios") or 0), float(latency.get("mean") or 0)


def _rates(shared: dict[str, Any], jobs: list[Any]) -> tuple[dict[str, float], str]:
    """The schedule of each thread, if equal for all jobs."""
    options = [shared | (job.get("job options") or {}) for job in jobs]
    found = [rates_of({name: str(value) for name, value in each.items()}) for each in options]
    return found[0] if all(one == found[0] for one in found) else ({}, "")


def _ramp_seconds(shared: dict[str, Any], jobs: list[Any]) -> float | None:
    """The longest ramp_time of the jobs: fio counts nothing before."""
    options = [shared, *(job.get("job options") or {} for job in jobs)]
    given = [str(o["ramp_time"]) for o in options if o.get("ramp_time")]
    found = [s for text in given if (s := _fio_seconds(text))]
    return max(found) if found else None


def _fio_seconds(text: str) -> float | None:
    """fio's times: seconds, or with a unit."""
    match = re.fullmatch(r"(\d+)(us|usec|ms|msec|s|sec|m|min|h|hr|d)?", text.strip().lower())
    return int(match[1]) * _FIO_TIMES[match[2] or "s"] if match else None


_FIO_TIMES = {
    "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0,
    "hr": 3600.0, "d": 86400.0,
}  # fmt: skip


_FIO_UNITS = {"nsec": 1.0, "usec": 1e3, "msec": 1e6, "sec": 1e9}
# since fio 2.99, and before
_FIO_PART = re.compile(
    r"^[ \t]*+(read|write|trim|mixed)[ \t]*+: (?:IOPS=.*?/(\d+)msec\)|io=.*?, runt=[ \t]*+(\d+)msec)", re.MULTILINE
)
_FIO_LAT = re.compile(r"^[ \t]++(lat|clat) \((nsec|usec|msec|sec)\): .*?avg=[ \t]*+([0-9.]++)", re.MULTILINE)
_FIO_SYNC = re.compile(r"^[ \t]++sync \((nsec|usec|msec|sec)\): .*?avg=[ \t]*+([0-9.]++)", re.MULTILINE)
_FIO_TOTAL = re.compile(r"issued(?: rwts?)?[ \t]*+: total=(?:(\d+),(\d+),(\d+)(?:,(\d+))?|r=(\d+)/w=(\d+)/d=(\d+))")


_FIO_SIZES = re.compile(
    r"^[^:\n]++: \(g=\d+\): .*?bs=\(R\) ([^\s,-]++)-([^\s,-]++), \(W\) ([^\s,-]++)-([^\s,-]++), ", re.MULTILINE
)


def _fio_sizes(text: str) -> dict[str, int]:
    """The single size of all I/Os per direction, if equal in all jobs: fio's text rounds the bytes themselves."""
    found: dict[str, set[str]] = {"read": set(), "write": set()}
    for words in _FIO_SIZES.findall(text):
        sizes = [word.removesuffix("B") for word in words]
        found["read"].update(sizes[:2])
        found["write"].update(sizes[2:])
    return {name: int(next(iter(one))) for name, one in found.items() if len(one) == 1 and next(iter(one)).isdigit()}


def fio_text(text: str) -> ClientReport | None:
    """fio's normal output."""
    sizes = _fio_sizes(text)
    parts = []
    syncs = []
    for job in re.split(r"^.*\(groupid=\d+, jobs=\d+\).*$", text, flags=re.MULTILINE)[1:]:
        total = _FIO_TOTAL.search(job)
        if not total:
            continue
        counts = total.groups()[:3] if total[1] else total.groups()[4:]
        ops = dict(zip(("read", "write", "trim"), map(int, counts), strict=True))
        ops[_MIXED] = sum(ops.values())
        if (sync := _FIO_SYNC.search(job)) and total[4]:
            syncs.append((int(total[4]), float(sync[2]) * _FIO_UNITS[sync[1]]))
        starts = [*_FIO_PART.finditer(job)]
        for n, start in enumerate(starts):
            section = job[start.end() : starts[n + 1].start() if n + 1 < len(starts) else len(job)]
            means = {kind: float(avg) * _FIO_UNITS[unit] for kind, unit, avg in _FIO_LAT.findall(section)}
            mean = means.get("lat", means.get("clat"))
            if mean is not None:
                moved = ops[start[1]] * sizes[start[1]] if start[1] in sizes else None
                parts.append(_Part(start[1], ops[start[1]], mean, int(start[2] or start[3]) / 1000, moved))
    report = _fio(parts)
    if report:
        report.syncs = _syncs(syncs)
    return report
