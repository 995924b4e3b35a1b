# SPDX-License-Identifier: MIT
"""`opline what FILE...`: what an input is, what is in it, which commands take it, and what is missing."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError, UsageError
from opline.paths import is_recording
from opline.readers import registry
from opline.readers.trace import is_ctf_2
from opline.store.chosen import OF_BLOCKS
from opline.store.run import BLOCKS_MODEL, fitting
from opline.store.underway import has_run
from opline.talk import shown
from opline_analyses.base.result_table import json_text
from opline_analyses.base.text import count_of, duration
from opline_analyses.commands.common import add_output, input_path, output
from opline_analyses.commands.vocabulary import CHOICE, FILTERS
from opline_analyses.counts.inputs import FOLDERS
from opline_analyses.runs import ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline.readers.registry import Format
    from opline_analyses.runs.run import Run

NAME = "what"
HELP = "what a file is, what is in it, which commands take it"
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    f"{FILTERS} {CHOICE}": "it says what a whole file is",
    "--csv": "an answer of few lines, of several kinds",
}
EXAMPLES = """\
FILE is any input of a command: a run, a recording, a trace, or the output of
another tool (docs/coming-from.md). opline reads FILE once. `has` lists the
contents, `missing` absent facts and the figures without these facts, `try`
commands for FILE.

examples:
  opline what trace.txt
  opline what run1 mail.txt --json
  blkparse -i sda | opline what -
"""
_SHOWN = 4  # names of a list
_OF_REQUESTS = ("log", "hist", "iostat", "heatmap", "requests", "btt")
_OF_OPS = ("ops", "stages")
_COMPARED = 10  # ops of which some can be slow
_OF_COUNTS = ("hist", "heatmap")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("files", metavar="FILE", nargs="+", type=input_path, help="any input; -: standard input")
    parser.add_argument("--model", metavar="M", help="a trace's op model: a shipped one's name, or a TOML file")
    parser.add_argument("--json", action="store_true", help="JSON, an object for each file, nanoseconds")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Says what each file is; the exit status is 1 if one of them is nothing that opline knows."""
    found = [_one(path, args.model) for path in args.files]
    with output(args.output) as out:
        if args.json:
            out.write(json_text(found).encode())
        else:
            for document in found:
                out.write("".join(f"{shown(line)}\n" for line in _lines(document)).encode())
    return 1 if any(document["is"] is None for document in found) else 0


def _one(path: str, model: str | None) -> dict[str, Any]:
    """What an input is, as JSON has it; ``is``: None of what opline does not know, with the reason in ``refused``."""
    document: dict[str, Any] = {"file": path, "is": None, "has": {}, "losses": {}, "missing": [], "try": []}
    try:
        if not os.path.exists(path):
            raise UsageError(f"{path} does not exist.")
        found = None if os.path.isdir(path) else registry.format_of(path, FOLDERS)
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
    if not os.path.isfile(os.path.join(path, "metadata")):
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
            "model": opened.manifest["model"]["name"] if has["ops"] else None,
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
    from pathlib import Path

    from opline_analyses.client.client import read_report

    report = read_report(Path(path))
    has: dict[str, Any] = {"tool": report.tool, "ops": report.count, "mean_ns": round(report.mean_ns)}
    return has | {"classes": {name: count for name, (count, _) in report.by_class.items()}}


def _lines(document: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    has = document["has"]
    name = document["file"]
    if refused := document.get("refused"):
        yield refused if name in refused else f"{name}: {refused}"
        return
    yield f"{name}: {document['is'] or 'nothing that opline knows'}"
    said = [count_of(has[key], key.removesuffix("s")) for key in has if isinstance(has[key], int) and key[-3:] != "_ns"]
    said += [f"{key.removesuffix('_ns')} {duration(has[key])}" for key in has if key[-3:] == "_ns" and has[key]]
    if said:
        yield f"  has       {', '.join(said)}"
    names = {"event_names": "events", "groups": "groups", "devices": "devices", "programs": "programs"}
    for key, label in names.items():
        listed = [name for name in has.get(key) or () if name]
        if listed:
            more = f", {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
            yield f"  {label:9} {', '.join(listed[:_SHOWN])}{more}"
    if model := document.get("model"):
        yield f"  model     {model}"
    if document["is"] and "events" in has:
        lost = ", ".join(f"{name} {count}" for name, count in document["losses"].items())
        yield f"  losses    {lost or 'none'}"
    for missing in document["missing"]:
        yield f"  missing   {missing}"
    for line in document["try"]:
        yield f"  try       {line}"
