# SPDX-License-Identifier: MIT
"""What recording costs a command: rounds with and without it in turn, their ratio and how sure it is.

Takes the rounds' times and what the benchmark said in each; gives lines for people and a document for machines.
"""

from __future__ import annotations

import math
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from types import MappingProxyType
from typing import Any

from opline.capture.machine import processes
from opline.capture.recorder.options import find_command
from opline.errors import OplineError
from opline.values import Value
from opline_analyses.base.text import duration
from opline_analyses.client.client_files import find_report
from opline_analyses.compare.student import upper

ROUNDS = 5
FILE = "overhead.json"
SURE = 0.95
_KNOWN = ("time", "mean latency", "ops a second")


class Round(Value):
    """One run of the command: its time, and what its benchmark says, where one is known by its output."""

    recorded: bool
    time_ns: int
    mean_ns: float | None
    iops: float | None
    figures: Mapping[str, float | None] = MappingProxyType({})  # the wanted figures, by name


class Figure(Value):
    """A number that the command prints: what stands before it, and a regular expression with it as its one group."""

    name: str
    pattern: re.Pattern[str]

    def of(self, directory: Path) -> float | None:
        """The last one that the command wrote there; None if there is none."""
        for stream in ("stdout.txt", "stderr.txt"):
            for text in reversed(self.pattern.findall((directory / stream).read_text(errors="replace"))):
                try:
                    return float(text.replace(",", ""))
                except ValueError:
                    continue
        return None


def figures_of(texts: Sequence[str]) -> list[Figure]:
    """Of regular expressions. Raises ValueError with what is wrong."""
    found: list[Figure] = []
    for text in texts:
        try:
            pattern = re.compile(text, re.MULTILINE)
        except re.error as error:
            raise ValueError(f"{text!r} is no regular expression: {error}") from error
        if pattern.groups != 1:
            raise ValueError(f"{text!r} has {pattern.groups} groups; one is wanted, as in 'tps = ([0-9.]+)'")
        name = " ".join(re.findall(r"\w+", text.partition("(")[0]))
        taken = {*_KNOWN, *(one.name for one in found)}
        found.append(Figure(text if not name or name in taken else name, pattern))
    return found


class Ratio(Value):
    """Recorded to plain: the geometric mean over the pairs, and the interval in which it is with 95 % confidence."""

    value: float
    low: float
    high: float


def run_plain(command: Sequence[str], directory: Path) -> tuple[int, int]:
    """Runs the command as it is, its output into the directory; its exit status as a shell tells it, and its time in
    ns. Raises OplineError.
    """
    program = find_command(command[0])
    directory.mkdir()
    with (directory / "stdout.txt").open("wb") as out, (directory / "stderr.txt").open("wb") as err:
        begin_ns = time.monotonic_ns()
        try:
            done = subprocess.run(
                [program, *command[1:]], stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False,
                pass_fds=processes.from_caller(),
            )  # fmt: skip
        except OSError as error:
            raise OplineError(f"{command[0]}: {error.strerror}", exit_code=126) from error
        time_ns = time.monotonic_ns() - begin_ns
    return processes.shell_status(done.returncode), time_ns


def round_of(directory: Path, recorded: bool, time_ns: int, figures: Sequence[Figure] = ()) -> Round:
    """With the benchmark's own figures, from what it wrote there."""
    report = find_report(directory)
    asked = {one.name: one.of(directory) for one in figures}
    return Round(recorded, time_ns, report.mean_ns if report else None, report.iops if report else None, asked)


def ratio(recorded: Sequence[float], plain: Sequence[float]) -> Ratio:
    """Of values in pairs, all above 0: by Student's t on the pairs' logarithms. At least two pairs."""
    logs = [math.log(a / b) for a, b in zip(recorded, plain, strict=True)]
    middle = mean(logs)
    half = upper((1 - SURE) / 2, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def _figures(rounds: Sequence[Round]) -> list[str]:
    return list(rounds[0].figures) if rounds else []


def _figure(name: str, of: Round) -> float | None:
    return of.figures.get(name)


def _pairs(rounds: Sequence[Round]) -> dict[str, list[list[float]]]:
    """By name the figures that every round has, and that are above 0: with recording, and without."""
    known = (lambda r: r.time_ns, lambda r: r.mean_ns, lambda r: r.iops)
    kinds: dict[str, Callable[[Round], float | None]] = {
        **dict(zip(_KNOWN, known, strict=True)),
        **{name: partial(_figure, name) for name in _figures(rounds)},
    }
    found = {}
    for name, value in kinds.items():
        sides = [[value(r) for r in rounds if r.recorded is side] for side in (True, False)]
        good = [[v for v in side if v is not None and v > 0] for side in sides]
        if len(good[0]) == len(good[1]) == len(rounds) // 2 >= 2:
            found[name] = good
    return found


def lines(rounds: Sequence[Round]) -> Iterator[str]:
    """What to say. ``rounds``: pairs of one recorded and one plain."""
    of_kind = _pairs(rounds)
    for name, sides in of_kind.items():
        r, means = ratio(*sides), ""
        if name != "ops a second":
            shown = [f"{v:,.6g}" if name in _figures(rounds) else duration(v) for v in map(mean, sides)]
            means = f" ({shown[0]} and {shown[1]} in the mean)"
        yield (
            f"{name} with recording is {r.value:.3f} times that without, with 95 % confidence {r.low:.3f} to "
            f"{r.high:.3f}{means}{': not told from none' if r.low <= 1 <= r.high else ''}"
        )
    for name in _figures(rounds):
        if name not in of_kind:
            yield f"{name}: not in the output of every round, or not above 0: no ratio"
    if not {"mean latency", *_figures(rounds)} & of_kind.keys():
        yield (
            "of a command that always runs as long its time says nothing; its output names no latency that is known: "
            "--figure REGEX tells what to look for"
        )


def document(rounds: Sequence[Round]) -> dict[str, Any]:
    """The same for machines."""
    return {
        "rounds": [
            {
                "recorded": r.recorded,
                "time_ns": r.time_ns,
                "mean_ns": r.mean_ns,
                "iops": r.iops,
                "figures": dict(r.figures),
            }
            for r in rounds
        ],
        "ratios": {
            name.replace(" ", "_"): {"ratio": r.value, "low": r.low, "high": r.high}
            for name, r in ((name, ratio(*sides)) for name, sides in _pairs(rounds).items())
        },
        "confidence": SURE,
    }
