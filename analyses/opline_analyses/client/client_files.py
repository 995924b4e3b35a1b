# SPDX-License-Identifier: MIT
"""Finds a benchmark's files beside a run: the report, and the log of single ops.

Takes a directory of a recording or a run; gives a `ClientReport`, a path, or None. A file named on the command's
command line is taken only if written during the recording: another run may have written the file since.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import TYPE_CHECKING

from opline.paths import is_recording
from opline.readers.pipes import text_of
from opline.shapes import read_json
from opline.store.manifest import RECORDING
from opline.talk import talk
from opline_analyses.client.fio_log import is_fio_log, logs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from opline_analyses.client.client_report import ClientReport

_JOB_FILE = 1 << 16
_told: set[Path] = set()  # files with reported faults
SLACK_S = 5.0  # a report is written at the end of the command, a file system's clock is coarse


def _recording(directory: Path) -> dict[str, Any]:
    if not is_recording(directory):
        return {}
    document: dict[str, Any] = read_json(directory / "recording.json", RECORDING)
    return document


def _wall_s(recording: dict[str, Any], name: str) -> float | None:
    try:
        return datetime.datetime.fromisoformat(recording[name]["wall"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return None


def _written_meanwhile(recording: dict[str, Any], path: Path) -> bool:
    begin, end = _wall_s(recording, "begin"), _wall_s(recording, "end")
    try:
        written = path.stat().st_mtime
    except (OSError, ValueError):  # ValueError: an impossible name, with a NUL or half a character
        return False
    return (begin is None or written >= begin - SLACK_S) and (end is None or written <= end + SLACK_S)


def _argument_files(directory: Path, options: tuple[str, ...]) -> Iterator[Path]:
    """Files named for output on the recorded command line: --json FILE, --output=FILE."""
    recording = _recording(directory)
    command = recording.get("command", {})
    argv, cwd = command.get("argv", []), Path(command.get("cwd", "."))
    for n, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in options and (equals or n + 1 < len(argv)):
            path = cwd / (value if equals else argv[n + 1])
            if _written_meanwhile(recording, path):
                yield path


def find_report(directory: Path) -> ClientReport | None:
    """The report beside a run: the command's file, a JSON file there, or the standard output. None without a report."""
    from opline_analyses.client.client import parse_report

    places = [
        *_argument_files(directory, ("--json", "--output", "-o")),
        *(p for p in sorted(directory.glob("*.json")) if p.name not in ("manifest.json", "recording.json")),
        directory / "stdout.txt",
    ]
    for path in places:
        try:
            report = parse_report(text_of(path)) if path.is_file() else None
        except OSError:
            continue
        if report and (fault := report.fault()):
            if path not in _told:
                _told.add(path)
                talk(f"{path} says what cannot be: {fault}. It is left out.")
        elif report:
            report.source = str(path)
            return report
    return None


def _fio_prefixes(directory: Path) -> Iterator[Path]:
    """The name of fio's latency logs: --write_lat_log=PREFIX, or the line of a job file."""
    command = _recording(directory).get("command", {})
    argv, cwd = command.get("argv", []), Path(command.get("cwd", "."))
    for n, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in ("--write_lat_log", "-write_lat_log") and (equals or n + 1 < len(argv)):
            yield cwd / (value if equals else argv[n + 1])
        elif n and not word.startswith("-"):
            try:
                text = (cwd / word).read_text(errors="replace")[:_JOB_FILE]
            except (OSError, ValueError):
                continue
            yield from (
                cwd / prefix for prefix in re.findall(r"^[ \t]*+write_lat_log[ \t]*+=[ \t]*+(\S++)", text, re.MULTILINE)
            )


def _fio_log(directory: Path) -> Path | None:
    recording = _recording(directory)
    for prefix in _fio_prefixes(directory):
        for path in logs_of(prefix) if prefix.parent.is_dir() else []:
            if _written_meanwhile(recording, path):
                return path
    return next((p for p in sorted(directory.glob("*_lat*.log")) if is_fio_log(p)), None)


def find_log(directory: Path) -> Path | None:
    """The client's own log of its ops beside a run: fio's, or begin_ns,end_ns per line. None without a log."""
    if fio := _fio_log(directory):
        return fio
    for path in [*_argument_files(directory, ("--log",)), *sorted(directory.glob("*.csv"))]:
        try:
            if not path.is_file():  # opening a FIFO would wait for a writer
                continue
            with path.open(encoding="utf-8") as lines:
                columns = set(lines.readline().strip().split(","))
        except (OSError, UnicodeDecodeError):
            continue
        if {"begin_ns", "end_ns"} <= columns and "op_id" not in columns:  # op_id: our own export
            return path
    return None
