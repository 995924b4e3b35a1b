# SPDX-License-Identifier: MIT
"""Threads that write the same few places at once, and some steps of their requests are not in the trace: what was
mistaken for another one's is never said to be sure. Where the trace has who was woken, nothing is mistaken.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from typing import Any

import pytest
from tests.lib.core_driver import Driver, check_laws, parse_line, plan_of

MODEL = """
[keys]
op = "id"
[points]
io_begin = { event = "app:io_begin", role = "begin", key = "op", class = "write", thread = "enter", \
io = { in_flight = "begin", offset = "off", length = "len" } }
io_end = { event = "app:io_end", role = "end", key = "op", thread = "leave", io = { in_flight = "end" } }
"""
DEV, THREADS, PLACES, EACH = 259 << 20, 8, 4, 150
STEPS = {"queue_ns": "bio_queue", "getrq_ns": "getrq", "issue_ns": "rq_issue", "complete_ns": "rq_complete"}

Truth = dict[int, dict[str, int]]  # op → step → time
Line = tuple[str, str]  # step, line


def trace(order: str, seed: int = 1, *, wakes: bool = False) -> tuple[list[Line], Truth]:
    """The lines of a trace, and when each step of an op's request was. The device completes in ``order``. ``wakes``: a
    completion wakes the op's thread on its CPU.
    """
    chance, lines, truth = random.Random(seed), list[Line](), Truth()
    now, at = 1000, dict.fromkeys(range(THREADS), (0, "idle"))
    device: list[tuple[int, int, int]] = []
    left = THREADS * EACH

    def say(step: str, op: int, text: str) -> None:
        nonlocal now
        now += chance.randint(1, 80_000)
        truth[op][step] = now
        lines.append((step, f"{now} {text}"))

    def block(step: str, op: int, tid: int) -> int:
        cpu, sector = chance.randrange(2), truth[op]["sector"]
        end = "error=0" if step == "rq_complete" else ""
        place = f"dev={DEV} sector={sector} nr_sector=8 rwbs=33"
        say(step, op, f"block_{step} tid={tid} comm=w{tid} cpu={cpu} {place} {end}".strip())
        return cpu

    while left or device or any(step != "idle" for _, step in at.values()):
        thread = chance.randrange(THREADS)
        op, step = at[thread]
        if step == "idle" and left:
            left -= 1
            op = THREADS * EACH - left
            truth[op] = {"sector": 8 * chance.randrange(PLACES)}
            say("begin", op, f"app:io_begin tid={10 + thread} pid=1 id={op} off={truth[op]['sector'] * 512} len=4096")
            at[thread] = op, "bio_queue"
        elif step in ("bio_queue", "getrq", "rq_issue"):
            block(step, op, 10 + thread)
            at[thread] = op, {"bio_queue": "getrq", "getrq": "rq_issue", "rq_issue": "wait"}[step]
            if step == "rq_issue":
                when = {"any": now + chance.randint(20_000, 6_000_000), "first in": now, "last in": -now}[order]
                heapq.heappush(device, (when, op, thread))
        elif step == "done" and chance.random() < 0.3:
            say("end", op, f"app:io_end tid={10 + thread} pid=1 id={op}")
            at[thread] = 0, "idle"
        if device and (device[0][0] <= now if order == "any" else chance.random() < 0.3):
            _, op, thread = heapq.heappop(device)
            cpu = block("rq_complete", op, 0)
            if wakes:
                say("waking", op, f"sched_waking tid={10 + thread} by=0 cpu={cpu}")
            at[thread] = op, "done"
        now += chance.randint(0, 20_000)
    return lines, truth


def wrong(lines: list[Line], truth: Truth, lost: str, share: float) -> Counter[tuple[str, bool]]:
    """How many links of each confidence have a step of another op's request, and how many have none."""
    chance, driver = random.Random(2), Driver(plan_of(MODEL))
    kept = [text for step, text in lines if step != lost or chance.random() >= share]
    for text in kept:
        driver.push(parse_line(text))
    driver.finish()
    check_laws(driver, len(kept))
    tables: dict[str, list[dict[str, Any]]] = driver.tables()
    ops = {op["op_id"]: int(op["key"].removeprefix("op=")) for op in tables["ops"]}
    requests = {r["request_id"]: r for r in tables["requests"]}
    found: Counter[tuple[str, bool]] = Counter()
    for link in tables["links"]:
        mine, request = truth[ops[link["op_id"]]], requests.get(link["request_id"], {})
        others = any(request.get(column) not in (None, mine[step]) for column, step in STEPS.items())
        found[link["confidence"], others] += 1
    return found


ORDERS = ("first in", "last in", "any")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("lost", ["", "bio_queue", "getrq", "rq_issue", "rq_complete"])
def test_what_was_mistaken_is_not_sure(order: str, lost: str) -> None:
    found = wrong(*trace(order), lost, 0.05)
    assert found["high", True] == 0 and found["high", False] > 20, found


@pytest.mark.parametrize("order", ORDERS)
def test_who_is_woken_says_whose_the_completion_is(order: str) -> None:
    found = wrong(*trace(order, wakes=True), "", 0)
    assert not any(n for (_, others), n in found.items() if others), found
    assert found["low", False] <= 0.05 * THREADS * EACH, found
