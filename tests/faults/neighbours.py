# SPDX-License-Identifier: MIT
"""Recorders inside and outside of PID namespaces that share one runtime directory: does one harm another's recording?

    python -m tests.faults.neighbours [--rounds N] [--block]

In each round three recorders run at once: outside, and in two PID namespaces, each with a /proc of its own. Meanwhile
``opline doctor --clean-up`` runs on both sides. The traced program counts its own events: each recording must end with
status 0, be complete, and have every event. Exit status 1 if a recording was harmed, or anything is left.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.lib.namespaces import PID_NAMESPACE

ROOT = Path(__file__).resolve().parents[2]
OPLINE = (sys.executable, "-P", "-m", "opline_analyses")
TICKS, PAUSE_US = 400, 1000


def compile_ticker(folder: Path) -> Path:
    """A program that makes numbered events (tests/ust_app/ticker.c)."""
    source = ROOT / "tests" / "ust_app"
    ticker = folder / "ticker"
    argv = ["gcc", "-O1", f"-I{source}", "-o", str(ticker), f"{source}/ticker.c", "-llttng-ust", "-ldl"]
    subprocess.run(argv, check=True)
    return ticker


def complaints(run: Path, status: int, said: str) -> list[str]:
    """What is wrong with a recording that nothing should have harmed."""
    found = [] if status == 0 else [f"status {status}: {said.strip()[-300:]}"]
    try:
        note = json.loads((run / "recording.json").read_text())
    except (OSError, ValueError) as error:
        return [*found, str(error)]
    if note["state"] != "complete":
        found.append(note["state"])
    events = next(c["event_count"] for c in note["channels"] if c["name"] == "app")
    if events != TICKS:
        found.append(f"{events} of {TICKS} events")
    if "was killed" in said:
        found.append(said)
    return found


def one_round(folder: Path, ticker: Path, options: Sequence[str]) -> list[str]:
    """Three recorders, and cleaning up beside them; what was harmed."""
    recorders = []
    for number, prefix in enumerate(((), PID_NAMESPACE, PID_NAMESPACE)):
        run = folder / f"run{number}"
        record = ("record", "-o", str(run), "--quiet", "--events", "opltest:*", "--sessiond", "private", *options)
        argv = [*prefix, *OPLINE, *record, "--", str(ticker), str(TICKS), str(PAUSE_US)]
        child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        recorders.append((run, child))
    harmed = []
    while any(child.poll() is None for _, child in recorders):
        for prefix in ((), PID_NAMESPACE):
            done = subprocess.run([*prefix, *OPLINE, "doctor", "--clean-up"], capture_output=True, text=True)
            if done.stdout.strip() != "no killed recording has left anything" and "opline" not in done.stderr:
                harmed.append(f"cleaned up: {done.stdout.strip()}")
    for run, child in recorders:
        _, said = child.communicate()
        harmed += [f"{run.name}: {line}" for line in complaints(run, child.returncode, said)]
    return harmed


def rounds(folder: Path, runtime: Path, count: int, options: Sequence[str]) -> list[str]:
    """So many rounds with this runtime directory, $OPLINE_RUNTIME_DIR; what was harmed or left. A line per harm."""
    ticker = compile_ticker(folder)
    harmed = []
    for number in range(count):
        place = folder / str(number)
        place.mkdir()
        harmed += [f"round {number}: {line}" for line in one_round(place, ticker, options)]
    return [*harmed, *(f"left: {path.name}" for path in runtime.iterdir())]


def main() -> int:
    """All rounds; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--block", action="store_true", help="with block events, through BPF (slower)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opl-") as name:
        runtime = Path(name) / "rt"
        runtime.mkdir(mode=0o700)
        os.environ["OPLINE_RUNTIME_DIR"] = str(runtime)
        harmed = rounds(Path(name), runtime, options.rounds, () if options.block else ("--no-block",))
    print("\n".join([*harmed, f"{options.rounds} rounds, 3 recordings each: {len(harmed)} harmed or left"]))
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
