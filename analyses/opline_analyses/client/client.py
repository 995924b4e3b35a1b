# SPDX-License-Identifier: MIT
"""A benchmark's own figures: of fio (fio_report.py), of the demo store's benchmark (text, JSON), and of applications.

Takes a file's text; gives a `ClientReport` with times in integer nanoseconds. A figure missing in the text is None.
Only the mean latency is required.

Formats: ours, examples/demo-store/report.c; applications' formats are their hook `client_report`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opline.applications import table
from opline.errors import OplineError
from opline.readers import packed
from opline.readers.pipes import text_of
from opline_analyses.client.client_folder import outputs_of, together
from opline_analyses.client.client_report import ClientReport
from opline_analyses.client.fio_report import fio_json, fio_text

# A figure on a line: its name, its unit in brackets, its number.
_LINE = re.compile(
    r"^[ \t]*+([A-Za-z][A-Za-z \t]*+)(?:\(([^)\n]*+)\)[ \t]*+)?:[ \t]++([-+0-9.eE]++)[ \t\r]*+$", re.MULTILINE
)


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
    """demo-bench's text: the same in microseconds with three decimals."""
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
    """The text as JSON, or the JSON that begins at one of its lines (fio prints warnings before)."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"^\{", text, re.MULTILINE):
        try:
            yield decoder.raw_decode(text, match.start())[0]
            return
        except ValueError:
            continue


def parse_report(text: str) -> ClientReport | None:
    """The report in a benchmark's output; None without a known format."""
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


_TERSE = re.compile(r"^[2-5];fio-", re.MULTILINE)


def read_report(path: Path) -> ClientReport:
    """The report in a file, or of the clients of one test in a folder of CBT. Raises OplineError without a report."""
    if path.is_dir():
        whole = together([read_report(output) for output in outputs_of(path)])
        whole.source = str(path)
        return whole
    try:
        text = text_of(path)
    except OSError as error:
        raise OplineError(f"Cannot read {path}: {error.strerror}.") from error
    report = parse_report(text)
    if report is None and (reason := packed.reason(path)):
        raise OplineError(reason)
    if report is None and _TERSE.search(text):
        raise OplineError(f"{path} is fio's terse report, which has no number of I/Os: use fio --output-format=json.")
    if report is None:
        known = ", ".join((*(hook.TOOL for hook in table.hooks("client_report")), "fio or demo-bench"))
        raise OplineError(f"{path}: no mean latency of {known} in it (text or JSON).")
    if fault := report.fault():
        raise OplineError(f"{path} says what cannot be: {fault}. It is damaged, or another tool has changed its units.")
    report.source = str(path)
    return report
