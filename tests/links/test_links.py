# SPDX-License-Identifier: MIT
"""Links of recorded traces against the truth: which op's bytes a bio carries, computed here from the events themselves
(`opline events` as text, and filefrag's text), by other means than the linker's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TRACES
from tests.lib.recorded import NAMES, RunOf

from opline.losses import NO_REQUEST

# (time the bio was queued, its first sector) → op → bytes
Charges = dict[tuple[int, int], dict[int, int]]
KERNEL = [name for name in NAMES if name.split("-")[0] in ("app", "fie", "fio", "ptr", "discard")]
SYNCED = [name for name in KERNEL if "fsync" in name]
DIRECT = [name for name in KERNEL if re.search("app-(sync|libaio|uring|sqpoll)|fie-direct|ptr-(sync|libaio)", name)]


@dataclass
class Seen:
    """One event of the text."""

    ts_ns: int
    name: str
    tid: int
    fields: dict[str, str]

    def number(self, field: str) -> int:
        return int(self.fields[field], 0)


Events = Callable[[str], list[Seen]]


@pytest.fixture(scope="session")
def events(trace: Callable[[str], Path], opline: Callable[..., Any]) -> Events:
    """Give the application's events and the queued bios of a trace; op_id is the ordinal of the op's first event."""
    line = re.compile(r"(\d+) \S+ \S+ cpu \d+ (lab:\w+|block_bio_queue): { (.*?) }, { (.*) }$")
    known: dict[str, list[Seen]] = {}

    def get(name: str) -> list[Seen]:
        if name not in known:
            known[name] = []
            ordinals: dict[str, int] = {}
            for text in opline("events", trace(name)).stdout.splitlines():
                if not (found := line.match(text)):
                    continue
                context, fields = (dict(re.findall(r'(\w+) = ("[^"]*"|-?\w+)', part)) for part in found.groups()[2:])
                if "op_id" in fields:
                    fields["op_id"] = str(ordinals.setdefault(fields["op_id"], len(ordinals)))
                known[name].append(Seen(int(found[1]), found[2], int(context.get("vtid") or context["tid"]), fields))
        return known[name]

    return get


def file_sectors(name: str) -> Callable[[int], int | None]:
    """The file's sector at a sector of the disk, by filefrag's text."""
    text = (TRACES / f"{name}.filefrag").read_text()
    extents = [
        tuple(map(int, found)) for found in re.findall(r"^ +\d+: +(\d+)\.\. +\d+: +(\d+)\.\. +\d+: +(\d+):", text, re.M)
    ]

    def at(sector: int) -> int | None:
        return next(
            (first + sector - start for first, start, count in extents if start <= sector < start + count), None
        )

    return at


def bios_of(seen: list[Seen], dev: int, at: Callable[[int], int | None]) -> Iterator[tuple[Seen, list[int]]]:
    """Bios of the file's disk, and the file's sectors in them."""
    for e in seen:
        if e.name == "block_bio_queue" and e.number("dev") == dev:
            first = e.number("sector")
            mapped = [at(first + i) for i in range(e.number("nr_sector"))]
            if wanted := [sector for sector in mapped if sector is not None]:
                yield e, wanted


def charged(rows: list[dict[str, Any]], run: Any) -> Charges:
    """The run's own: bytes by bio and op."""
    place = {b["bio_id"]: (b["queue_ns"], b["sector"]) for b in run.rows("bios")}
    out: Charges = defaultdict(lambda: defaultdict(int))
    for row in rows:
        out[place[row["bio_id"]]][row["op_id"]] += row["bytes"] or 0
    return out


def shares(truth: Charges, found: Charges) -> tuple[int, int, int]:
    """(bytes of the truth, of them charged to the right op, bytes charged to a wrong one)."""
    right = sum(min(n, found[bio][op]) for bio, ops in truth.items() if bio in found for op, n in ops.items())
    return (
        sum(map(sum, (ops.values() for ops in truth.values()))),
        right,
        sum(map(sum, (ops.values() for ops in found.values()))) - right,
    )


