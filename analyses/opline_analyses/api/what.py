# SPDX-License-Identifier: MIT
"""What an input is, what is in it, which commands take it, and what is missing: a plain function of a path."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError, UsageError
from opline.paths import is_recording
from opline.readers import registry
from opline.readers.trace import is_ctf_2
from opline.store.chosen import OF_BLOCKS
from opline.store.run import BLOCKS_MODEL, fitting
from opline.store.underway import has_run
from opline_analyses.counts.inputs import FOLDERS
from opline_analyses.runs import ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline.paths import StrPath
    from opline.readers.registry import Format
    from opline_analyses.runs.run import Run

_OF_REQUESTS = ("log", "hist", "iostat", "heatmap", "requests", "btt")
_OF_OPS = ("ops", "stages")
_COMPARED = 10  # ops of which some can be slow
_OF_COUNTS = ("hist", "heatmap")


def what(path: StrPath, model: str | None = None) -> dict[str, Any]:
    """What an input is, as `opline what --json` has it: ``is`` (what people call it), ``has``, ``losses``, ``missing``
    and ``try`` (command lines). Times in ns. Of an input that opline does not know ``is`` is None and ``refused`` has
    the reason. ``model``: a trace's op model, where the events do not name one.
    """
    path = os.fspath(path)
    document: dict[str, Any] = {"file": path, "is": None, "has": {}, "losses": {}, "missing": [], "try": []}
    try:
        if not Path(path).exists():
            raise UsageError(f"{path} does not exist.")
        found = None if Path(path).is_dir() else registry.format_of(path, FOLDERS)
        if found is None or found.HAS in (registry.EVENTS, registry.RUN):
            return document | _of_trace(path, model, found)
        document["is"] = found.CALLED
        if found.HAS in (registry.COUNTS, registry.VALUES):
            return document | {"has": _counted(path, found), "try": [_command(c, path) for c in _OF_COUNTS]}
        if found.HAS == registry.FIGURES:
            line = shlex.join(["opline", "coverage", "RUN", "--client", path])
            return document | {"has": _figures(path), "try": [line]}
        return document | {"missing": [registry.refusal(path, found)]}
    except OplineError as error:
        return document | {"refused": error.message}


def _command(name: str, path: str, *options: str) -> str:
    return shlex.join(["opline", name, path, *options])


def _called(path: str, found: Format | None) -> str:
    if found is not None:
        return found.CALLED
    if has_run(path):
        return "a run"
    if is_recording(path):
        return "a recording"
    if not (Path(path) / "metadata").is_file():
        return "a folder with traces"
    return "a CTF 2 trace" if is_ctf_2(path) else "a CTF 1.8 trace"


def _of_trace(path: str, model: str | None, found: Format | None) -> dict[str, Any]:
    """Of events: how many of which, devices, threads, losses; and what can be asked. Raises OplineError."""
    from opline_analyses.runs.run import open_run

    made = has_run(path) or (found is not None and found.HAS == registry.RUN)
    choice = None if made or model is not None else fitting(path)
    of_blocks = choice is not None and choice.name in OF_BLOCKS  # an op is a request
    known = choice.name if choice is not None and not of_blocks else model
    with open_run(path, known, otherwise=BLOCKS_MODEL) as opened:
        has = _in_run(opened)
        options = ("--model", model) if model is not None else ()
        ops = has["requests"] if of_blocks else has["ops"]
        lines = [_command("why", path, *options)] if ops >= _COMPARED else []
        lines += [_command(name, path, *options) for name in _OF_REQUESTS if has["requests"]]
        lines += [_command(name, path, *options) for name in _OF_OPS if ops]
        lines += [] if has["requests"] or not has["ops"] else [_command("hist", path, "--of", "ops", *options)]
        lines += [] if made else [_command("events", path)]
        return {
            "is": _called(path, found),
            "model": (opened.manifest.get("model") or {}).get("name") if has["ops"] else None,
            "has": has,
            "losses": {e.loss: e.count for e in ledger.entries(opened) if e.severity in ledger.BAD},
            "missing": list(_missing(opened, has)),
            "try": lines,
        }


def _in_run(run: Run) -> dict[str, Any]:
    events: dict[str, int] = {}
    for fate in ledger.fates(run):
        events[fate.event] = events.get(fate.event, 0) + fate.count
    names = run.device_names()
    devices = run.rows("SELECT DISTINCT dev FROM requests WHERE dev IS NOT NULL ORDER BY dev")
    threads = run.rows(
        """SELECT comm, count(*) FROM (SELECT coalesce(queue_comm, issue_comm)::VARCHAR AS comm FROM requests
           UNION ALL SELECT comm::VARCHAR FROM ops) WHERE comm IS NOT NULL GROUP BY comm ORDER BY count(*) DESC, comm"""
    )
    (requests,) = run.row("SELECT count(*) FROM requests")
    (ops,) = run.row("SELECT count(*) FROM ops")
    first, last = run.core("first_ns"), run.core("last_ns")
    return {
        "events": sum(events.values()),
        "event_names": dict(sorted(events.items(), key=lambda event: -event[1])),
        "span_ns": None if first is None or last is None else int(last) - int(first),
        "ops": ops,
        "requests": requests,
        "devices": [names.get(dev, f"{dev >> 20}:{dev & 0xFFFFF}") for (dev,) in devices],
        "programs": [comm for comm, _ in threads if comm],
    }


def _missing(run: Run, has: dict[str, Any]) -> Iterator[str]:
    """What commands would need and the events do not tell."""
    if has["requests"]:
        queued, inserted, done = run.row("SELECT count(queue_ns), count(insert_ns), count(complete_ns) FROM requests")
        if not done:
            yield "completions (block_rq_complete): no latency"
        if not queued:
            yield "block_bio_queue and block_getrq: no time from the queue to the device (-Q, Q2C)"
        if not inserted:
            yield "block_rq_insert: no time in the scheduler (I2D)"
    else:
        yield "block requests: no device, no iostat, no heat map of I/Os"
    if not has["ops"]:
        yield "an application's ops: no stages of its own (tracepoints, system calls; --model names their model)"


def _counted(path: str, found: Format) -> dict[str, Any]:
    """Of histograms or latencies: how many, of what time. Raises OplineError."""
    from opline_analyses.counts.asked import Asked
    from opline_analyses.counts.collected import collect

    read = found.read(Asked(path))  # type: ignore[attr-defined]
    if found.HAS == registry.VALUES:
        batch, one = read
        values = batch.values
        span = int(batch.at_ns.max()) - int(batch.at_ns.min())
        return {f"{one}s": len(values), "span_ns": span, "mean_ns": int(values.sum()) // len(values)}
    collected = collect(read, path)
    last = collected.intervals
    return {
        "histograms": len(last),
        "groups": collected.groups,
        "counts": sum(interval.total for interval in last),
        "span_ns": (last[-1].end_us - last[0].begin_us) * 1000,
    }


def _figures(path: str) -> dict[str, Any]:
    from opline_analyses.client.client import read_report

    report = read_report(Path(path))
    has: dict[str, Any] = {"tool": report.tool, "ops": report.count, "mean_ns": round(report.mean_ns)}
    return has | {"classes": {name: count for name, (count, _) in report.by_class.items()}}
