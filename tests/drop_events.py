# SPDX-License-Identifier: MIT
"""Drop events of recorded traces in silence, and compare the links with the whole trace's.

    python -m tests.drop_events [--rates 0.1,1,5] [--seed N] [--reader bt2] [--events GLOB] [--verbose] [TRACE ...]

Every class of events (those that nobody looks at aside) of every recorded trace (tests/traces) loses so many
percent of its events, one class at a time, before anything has looked at them; which events go depends on the seed
alone. Each such mutant is correlated anew. Counted are links that the whole trace does not have, by their confidence,
violations of the partition law and negative intervals (faults), and mutants in which more than 5 events are gone and
no loss tells of it.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from tests.lib.recorded import NAMES, model_of, unpack

from opline import _core, losses
from opline.readers.extents import read_extents
from opline.readers.front import choose
from opline.readers.trace import find_extents, find_traces
from opline.store.writer import RunWriter

TABLES = ("ops", "transitions", "stages", "requests", "bios", "links", "deferred", "losses", "fates", "discarded")
STEPS = ("queue_ns", "getrq_ns", "insert_ns", "first_issue_ns", "issue_ns", "complete_ns")
RATES = (0.1, 1.0, 5.0)
TOLD_FROM = 6  # so many events gone are to be told
PER_MILLION_OF_PERCENT = 10_000

BioKey = tuple[int, int | None]  # device, sector


@dataclass
class Linked:
    """What of a link can be compared; absent is what the trace does not have."""

    confidence: str
    evidence: str
    queue_ns: int | None  # of the bio
    chain_ns: frozenset[int]  # when it was queued, and those that it was remapped or split from
    getrq_ns: int | None  # of its request
    first_issue_ns: int | None
    issue_ns: int | None
    complete_ns: int | None

    def agrees(self, truth: Linked) -> bool:
        """No step is another bio's or request's. One that was seen more often (a requeue) is any of them."""
        if self.queue_ns is None and self.chain_ns and not self.chain_ns & truth.chain_ns:
            return False
        for mine, its in (
            (self.queue_ns, truth.queue_ns),
            (self.getrq_ns, truth.getrq_ns),
            (self.complete_ns, truth.complete_ns),
        ):
            if mine is not None and its is not None and mine != its:
                return False
        if self.issue_ns is None or truth.issue_ns is None or truth.first_issue_ns is None:
            return True
        return truth.first_issue_ns <= self.issue_ns <= truth.issue_ns


@dataclass
class Result:
    """What a trace, or a mutant of it, correlates to."""

    links: list[tuple[int, BioKey, Linked]]  # by op and bio
    op_at: NDArray[np.uint64]  # (time, thread) of each transition, hashed, in order
    op_of: NDArray[np.int64]  # its op
    of_bios: set[int]  # ops that a bio began, which no call or point owns
    seen: dict[str, int]
    read: set[str]  # names of events that are not ignored by rule
    dropped: int
    losses: dict[str, int]
    missing: list[tuple[str, int, int, int]]  # what others show: of what, from, to, how many
    faults: list[str] = field(default_factory=list)

    def same_ops(self, whole: Result) -> dict[int, set[int]]:
        """For each op those of the whole trace that have most of its transitions."""
        first = np.searchsorted(whole.op_at, self.op_at, "left")
        last = np.searchsorted(whole.op_at, self.op_at, "right")
        common: dict[int, Counter[int]] = defaultdict(Counter)
        for op, begin, end in zip(self.op_of.tolist(), first.tolist(), last.tolist(), strict=True):
            for theirs in set(whole.op_of[begin:end].tolist()):
                common[op][theirs] += 1
        return {op: {o for o, n in found.items() if n == max(found.values())} for op, found in common.items()}


def correlated(
    folder: Path, name: str, event: str = "", per_million: int = 0, seed: int = 1, reader: str = "native"
) -> Result:
    """The trace ``name`` in ``folder``, without so many of the events called ``event``."""
    front, _ = choose(find_traces(folder), reader)
    maps = [m.plan() for path in find_extents(folder) for m in read_extents(Path(path))]
    core = _core.Core(model_of(name).plan_json("pointer", maps))
    core.keep_tables((*TABLES, "sched"))  # with them threads' states are looked at
    dropper = _core.Dropper(core, event, per_million, seed)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as out:
        writer = RunWriter(Path(out))
        for _ in front.read(dropper):
            if core.take_ready():
                writer.write(core)
        writer.write(core)
        writer.commit({})
        rows = {table: pq.read_table(Path(out) / f"{table}.parquet") for table in TABLES}
    lost = losses.from_core(json.loads(core.summary()), front.losses()[0])
    transitions = rows["transitions"]
    own = transitions.filter(np.asarray(transitions["batch_id"].is_null())).select(("ts_ns", "tid", "op_id"))
    at = own["ts_ns"].to_numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    at += own["tid"].fill_null(-1).to_numpy().astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    order = np.argsort(at, kind="stable")
    read = {row["event"] for row in rows["fates"].to_pylist() if row["fate"] != "ignored"}
    return Result(
        list(links_of(rows)), at[order], own["op_id"].to_numpy()[order], of_bios(transitions), dropper.seen(), read,
        dropper.dropped(), {n: c for n, c in lost.items() if c}, list(missing_of(rows)), list(faults_of(rows)),
    )  # fmt: skip


def missing_of(rows: dict[str, Any]) -> Iterator[tuple[str, int, int, int]]:
    """Events that must have been there."""
    for row in rows["discarded"].to_pylist():
        if row["stream"].startswith("events missing"):
            yield row["stream"], row["begin_ns"], row["end_ns"], row["count"]


def of_bios(transitions: pa.Table) -> set[int]:
    """The ops of a model's `[bios]`: each is a bio and those that go on behind it, and says of nobody else that it was
    his. Where the call is lost that queued them, such an op is all that the trace can tell.
    """
    return set(transitions.filter(pc.equal(transitions["event"], "block_bio_queue"))["op_id"].to_pylist())


def links_of(rows: dict[str, Any]) -> Iterator[tuple[int, BioKey, Linked]]:
    """Every link by its op and its bio."""
    requests = {r["request_id"]: r for r in rows["requests"].select(("request_id", *STEPS)).to_pylist()}
    columns = ("bio_id", "request_id", "dev", "sector", "queue_ns", "split_from_id", "parent_id")
    bios = {b["bio_id"]: b for b in rows["bios"].select(columns).to_pylist()}
    for link in rows["links"].to_pylist():
        bio = bios[link["bio_id"]]
        chain = [bio]
        while parent := bios.get(chain[-1]["split_from_id"] or chain[-1]["parent_id"]):
            chain.append(parent)
        request = requests.get(link["request_id"], {})
        steps = (request.get(step) for step in ("getrq_ns", "first_issue_ns", "issue_ns", "complete_ns"))
        queued = frozenset(b["queue_ns"] for b in chain if b["queue_ns"] is not None)
        times = (bio["queue_ns"], queued, *steps)
        yield link["op_id"], (bio["dev"], bio["sector"]), Linked(link["confidence"], link["evidence"], *times)


def faults_of(rows: dict[str, Any]) -> Iterator[str]:
    """Violations of the partition law, and intervals below 0."""
    sums: Counter[int] = Counter()
    for op, duration_ns in zip(*(rows["stages"][c].to_pylist() for c in ("op_id", "duration_ns")), strict=True):
        sums[op] += duration_ns
        if duration_ns < 0:
            yield f"a stage of op {op} lasts {duration_ns} ns"
    columns = ("op_id", "begin_ns", "end_ns", "unattributed_ns", "complete")
    for op, begin_ns, end_ns, unattributed_ns, complete in zip(
        *(rows["ops"][c].to_pylist() for c in columns), strict=True
    ):
        if complete and sums[op] + unattributed_ns != end_ns - begin_ns:
            yield f"the stages of op {op} do not sum to its latency"
    for request in rows["requests"].select(("request_id", *STEPS, "q2c_ns", "d2c_ns")).to_pylist():
        steps = [request[step] for step in STEPS if request[step] is not None]
        if steps != sorted(steps) or min(request["q2c_ns"] or 0, request["d2c_ns"] or 0) < 0:
            yield f"steps of request {request['request_id']} go back in time"
    for late in rows["deferred"].select(("op_id", "written_ns", "queue_ns", "complete_ns")).to_pylist():
        steps = [late[step] for step in ("written_ns", "queue_ns", "complete_ns") if late[step] is not None]
        if steps != sorted(steps):
            yield f"deferred data of op {late['op_id']} goes back in time"


@dataclass
class Compared:
    """A mutant beside the whole trace."""

    dropped: int
    links: Counter[str]  # all, by confidence
    wrong: Counter[str]
    examples: list[str]
    faults: list[str]
    told: bool


def compare(whole: Result, mutant: Result) -> Compared:
    same = mutant.same_ops(whole)
    truth: dict[tuple[int, BioKey], list[Linked]] = defaultdict(list)
    for op, bio, link in whole.links:
        truth[op, bio].append(link)
    found: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    of_bio: dict[BioKey, list[Linked]] = defaultdict(list)
    for _op, bio, link in whole.links:
        of_bio[bio].append(link)
    examples = []
    for op, bio, link in mutant.links:
        found[link.confidence] += 1
        own = op in mutant.of_bios
        candidates = of_bio[bio] if own else [known for o in same.get(op, ()) for known in truth.get((o, bio), ())]
        if any(link.agrees(known) for known in candidates):
            continue
        wrong[link.confidence] += 1
        what = "another request" if candidates else "another op"
        examples.append(f"{link.confidence}: op {op} bio {bio} queued {link.queue_ns} by {link.evidence}: {what}")
    declared = losses.BY_NAME
    told = any(
        n > whole.losses.get(name, 0) for name, n in mutant.losses.items() if declared[name].severity.value != "info"
    )
    new_faults = [fault for fault in mutant.faults if fault not in whole.faults]
    return Compared(mutant.dropped, found, wrong, examples, new_faults, told)


@dataclass
class Sums:
    """Of many mutants."""

    mutants: int = 0
    dropped: int = 0
    links: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    faults: int = 0
    untold: list[str] = field(default_factory=list)

    def add(self, what: str, c: Compared) -> None:
        self.mutants += 1
        self.dropped += c.dropped
        self.links += c.links
        self.wrong += c.wrong
        self.faults += len(c.faults)
        if c.dropped >= TOLD_FROM and not c.told:
            self.untold.append(f"{what} ({c.dropped})")

    def line(self, name: str) -> str:
        cells = " ".join(f"{self.wrong[c]:>6}/{self.links[c]:<9}" for c in ("high", "medium", "low"))
        return f"{name:32} {self.mutants:>5} {self.dropped:>8} {cells} {self.faults:>6} {len(self.untold):>6}"


HEAD = (
    f"{'trace, percent':32} {'mut.':>5} {'dropped':>8} {'wrong high':16} {'medium':16} {'low':16} "
    f"{'faults':>6} {'untold':>6}"
)


def mutants(
    folder: Path, name: str, whole: Result, rates: Iterable[float], seed: int, reader: str, events: str = "*"
) -> Iterator[tuple[str, float, Compared]]:
    """Each class of the trace's events that anybody looks at, each rate of which at least one event goes."""
    for event, count in sorted(whole.seen.items()):
        if event not in whole.read or not fnmatch.fnmatch(event, events):
            continue
        for rate in rates:
            if count * rate < 50:  # half an event
                continue
            mutant = correlated(folder, name, event, round(rate * PER_MILLION_OF_PERCENT), seed, reader)
            if mutant.dropped:
                yield event, rate, compare(whole, mutant)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="names as in tests/traces; default: all")
    parser.add_argument("--rates", default=",".join(map(str, RATES)), help="percent, default %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", choices=("native", "bt2"), default="native")
    parser.add_argument("--events", default="*", metavar="GLOB", help="only events with such names")
    parser.add_argument("--verbose", action="store_true", help="a line per mutant with something wrong, and examples")
    options = parser.parse_args()
    rates = [float(rate) for rate in options.rates.split(",")]
    total = {rate: Sums() for rate in rates}
    print(HEAD)
    for name in options.traces or NAMES:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as target:
            folder = unpack(name, Path(target))
            whole = correlated(folder, name, reader=options.reader)
            if whole.faults:
                print(f"{name}: the whole trace has {len(whole.faults)} faults: {whole.faults[0]}")
            own = {rate: Sums() for rate in rates}
            for event, rate, c in mutants(folder, name, whole, rates, options.seed, options.reader, options.events):
                own[rate].add(event, c)
                total[rate].add(f"{name} {event} {rate} %", c)
                untold = c.dropped >= TOLD_FROM and not c.told
                if options.verbose and (c.wrong["high"] or c.wrong["medium"] or c.faults):
                    print(f"  {event} {rate:g} % ({c.dropped}): wrong {dict(c.wrong)}{', not told' if untold else ''}")
                    for text in [e for e in c.examples if not e.startswith("low")][:3] + c.faults[:2]:
                        print(f"    {text}")
            for rate, sums in own.items():
                print(sums.line(f"{name} {rate:g}"), flush=True)
    for rate, sums in total.items():
        print(sums.line(f"all {rate:g}"))
    for rate, sums in total.items():
        for what in sums.untold:
            print(f"not told at {rate:g} %: {what}")
    bad = any(s.wrong["high"] or s.faults or s.wrong["medium"] * 200 > s.links["medium"] for s in total.values())
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