def test_write_back_is_charged_to_the_last_writer_of_each_page(run_of: RunOf, events: Events) -> None:
    """None of these ops waits for its data: 2278 bios come a second after the replies, up to six ops in one."""
    run, seen = run_of("fie-buf-writeback"), events("fie-buf-writeback")
    written: list[tuple[int, int, int, int]] = []  # (end, op, first and last page)
    for e in seen:
        if e.name == "lab:io_end":
            first, last = e.number("off") // 4096, (e.number("off") + e.number("len") - 1) // 4096
            written.append((e.ts_ns, e.number("op_id"), first, last))
    by_page: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for end_ns, op, first, last in written:
        for page in range(first, last + 1):
            by_page[page].append((end_ns, op))
    truth: Charges = defaultdict(lambda: defaultdict(int))
    for bio, sectors in bios_of(seen, 8 << 20, file_sectors("fie-buf-writeback")):
        for sector in sectors:
            before = [w for w in by_page.get(sector // 8, ()) if w[0] < bio.ts_ns]
            if before:
                truth[bio.ts_ns, bio.number("sector")][max(before)[1]] += 512
    total, right, wrong = shares(truth, charged(run.rows("deferred"), run))
    assert total == 11_198_464
    assert right == total
    assert wrong == 0
    assert not run.rows("links")
    assert all(d["queue_ns"] > d["written_ns"] and d["complete_ns"] > d["queue_ns"] for d in run.rows("deferred"))
    ended = {op["op_id"]: op["end_ns"] for op in run.rows("ops")}
    assert all(d["queue_ns"] > ended[d["op_id"]] for d in run.rows("deferred"))
    # up to six ops share a bio, and the request names an op only where it is one
    assert max(r["op_count"] for r in run.rows("requests")) >= 4
    assert all((r["op_id"] is not None) == (r["op_count"] == 1) for r in run.rows("requests"))


def test_direct_writes_to_a_file_are_found_through_its_extents(run_of: RunOf, events: Events) -> None:
    run, seen = run_of("fie-direct"), events("fie-direct")
    flying: dict[int, tuple[int, int]] = {}
    truth: Charges = defaultdict(lambda: defaultdict(int))
    bios = {id(e): sectors for e, sectors in bios_of(seen, 8 << 20, file_sectors("fie-direct"))}
    for e in seen:
        if e.name == "lab:io_begin":
            flying[e.number("op_id")] = (e.number("off"), e.number("off") + e.number("len"))
        elif e.name == "lab:io_end":
            del flying[e.number("op_id")]
        for sector in bios.get(id(e), ()):
            (op,) = [op for op, (first, last) in flying.items() if first <= sector * 512 < last]
            truth[e.ts_ns, e.number("sector")][op] += 512
    total, right, wrong = shares(truth, charged(run.rows("links"), run))
    assert (total, right, wrong) == (1500 * 4096, 1500 * 4096, 0)
    assert {(row["evidence"], row["confidence"]) for row in run.rows("links")} == {("thread+extent", "high")}
    assert all(b["op_by_thread"] == b["op_by_extent"] for b in run.rows("bios") if b["op_by_extent"] is not None)


@pytest.mark.parametrize("name", SYNCED)
def test_no_op_is_charged_alone_for_what_was_shared(name: str, run_of: RunOf, events: Events) -> None:
    """What a thread writes in its fdatasync while several writes are not covered yet, and what the journal writes
    while somebody waits.
    """
    run, seen = run_of(name), events(name)
    requests = {r["request_id"]: r for r in run.rows("requests")}
    links: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for link in run.rows("links"):
        links[link["bio_id"]].append(link)
    bios = {(b["queue_ns"], b["tid"], b["sector"]): b for b in run.rows("bios") if b["queue_ns"] is not None}
    ends = {e.number("op_id"): e.ts_ns for e in seen if e.name == "lab:sync_end"}
    uncovered: list[int] = []
    syncs: dict[int, tuple[int, list[int]]] = {}  # thread → (op, ops covered when it began)
    shared = journal = 0
    for e in seen:
        if e.name == "lab:io_end":
            uncovered.append(e.number("op_id"))
        elif e.name == "lab:sync_begin":
            syncs[e.tid] = (e.number("op_id"), list(uncovered))
        elif e.name == "lab:sync_end":
            _, covered = syncs.pop(e.tid)
            uncovered = [op for op in uncovered if op not in covered]
        elif e.name == "block_bio_queue":
            sector = e.number("sector")
            bio = bios[e.ts_ns, e.tid, sector if sector < 2**63 else None]
            rows = links[bio["bio_id"]]
            if e.tid in syncs and len(set(syncs[e.tid][1])) > 1:
                shared += 1
                assert rows
                assert all(row["shared"] for row in rows)
                assert requests[bio["request_id"]]["op_id"] is None
            elif e.fields["comm"].startswith('"jbd2/') and syncs:
                journal += 1
                waiting = {op for op, _ in syncs.values()}
                request = requests[bio["request_id"]]
                if "F" not in request["rwbs"]:  # those complete a second time
                    in_time = {op for op in waiting if request["complete_ns"] <= ends[op]}
                    assert in_time <= {row["op_id"] for row in rows}
                assert len(rows) < 2 or all(row["shared"] for row in rows)
                assert len(rows) < 2 or request["op_id"] is None
    assert shared > 500
    assert journal > 4000
    # each member its own waiting: nothing of it lies outside its own sync
    begin, end = (
        {t["op_id"]: t["ts_ns"] for t in run.rows("transitions") if t["point"] == point}
        for point in ("sync_begin", "sync_end")
    )
    block = [s for s in run.rows("stages") if s["request_id"] is not None]
    assert len({s["op_id"] for s in block}) == 1000
    assert all(begin[s["op_id"]] <= s["begin_ns"] for s in block)
    assert all(s["begin_ns"] + s["duration_ns"] <= end[s["op_id"]] for s in block)


@pytest.mark.parametrize("name", KERNEL)
def test_every_op_is_linked_or_says_why(name: str, run_of: RunOf) -> None:
    run = run_of(name)
    linked = {row["op_id"] for row in run.rows("links") if row["request_id"] is not None}
    later = {row["op_id"] for row in run.rows("deferred")}
    for op in run.rows("ops"):
        assert (op["no_request"] is None) == (op["request_count"] > 0)
        assert op["no_request"] is None or op["no_request"] in NO_REQUEST
        assert op["no_request"] is not None or op["op_id"] in linked
        assert op["op_id"] not in later or op["no_request"] in (None, "written_back_later")
    if name in DIRECT:
        assert all(op["no_request"] is None for op in run.rows("ops"))


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("app-buf-writeback-ext4", {"no_extent_map": 3000}),
        ("fie-buf-writeback", {"written_back_later": 2741, "overwritten": 259}),
        ("discard-tiny-buffers", {"lost_events": 2968}),
    ],
)
def test_reasons(name: str, reasons: dict[str, int], run_of: RunOf) -> None:
    found: dict[str, int] = defaultdict(int)
    for op in run_of(name).rows("ops"):
        if op["no_request"]:
            found[op["no_request"]] += 1
    assert found == reasons


def test_lost_events_make_no_wrong_link(run_of: RunOf) -> None:
    """38 111 events were discarded: they are reported per CPU and interval, and no op has another's sector."""
    run = run_of("discard-tiny-buffers")
    intervals = run.rows("discarded")
    assert sum(i["count"] for i in intervals) == 38_111
    assert all(i["begin_ns"] < i["end_ns"] for i in intervals)
    assert {i["stream"] for i in intervals} == {"kch_0", "kch_1"}
    ops = {op["op_id"]: op for op in run.rows("ops")}
    bios = {b["bio_id"]: b for b in run.rows("bios")}
    links = run.rows("links")
    assert links
    for link in links:
        op, bio = ops[link["op_id"]], bios[link["bio_id"]]
        assert op["tainted"] or op["unsplit"]
        assert op["offset_bytes"] <= bio["sector"] * 512 < op["offset_bytes"] + op["length_bytes"]
        assert link["confidence"] == "low"
