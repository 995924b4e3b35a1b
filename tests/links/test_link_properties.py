# SPDX-License-Identifier: MIT
"""Properties of links over generated events on a mapped file: writes, syncs, write-back, a journal, lost events."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lib.core_driver import Driver, Line, check_laws, map_of, plan_of

from opline.losses import NO_REQUEST

MODEL = """
linger_ns = 50
[keys]
op = "id"
[points]
submit = { event = "app:submit", role = "begin", key = "op", class = "{kind}", io = { offset = "off", length = "len" } }
io_begin = { event = "app:io_begin", key = "op", thread = "switch", io = { in_flight = "begin" } }
io_end = { event = "app:io_end", key = "op", io = { in_flight = "end" } }
sync_begin = { event = "app:sync_begin", key = "op", io = { sync = "begin" } }
sync_end = { event = "app:sync_end", key = "op", io = { sync = "end" } }
reply = { event = "app:reply", key = "op", role = "end", thread = "leave" }
"""
FILE = map_of("map /mnt/a 0:16:16 16:64:16")
PLAN, PLAIN = plan_of(MODEL, files=[FILE]), plan_of(MODEL)
APP = ("submit", "submit", "io_begin", "io_end", "sync_begin", "sync_end", "reply")
BLOCK = ("bio_queue", "bio_queue", "getrq", "rq_issue", "rq_complete", "bio_backmerge", "split", "bio_remap")
PAGE = 4096

Step = tuple[int, str, dict[str, Any], dict[str, Any]]


@st.composite
def app_event(draw: st.DrawFn) -> Step:
    name = draw(st.sampled_from(APP))
    payload: dict[str, Any] = {"id": draw(st.integers(1, 4))}
    if name == "submit":
        pages = draw(st.integers(1, 2))
        payload |= {
            "off": draw(st.integers(0, 4)) * PAGE,
            "len": pages * PAGE,
            "kind": draw(st.sampled_from(["write", "read"])),
        }
    return draw(st.integers(0, 9)), f"app:{name}", {"tid": draw(st.integers(1, 3)), "pid": 1}, payload


@st.composite
def block_event(draw: st.DrawFn) -> Step:
    name = draw(st.sampled_from(BLOCK))
    sector = draw(st.sampled_from([0, 16, 24, 32, 64, 72]))
    payload = {
        "dev": draw(st.sampled_from([8 << 20, 8 << 20, 254 << 20])), "sector": sector,
        "nr_sector": draw(st.sampled_from([0, 8, 8, 16])), "rwbs": draw(st.sampled_from([1, 4, 33, 97, 1536 | 97])),
        "tid": draw(st.integers(1, 4)), "comm": draw(st.sampled_from(["w", "jbd2/sda-8", "kworker/u4:0"])),
        "bytes": PAGE, "error": 0, "old_dev": 8 << 20 | 1, "old_sector": sector, "new_sector": sector + 8,
    }  # fmt: skip
    return draw(st.integers(0, 9)), f"block_{name}", {}, payload


lost: st.SearchStrategy[Step] = st.tuples(st.integers(0, 9), st.just("lost"), st.just({}), st.just({}))
steps = st.lists(st.one_of(app_event(), app_event(), block_event(), block_event(), lost), max_size=60)


def correlated(generated: list[Step], plan: str) -> Driver:
    driver, now = Driver(plan), 1000
    pushed = 0
    for wait_ns, name, context, payload in generated:
        now += wait_ns
        if name == "lost":
            driver.core.discarded(driver.stream("host", True), now - 5, now, 1, False)
            continue
        driver.push(Line(now, name, dict(context), dict(payload)))
        pushed += 1
    driver.finish()
    check_laws(driver, pushed)
    return driver


@settings(max_examples=75)
@given(steps)
def test_links(generated: list[Step]) -> None:
    driver = correlated(generated, PLAN)
    tables = driver.tables()
    ops = {op["op_id"]: op for op in tables.get("ops", [])}
    bios = {bio["bio_id"]: bio for bio in tables.get("bios", [])}
    later = tables.get("deferred", [])
    for row in later:
        op, bio = ops[row["op_id"]], bios[row["bio_id"]]
        assert op["class"] == "write"
        assert 0 < row["bytes"] <= op["length_bytes"]
        assert bio["kind"] == "write"
        assert row["queue_ns"] is None or row["written_ns"] <= row["queue_ns"]
        assert row["file"] == "/mnt/a"
    for bio_id, bio in bios.items():
        known = [r["bytes"] for r in (*later, *tables.get("links", [])) if r["bio_id"] == bio_id and r["bytes"]]
        if bio["parent_id"] is None:
            assert sum(known) <= bio["nr_sectors"] * 512
    for link in tables.get("links", []):
        assert not (link["ambiguous"] and link["confidence"] != "low")
    for op in ops.values():
        assert (op["no_request"] is None) == (op["request_count"] > 0)
        assert op["no_request"] is None or op["no_request"] in NO_REQUEST
    for request in tables.get("requests", []):
        assert (request["op_id"] is not None) <= (request["op_count"] == 1)
    for batch in tables.get("batches", []):
        assert batch["member_count"] >= 1


@settings(max_examples=50)
@given(steps)
def test_without_a_map_nothing_is_deferred(generated: list[Step]) -> None:
    tables = correlated(generated, PLAIN).tables()
    assert not tables.get("deferred")
    assert all(bio["op_by_extent"] is None for bio in tables.get("bios", []))
