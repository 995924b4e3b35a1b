# SPDX-License-Identifier: MIT
"""Properties of the core over generated event lists: the partition law, one fate per event, locality of a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lib.core_driver import Driver, Line, check_laws, plan_of

MODEL = """
linger_ns = 100
[keys]
op = { fields = "id", scope = "global" }
ref = { fields = "ref", scope = "process" }
[points]
submit = { event = "app:submit", role = "begin", key = "op", object = "oid" }
queued = { event = "app:queued", key = "op", bind = "ref" }
taken = { event = "app:taken", key = "ref", thread = "enter" }
step = "app:step"
open = { event = "app:open", batch = { open = "b" } }
join = { event = "app:join", key = "op", batch = { join = "b" } }
work = { event = "app:work", batch = { work = "b" } }
close = { event = "app:close", batch = { close = "b" } }
io_begin = { event = "app:io_begin", key = "op", io = { in_flight = "begin", offset = "off", length = "len" } }
leave = { event = "app:leave", thread = "leave" }
reply = { event = "app:reply", key = "op", role = "end", after = "step" }
"""
PLAN = plan_of(MODEL)
FIELDS: dict[str, tuple[str, ...]] = {
    "submit": ("id", "oid"), "queued": ("id", "ref"), "taken": ("ref",), "step": (), "open": (), "join": ("id",),
    "work": (), "close": (), "io_begin": ("id", "off", "len"), "leave": (), "reply": ("id",),
}  # fmt: skip
BLOCK = ("block_bio_queue", "block_getrq", "block_rq_insert", "block_rq_issue", "block_rq_complete", "block_rq_requeue",
         "block_bio_backmerge", "block_bio_frontmerge", "block_rq_merge", "block_split", "block_bio_remap")  # fmt: skip

small = st.integers(1, 4)


@st.composite
def app_event(draw: st.DrawFn) -> tuple[int, str, dict[str, Any], dict[str, Any]]:
    name = draw(st.sampled_from(sorted(FIELDS)))
    payload: dict[str, Any] = {f: draw(small) for f in FIELDS[name]}
    if "off" in payload:
        payload = {**payload, "off": payload["off"] * 4096, "len": 4096}
    return (
        draw(st.integers(0, 60)),
        f"app:{name}",
        {"tid": draw(small), "pid": draw(st.integers(1, 2)), "comm": "t"},
        payload,
    )


@st.composite
def block_event(draw: st.DrawFn) -> tuple[int, str, dict[str, Any], dict[str, Any]]:
    payload = {"dev": 8 << 20, "sector": draw(small) * 8, "nr_sector": draw(st.sampled_from([0, 8, 16])),
               "rwbs": draw(st.sampled_from([1, 4, 33, 1536 | 1, 256])), "tid": draw(small), "comm": "t",
               "bytes": 4096, "error": 0, "old_dev": 9 << 20, "old_sector": draw(small) * 8,
               "new_sector": draw(small) * 8}  # fmt: skip
    return draw(st.integers(0, 60)), draw(st.sampled_from(BLOCK)), {}, payload


events = st.lists(st.one_of(app_event(), app_event(), block_event()), max_size=60)


def lines_of(generated: list[tuple[int, str, dict[str, Any], dict[str, Any]]]) -> list[Line]:
    now, lines = 1000, []
    for step_ns, name, context, payload in generated:
        now += step_ns
        lines.append(Line(now, name, dict(context), dict(payload)))
    return lines


def correlate(lines: list[Line], drain_every: int = 0) -> Driver:
    driver = Driver(PLAN)
    for i, line in enumerate(lines):
        driver.push(line)
        if drain_every and i % drain_every == 0:
            driver.drain()
    driver.finish()
    return driver


@settings(max_examples=150)
@given(events)
def test_laws_hold_for_any_events(generated: list[Any]) -> None:
    lines = lines_of(generated)
    check_laws(correlate(lines), len(lines))


# Clocks that go back: a trace that was put together by hand, or a tracer's bug.
unordered = st.lists(st.tuples(st.integers(-40, 40), st.one_of(app_event(), app_event(), block_event())), max_size=60)


@settings(max_examples=150)
@given(unordered)
def test_laws_hold_though_times_go_back(generated: list[tuple[int, Any]]) -> None:
    lines = lines_of([(step_ns, *event[1:]) for step_ns, event in generated])
    check_laws(correlate(lines), len(lines))


@settings(max_examples=60)
@given(events, st.integers(1, 7))
def test_result_is_the_same_however_the_tables_are_drained(generated: list[Any], every: int) -> None:
    lines = lines_of(generated)
    assert correlate(lines).tables() == correlate(lines, every).tables()


@dataclass(frozen=True)
class Loner:
    """An op that shares nothing with any other: its own thread, ids, references."""

    number: int
    steps: int

    def lines(self, at: int) -> list[Line]:
        n = self.number
        context = {"tid": n, "pid": n, "comm": "t"}
        names = ["submit", "queued", "taken", *["step"] * self.steps, "leave", "reply"]
        payload = {"id": n, "oid": n, "ref": n}
        return [Line(at + 10 * i, f"app:{x}", context, {f: payload[f] for f in FIELDS[x]}) for i, x in enumerate(names)]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200)), min_size=2, max_size=6), st.data())
def test_a_lost_event_changes_no_op_that_shares_nothing_with_it(
    shape: list[tuple[int, int]], data: st.DataObject
) -> None:
    loners = [Loner(10 + i, steps) for i, (steps, _) in enumerate(shape)]
    lines = sorted(
        (x for lo, (_, at) in zip(loners, shape, strict=True) for x in lo.lines(1000 + at)), key=lambda x: x.ts_ns
    )
    lost = data.draw(st.integers(0, len(lines) - 1))
    owner = lines[lost].context["tid"]
    whole, cut = (ops_by_object(correlate(ls)) for ls in (lines, lines[:lost] + lines[lost + 1 :]))
    for name in whole:
        if name != str(owner):
            assert whole[name] == cut[name]


def ops_by_object(driver: Driver) -> dict[str, Any]:
    """Everything about an op but its ordinal, which other ops' begins shift."""
    tables = driver.tables()
    out: dict[str, Any] = {}
    for op in tables.get("ops", []):
        rows = [[{k: v for k, v in r.items() if k != "op_id"} for r in tables.get(t, []) if r["op_id"] == op["op_id"]]
                for t in ("transitions", "stages", "links")]  # fmt: skip
        out[op["object"]] = ({k: v for k, v in op.items() if k != "op_id"}, rows)
    return out
