# SPDX-License-Identifier: MIT
"""What a benchmark says of itself: fio and the demo store's benchmark (text, JSON), and those of applications.

Takes a file's text; gives a `ClientReport` in integer nanoseconds where they are times. What the text does not say is
None. Only the mean latency must be there.

Formats: fio, its stat.c (show_thread_status_normal, add_ddir_status_json); ours, examples/demo-store/report.c; those of
applications are their hook `client_report`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opline.applications import table
from opline.errors import OplineError


@dataclass(slots=True)
class ClientReport:
    """A benchmark's own figures. ``numbers`` has all that the text names, by our names, in the text's units."""

    tool: str
    mean_ns: float
    count: int | None = None
    seconds: float | None = None
    iops: float | None = None
    queue_depth: int | None = None
    by_class: dict[str, tuple[int, float]] = field(default_factory=dict)  # class -> count, mean_ns
    numbers: dict[str, float] = field(default_factory=dict)
    source: str = ""
    bytes: int | None = None  # moved, as the tool counts them
    bytes_by_class: dict[str, int] = field(default_factory=dict)
    ramp_seconds: float | None = None  # before what it counts it did the same for so long
    rate: float | None = None  # ops a second that were due on each thread, where the client has a schedule

    def counts(self) -> dict[str, int]:
        """How many ops of each class the tool counts, where it tells them apart."""
        return {name: count for name, (count, _) in self.by_class.items()}

    def of_class(self, name: str) -> ClientReport:
        """The report of one class of ops only, where the tool tells them apart; else itself."""
        if name not in self.by_class:
            return self
        count, mean = self.by_class[name]
        iops = count / self.seconds if self.seconds else None
        return ClientReport(
            self.tool, mean, count, self.seconds, iops, None, {name: (count, mean)}, self.numbers, self.source,
            self.bytes_by_class.get(name), ramp_seconds=self.ramp_seconds,
        )  # fmt: skip


# A figure on a line: its name, its unit in brackets, its number.
_LINE = re.compile(
    r"^[ \t]*+([A-Za-z][A-Za-z \t]*+)(?:\(([^)\n]*+)\)[ \t]*+)?:[ \t]++([-+0-9.eE]++)[ \t\r]*+$", re.MULTILINE
)


# --- fio --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """One direction of one job."""

    name: str
    ops: int
    mean_ns: float
    seconds: float
    bytes: int | None


def _fio(parts: list[_Part]) -> ClientReport | None:
    parts = [p for p in parts if p.ops > 0]
    count = sum(p.ops for p in parts)
    if not count:
        return None
    seconds = max(p.seconds for p in parts)
    by_class, bytes_by_class = {}, {}
    for name in sorted({p.name for p in parts}):
        mine = [p for p in parts if p.name == name]
        total = sum(p.ops for p in mine)
        by_class[name] = (total, sum(p.ops * p.mean_ns for p in mine) / total)
        moved = [p.bytes for p in mine if p.bytes is not None]
        if len(moved) == len(mine):
            bytes_by_class[name] = sum(moved)
    mean = sum(p.ops * p.mean_ns for p in parts) / count
    return ClientReport(
        "fio", mean, count, seconds or None, count / seconds if seconds else None, by_class=by_class,
        bytes=sum(bytes_by_class.values()) if len(bytes_by_class) == len(by_class) else None,
        bytes_by_class=bytes_by_class,
    )  # fmt: skip


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


def fio_json(document: Any) -> ClientReport | None:
    """`fio --output-format=json`: the means of lat (submission to completion; clat where lat is switched off)."""
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), list):
        return None
    parts = []
    depths = []
    for job in document["jobs"]:
        depths.append(job.get("job options", {}).get("iodepth"))
        for name in ("read", "write", "trim"):
            stats = job.get(name, {})
            part = _direction(name, stats) if isinstance(stats, dict) else None
            if part is not None:
                parts.append(part)
    report = _fio(parts)
    if report and len(depths) == 1 and depths[0]:
        report.queue_depth = int(depths[0])
    if report:
        report.ramp_seconds = _ramp_seconds(document)
    return report


def _ramp_seconds(document: Any) -> float | None:
    """The longest ramp_time of its jobs: before it fio counts nothing."""
    options = [document.get("global options") or {}, *(job.get("job options") or {} for job in document["jobs"])]
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
_FIO_PART = re.compile(r"^[ \t]*+(read|write|trim)[ \t]*+: IOPS=.*?/(\d+)msec\)", re.MULTILINE)
_FIO_LAT = re.compile(r"^[ \t]++(lat|clat) \((nsec|usec|msec|sec)\): .*?avg=[ \t]*+([0-9.]++)", re.MULTILINE)
_FIO_TOTAL = re.compile(r"issued rwts: total=(\d+),(\d+),(\d+)")


_FIO_SIZES = re.compile(
    r"^[^:\n]++: \(g=\d+\): .*?bs=\(R\) ([^\s,-]++)-([^\s,-]++), \(W\) ([^\s,-]++)-([^\s,-]++), ", re.MULTILINE
)


def _fio_sizes(text: str) -> dict[str, int]:
    """The one size of all I/Os per direction, where all jobs have that: fio's text rounds the bytes themselves."""
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
    for job in re.split(r"^.*\(groupid=\d+, jobs=\d+\).*$", text, flags=re.MULTILINE)[1:]:
        total = _FIO_TOTAL.search(job)
        if not total:
            continue
        ops = dict(zip(("read", "write", "trim"), map(int, total.groups()), strict=True))
        starts = [*_FIO_PART.finditer(job)]
        for n, start in enumerate(starts):
            section = job[start.end() : starts[n + 1].start() if n + 1 < len(starts) else len(job)]
            means = {kind: float(avg) * _FIO_UNITS[unit] for kind, unit, avg in _FIO_LAT.findall(section)}
            mean = means.get("lat", means.get("clat"))
            if mean is not None:
                moved = ops[start[1]] * sizes[start[1]] if start[1] in sizes else None
                parts.append(_Part(start[1], ops[start[1]], mean, int(start[2]) / 1000, moved))
    return _fio(parts)


