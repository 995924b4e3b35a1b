#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the sources of PyLatencyMap's examples print, of latencies that are made up: 12 intervals of 3 s, in which every
fourth has slow I/Os.

    samples.py records | awr | dtrace | systemtap | netapp | bcc | 10046 | perf
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator

INTERVALS, SECONDS, EACH = 12, 3, 200
START_S = 1_700_000_000


def latencies() -> Iterator[list[int]]:
    """Microseconds, a list for each interval."""
    chance = random.Random(22)
    for interval in range(INTERVALS):
        slow = 6 if interval % 4 == 3 else 1
        yield [int(chance.lognormvariate(6, 0.7) * (slow if chance.random() < 0.3 else 1)) + 1 for _ in range(EACH)]


def exponents(values: list[int]) -> Counter[int]:
    """How many are in each power of two."""
    return Counter(value.bit_length() - 1 for value in values)


def record(at: int, text: str, body: str, unit: str = "microsec", source: str = "oracle") -> str:
    head = f"<begin record>\ntimestamp,microsec,{at * 10**6},{text}\nlabel,sample\n"
    return f"{head}latencyunit,{unit}\ndatasource,{source}\n{body}<end record>\n"


def records(unit_us: int = 1, unit: str = "microsec") -> Iterator[str]:
    """Counts that grow; a bucket ends where it is named, as in v$event_histogram."""
    sums: Counter[int] = Counter()
    yield record(START_S, "begin", f"{1 << 4},0\n", unit)
    for n, values in enumerate(latencies(), 1):
        sums.update(max(value // unit_us, 1).bit_length() for value in values)
        yield record(START_S + SECONDS * n, "later", "".join(f"{1 << k},{c}\n" for k, c in sorted(sums.items())), unit)


def awr() -> Iterator[str]:
    """Milliseconds."""
    yield from records(1000, "millisec")


def dtrace() -> Iterator[str]:
    for values in latencies():
        yield "           value  ------------- Distribution ------------- count\n"
        for k, count in sorted(exponents([1000 * value for value in values]).items()):
            yield f"{1 << k:>16} |@@{count:>50}\n"
        yield "\n"


def systemtap() -> Iterator[str]:
    for values in latencies():
        yield f"Block I/O latency histogram, measurement time: {SECONDS} seconds, I/O count: {len(values)}\n"
        yield f"Value = latency bucket (microseconds), count=I/O operations in {SECONDS} seconds\n"
        yield f" value |{'-' * 50} count\n"
        for k, count in sorted(exponents(values).items()):
            yield f"{1 << k:>6} |{'@' * (count // 10):<50} {count:>5}\n"
        yield "\n"


def netapp() -> Iterator[str]:
    edges = [100, 200, 400, 600, 800, 1000, 2000, 4000, 10_000, 20_000]
    sums = [0] * (len(edges) + 1)
    for values in latencies():
        for value in values:
            sums[next((n for n, edge in enumerate(edges) if value < edge), len(edges))] += 1
        yield "beautifier: vol1 read_latency\n"
        for edge, count in zip(edges, sums, strict=False):
            yield f"volume:vol1:read_latency.<{edge}us:{count}\n"
        yield f"volume:vol1:read_latency.>20ms:{sums[-1]}\n"


def bcc() -> Iterator[str]:
    for n, values in enumerate(latencies()):
        yield f"00:00:{SECONDS * n:02}\n     usecs               : count     distribution\n"
        for k, count in sorted(exponents(values).items()):
            yield f"{(1 << k) if k else 0:>10} -> {(2 << k) - 1:<10} : {count:<8} |{'*' * (count // 10):<40}|\n"
        yield "\n"


def oracle_trace() -> Iterator[str]:
    yield "PARSING IN CURSOR #1\n"
    for n, values in enumerate(latencies()):
        for at, value in enumerate(values):
            tim = START_S * 10**6 + SECONDS * 10**6 * n + at * 10_000
            yield f"WAIT #1: nam='db file sequential read' ela= {value} file#=7 block#=1 blocks=1 obj#=2 tim={tim}\n"


def perf() -> Iterator[str]:
    for n, values in enumerate(latencies()):
        for at, value in enumerate(values):
            begin = SECONDS * 10**6 * n + at * 14_000 + 10**6
            for event, time, last in (("issue", begin, "[fio]"), ("complete", begin + value, "[0]")):
                stamp = f"{time // 10**6}.{time % 10**6:06}"
                size = "8192 () " if event == "issue" else "() "
                yield f" fio 42 [000] {stamp}: block:block_rq_{event}: 8,0 R {size}{16 * at} + 16 {last}\n"


SOURCES: dict[str, Callable[[], Iterator[str]]] = {
    "records": records, "awr": awr, "dtrace": dtrace, "systemtap": systemtap, "netapp": netapp, "bcc": bcc,
    "10046": oracle_trace, "perf": perf,
}  # fmt: skip

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SOURCES:
        sys.exit(f"usage: samples.py {' | '.join(SOURCES)}")
    sys.stdout.writelines(SOURCES[sys.argv[1]]())
