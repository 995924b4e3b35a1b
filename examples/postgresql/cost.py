# SPDX-License-Identifier: MIT
"""What recording costs a PostgreSQL that runs: one pgbench, and recordings of its server that come and go.

    cost.py [--rounds N] [--seconds S] [--only KIND] --server PID --folder DIR -- PGBENCH [ARGUMENT ...]

pgbench runs from the first to the last (-T and -P are added) and says each second how many transactions there were.
Each recording is compared with the time before and after it: the checkpoints, the growth of the tables and whatever
else happens on the machine meet both sides. While a recording is prepared or ends, nothing is measured. Prints the mean
rate of both sides, their ratio, and the interval in which it is with 95 % confidence, by Student's t on the logarithms.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

from opline_analyses.compare.overhead import ratio

HERE = Path(__file__).resolve().parent
OPLINE = Path(sys.executable).with_name("opline")
SETS = {
    "transactions.toml, no block events": ("--model", str(HERE / "transactions.toml"), "--no-block"),
    "postgresql-server": ("--model", "postgresql-server"),
    "postgresql": ("--model", "postgresql"),
}
LINE = re.compile(r"progress: ([0-9.]+) s, ([0-9.]+) tps")
LONGEST_S = 24 * 3600


class Pgbench:
    """A pgbench that runs; its transactions of each whole second."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._seconds: list[tuple[float, float]] = []  # end on the wall clock, transactions
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := LINE.match(line):
                self._seconds.append((float(found[1]), float(found[2])))

    def rate(self, begin: float, end: float) -> float:
        """Transactions per second from ``begin`` to ``end``, in seconds of the wall clock; of whole seconds alone.
        Raises SystemExit if there was none.
        """
        while self.process.poll() is None and not (self._seconds and self._seconds[-1][0] >= end):
            time.sleep(0.1)
        found = [count for at, count in self._seconds if begin <= at - 1 and at <= end]
        if not found:
            raise SystemExit("cost.py: pgbench has said nothing of a whole second: does it run?")
        return mean(found)


@contextmanager
def running(command: list[str]) -> Iterator[Pgbench]:
    """pgbench, until the block ends."""
    argv = [*command, "-T", str(LONGEST_S), "-P", "1", "--progress-timestamp"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        found = Pgbench(process)
        try:
            yield found
        finally:
            process.terminate()
            found.reader.join()


def recorded(server: int, options: tuple[str, ...], seconds: float, place: Path) -> tuple[float, float]:
    """One recording: from when to when all of it was in place, on the wall clock."""
    watched = ["--pid", str(server), "--duration", str(seconds)]
    argv = [str(OPLINE), "record", "--quiet", "-o", str(place), *options, *watched]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"cost.py: a recording failed: {done.stderr}")
    manifest = json.loads((place / "recording.json").read_text())
    shutil.rmtree(place)
    offset_ns = manifest["clocks_before"]["realtime_minus_monotonic_ns"]
    begin_ns = manifest["begin"]["monotonic_ns"] + offset_ns
    end_ns = manifest["end"]["monotonic_ns"] - manifest["took_ns"]["stop"] + offset_ns
    return begin_ns / 1e9, end_ns / 1e9


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="recordings of each kind (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=6, help="length of each (default: %(default)s)")
    parser.add_argument("--only", choices=SETS, metavar="KIND", help=f"of these recordings: {', '.join(SETS)}")
    parser.add_argument("--server", type=int, required=True, help="the postmaster's process")
    parser.add_argument("--folder", type=Path, required=True, help="for the recordings, which are not kept")
    parser.add_argument("command", nargs="+", help="pgbench and its arguments")
    args = parser.parse_args()
    if args.rounds < 2:
        parser.error("an interval needs two rounds or more")
    sets = {name: options for name, options in SETS.items() if args.only in (None, name)}
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in sets}  # recorded, and around
    with running(args.command) as pgbench:
        time.sleep(args.seconds)
        before: float | None = None
        for _ in range(args.rounds):
            for name, options in sets.items():
                if before is None:
                    before = pgbench.rate(now := time.time(), now + args.seconds)
                rate = pgbench.rate(*recorded(args.server, options, args.seconds, args.folder / "cost"))
                time.sleep(1)
                after = pgbench.rate(now := time.time(), now + args.seconds)
                rates[name].append((rate, (before + after) / 2))
                before = after
    print(f"{'transactions per second':36} {'untraced':>8} {'recorded':>8}  ratio [with 95 % confidence]")
    for name, pairs in rates.items():
        with_it, without = zip(*pairs, strict=True)
        found = ratio(with_it, without)
        shown = f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
        print(f"{name:36} {mean(without):8.0f} {mean(with_it):8.0f}  {shown}")


if __name__ == "__main__":
    main()
