# SPDX-License-Identifier: MIT
"""What the readings of a host's clocks cost (`clocks.csv` of each recording), and pings between two hosts
(`opline record --hosts`, `opline ping`): CPU time, which depends less on other work of the machine than throughput.

    clock_cost.py [--rounds N]

Printed are the CPU time of a reading, of a burst of pings for the host that asks and for the one that answers, and the
share of one CPU at the rate of a recording. Medians of the rounds, with the interval that has the median with 95 % by
order statistics. Both ends are threads of this process, on the loopback.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tcp_cost import interval

from opline.capture.machine.pings import EVERY_NS as PINGS_EVERY_NS
from opline.capture.machine.pings import Answerer, Peer, Pinger
from opline.capture.recorder.clock_log import EVERY_NS, ClockLog
from opline.folder import TRACERS, Folder

if TYPE_CHECKING:
    from collections.abc import Callable

EACH = 50  # of a round


def spent_us(act: Callable[[], object], rounds: int) -> list[float]:
    """CPU time of this thread for one act, in each round."""
    found = []
    for _ in range(rounds):
        from_ns = time.thread_time_ns()
        for _ in range(EACH):
            act()
        found.append((time.thread_time_ns() - from_ns) / EACH / 1000)
    return found


def say(what: str, times_us: list[float], every_ns: int) -> None:
    low, high = interval(times_us)
    middle = statistics.median(times_us)
    share = middle * 1000 / every_ns * 100
    print(f"{what}: {middle:.1f} us ({low:.1f} to {high:.1f}) in {len(times_us)} rounds; {share:.3f} % of one CPU")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=41)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name, Folder(Path(name)) as folder:
        log = ClockLog(folder, TRACERS)

        def read() -> None:
            log._next_ns = 0  # it is time
            log.look()

        say("reading of the clocks", spent_us(read, rounds), EVERY_NS)
        log.close()
    answerer = Answerer("127.0.0.1")
    port, key = answerer.place()
    pinger = Pinger(Peer("127.0.0.1", port, bytes.fromhex(key)))
    answered_us: list[float] = []
    ended = threading.Event()

    def answer() -> None:
        before, from_ns = 0, time.thread_time_ns()
        while not ended.is_set():
            answerer.answer(0.1)
            if pinger.answered >= before + EACH:
                now_ns = time.thread_time_ns()
                answered_us.append((now_ns - from_ns) / (pinger.answered - before) / 1000)
                before, from_ns = pinger.answered, now_ns

    other = threading.Thread(target=answer)
    other.start()
    asked_us = spent_us(pinger.burst, rounds)
    ended.set()
    other.join()
    say("burst of pings, asked", asked_us, PINGS_EVERY_NS)
    say("burst of pings, answered", answered_us, PINGS_EVERY_NS)
    pinger.close()
    answerer.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
