# SPDX-License-Identifier: MIT
"""Many writes to few sectors at once: 256 hot places at queue depth 64, nobody's thread to help. What two could claim
is marked ambiguous; what is not marked is right. No trace has it, so it is made here, with the truth beside it.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

import pytest
from tests.lib.core_driver import Driver, check_laws, parse_line, plan_of

MODEL = """
[keys]
op = "id"
[points]
io_begin = { event = "app:io_begin", role = "begin", key = "op", class = "write", \
io = { in_flight = "begin", offset = "off", length = "len" } }
io_end = { event = "app:io_end", role = "end", key = "op", io = { in_flight = "end" } }
"""
OPS, PLACES, DEPTH, AT_DEVICE = 3000, 256, 64, 8
DEV = 259 << 20


@dataclass
class Truth:
    """What was made: events by time, and of each op when its bio was queued and its request completed."""

    lines: list[str] = field(default_factory=list)
    queue_ns: dict[int, int] = field(default_factory=dict)
    complete_ns: dict[int, int] = field(default_factory=dict)


def hot_region(seed: int) -> Truth:
    """An application keeps DEPTH writes in flight; a kernel thread queues them in order, AT_DEVICE at most are at the
    device, which completes them in any order.
    """
    rng = random.Random(seed)
    truth = Truth()
    now, begun, done = 1000, 0, 0
    waiting: list[tuple[int, int]] = []  # (op, sector), not queued yet
    queued: list[tuple[int, int]] = []  # allocated, not issued
    device: list[tuple[int, int, int]] = []  # (completes at, op, sector)

    def say(text: str) -> None:
        nonlocal now
        now += rng.randint(1, 3)
        truth.lines.append(f"{now} {text}")

    def block(name: str, sector: int, more: str = "tid=9 comm=iou-sqp-1") -> None:
        say(f"block_{name} {more} dev={DEV} sector={sector} nr_sector=8 rwbs=33")

    while done < OPS:
        while device and device[0][0] <= now:
            _, op, sector = heapq.heappop(device)
            block("rq_complete", sector, "error=0")
            truth.complete_ns[op] = now
            say(f"app:io_end tid=2 pid=1 id={op}")
            done += 1
        if begun < OPS and begun - done < DEPTH and len(waiting) < 4 and rng.random() < 0.6:
            sector = 8 * rng.randrange(PLACES)
            say(f"app:io_begin tid=1 pid=1 id={begun} off={sector * 512} len=4096")
            waiting.append((begun, sector))
            begun += 1
        if waiting and rng.random() < 0.7:
            op, sector = waiting.pop(0)
            block("bio_queue", sector)
            truth.queue_ns[op] = now
            block("getrq", sector)
            queued.append((op, sector))
        if queued and len(device) < AT_DEVICE:
            op, sector = queued.pop(0)
            block("rq_issue", sector, "tid=9 comm=iou-sqp-1 bytes=4096")
            heapq.heappush(device, (now + rng.randint(10, 120), op, sector))
        now += 1
    return truth


@pytest.mark.parametrize("seed", range(3))
def test_a_link_that_two_could_claim_is_marked(seed: int) -> None:
    truth = hot_region(seed)
    driver = Driver(plan_of(MODEL))
    for line in truth.lines:
        driver.push(parse_line(line))
    driver.finish()
    check_laws(driver, len(truth.lines))
    tables = driver.tables()
    ids = {op["op_id"]: int(op["key"].removeprefix("op=")) for op in tables["ops"]}
    bios = {bio["bio_id"]: bio for bio in tables["bios"]}
    requests = {request["request_id"]: request for request in tables["requests"]}
    links = tables["links"]
    assert len(links) == OPS
    ambiguous = [link for link in links if link["ambiguous"]]
    wrong = [
        link
        for link in links
        if bios[link["bio_id"]]["queue_ns"] != truth.queue_ns[ids[link["op_id"]]]
        or requests[link["request_id"]]["complete_ns"] != truth.complete_ns[ids[link["op_id"]]]
    ]
    assert all(link["ambiguous"] and link["confidence"] == "low" for link in wrong)
    assert 0 < len(ambiguous) <= 0.05 * OPS  # else the region is not hot, or too much is given up
    assert wrong  # there is something to be guessed at
    assert all(op["no_request"] is None for op in tables["ops"])