# --- the demo store's benchmark ---------------------------------------------------------------------------------------


def demo_json(document: Any) -> ClientReport | None:
    """`demo-bench --json`."""
    if not isinstance(document, dict) or document.get("tool") != "demo-bench":
        return None
    latency = document["latency_ns"]
    if not latency["count"]:
        return None
    by_class = {}
    for name in ("write", "read"):
        mine = document[f"{name}_latency_ns"]
        if mine["count"]:
            by_class[name] = (int(mine["count"]), float(mine["mean"]))
    seconds = (document["end_ns"] - document["begin_ns"]) / 1e9
    numbers = {f"latency_ns.{k}": float(v) for k, v in latency.items()}
    size = document.get("op_size_bytes")
    moved = {name: n * int(size) for name, (n, _) in by_class.items()} if size else {}
    return ClientReport(
        "demo-bench", float(latency["mean"]), int(latency["count"]), seconds, latency["count"] / seconds,
        document.get("queue_depth"), by_class, numbers, bytes=sum(moved.values()) if size else None,
        bytes_by_class=moved, rate=float(document["rate"]) if document.get("rate") else None,
    )  # fmt: skip


def demo_text(text: str) -> ClientReport | None:
    """What demo-bench prints: the same in microseconds with three decimals."""
    found = {(name.strip().lower(), unit): float(value) for name, unit, value in _LINE.findall(text)}
    mean, seconds = found.get(("average latency", "us")), found.get(("total time run", "s"))
    if mean is None:
        return None
    count = int(found.get(("total writes made", ""), 0) + found.get(("total reads made", ""), 0))
    depth, size = found.get(("queue depth", "")), found.get(("op size", "bytes"))
    return ClientReport(
        "demo-bench", mean * 1e3, count, seconds, count / seconds if seconds else None, int(depth) if depth else None,
        bytes=count * int(size) if size else None, rate=found.get(("rate that was due", "/s")),
    )  # fmt: skip


# --- any --------------------------------------------------------------------------------------------------------------


def _documents(text: str) -> Iterator[Any]:
    """The text as JSON, or the JSON that begins at a line of it (fio prints warnings before)."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"^\{", text, re.MULTILINE):
        try:
            yield decoder.raw_decode(text, match.start())[0]
            return
        except ValueError:
            continue


def parse_report(text: str) -> ClientReport | None:
    """The report in a benchmark's output; None if no known one is in it."""
    try:
        for document in _documents(text):
            for parse in (demo_json, fio_json):
                report = parse(document)
                if report:
                    return report
            for hook in table.hooks("client_report"):
                if figures := hook.of_json(document):
                    return ClientReport(**figures)
        for parse_text in (demo_text, fio_text):
            report = parse_text(text)
            if report:
                return report
        for hook in table.hooks("client_report"):
            if figures := hook.of_lines(_LINE.findall(text)):
                return ClientReport(**figures)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        return None
    return None


def read_report(path: Path) -> ClientReport:
    """The report in a file. Raises OplineError where there is none."""
    try:
        report = parse_report(path.read_text(errors="replace"))
    except OSError as error:
        raise OplineError(f"Cannot read {path}: {error.strerror}.") from error
    if report is None:
        known = ", ".join((*(hook.TOOL for hook in table.hooks("client_report")), "fio or demo-bench"))
        raise OplineError(f"{path}: no mean latency of {known} in it (text or JSON).")
    report.source = str(path)
    return report
