# SPDX-License-Identifier: MIT
"""What recording costs a command: rounds with and without it in turn, their ratio and how sure it is.

Takes the rounds' times and what the benchmark said in each; gives lines for people and a document for machines.
"""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from opline.capture.machine import processes
from opline.capture.recorder.options import find_command
from opline.errors import OplineError
from opline_analyses.base.text import duration
from opline_analyses.client.client_files import find_report
from opline_analyses.compare.student import upper

ROUNDS = 5
FILE = "overhead.json"
SURE = 0.95


@dataclass(frozen=True, slots=True)
class Round:
    """One run of the command: its time, and what its benchmark says, where one is known by its output."""

    recorded: bool
    time_ns: int
    mean_ns: float | None
    iops: float | None


@dataclass(frozen=True, slots=True)
class Ratio:
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
                [program, *command[1:]], stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False
            )
        except OSError as error:
            raise OplineError(f"{command[0]}: {error.strerror}", exit_code=126) from error
        time_ns = time.monotonic_ns() - begin_ns
    return processes.shell_status(done.returncode), time_ns


def round_of(directory: Path, recorded: bool, time_ns: int) -> Round:
    """With the benchmark's own figures, from what it wrote there."""
    report = find_report(directory)
    return Round(recorded, time_ns, report.mean_ns if report else None, report.iops if report else None)


def ratio(recorded: Sequence[float], plain: Sequence[float]) -> Ratio:
    """Of values in pairs, all above 0: by Student's t on the pairs' logarithms. At least two pairs."""
    logs = [math.log(a / b) for a, b in zip(recorded, plain, strict=True)]
    middle = mean(logs)
    half = upper((1 - SURE) / 2, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def _ratios(rounds: Sequence[Round]) -> dict[str, Ratio]:
    kinds: dict[str, Callable[[Round], float | None]] = {
        "time": lambda r: r.time_ns,
        "mean latency": lambda r: r.mean_ns,
        "ops a second": lambda r: r.iops,
    }
    found = {}
    for name, value in kinds.items():
        sides = [[value(r) for r in rounds if r.recorded is side] for side in (True, False)]
        good = [[v for v in side if v is not None and v > 0] for side in sides]
        if len(good[0]) == len(good[1]) == len(rounds) // 2 >= 2:
            found[name] = ratio(good[0], good[1])
    return found


def lines(rounds: Sequence[Round]) -> Iterator[str]:
    """What to say. ``rounds``: pairs of one recorded and one plain."""
    of_kind = _ratios(rounds)
    for name, r in of_kind.items():
        means = ""
        if name != "ops a second":
            values = [
                mean((r.time_ns if name == "time" else r.mean_ns or 0) for r in rounds if r.recorded is side)
                for side in (True, False)
            ]
            means = f" ({duration(values[0])} and {duration(values[1])} in the mean)"
        yield (
            f"{name} with recording is {r.value:.3f} times that without, with 95 % confidence {r.low:.3f} to "
            f"{r.high:.3f}{means}{': not told from none' if r.low <= 1 <= r.high else ''}"
        )
    if "mean latency" not in of_kind:
        yield "of a command that always runs as long its time says nothing; its output names no latency that is known"


def document(rounds: Sequence[Round]) -> dict[str, Any]:
    """The same for machines."""
    return {
        "rounds": [
            {"recorded": r.recorded, "time_ns": r.time_ns, "mean_ns": r.mean_ns, "iops": r.iops} for r in rounds
        ],
        "ratios": {
            name.replace(" ", "_"): {"ratio": r.value, "low": r.low, "high": r.high}
            for name, r in _ratios(rounds).items()
        },
        "confidence": SURE,
    }
