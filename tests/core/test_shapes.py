# SPDX-License-Identifier: MIT
"""Ops that pass the same points in the same order are attributed once (docs/internals/stitching.md, "Shapes"). What
that gives is the same as attributing each by itself, which is the definition.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.test_properties import PLAN, events, lines_of
from tests.lib.core_driver import Driver, Line, plan_of
from tests.lib.recorded import NAMES, RunOf, model_of
from tests.readers.test_readers import plain

from opline import _core
from opline.readers.extents import read_extents
from opline.readers.native import NativeReader
from opline.readers.trace import find_extents, find_traces
from opline.store.schema import TABLES
from opline.store.writer import RunWriter


@pytest.mark.parametrize("name", NAMES)
def test_recorded_traces(name: str, trace: Callable[[str], Path], run_of: RunOf, tmp_path: Path) -> None:
    maps = [m.plan() for path in find_extents(trace(name)) for m in read_extents(Path(path))]
    plan = model_of(name).plan_json("pointer", maps)
    core = _core.Core(plan)
    core.attribute_each()
    core.keep_statistics(True, (), ())
    writer = RunWriter(tmp_path)
    for _ in NativeReader(find_traces(trace(name))).read(core):
        pass
    writer.write(core)
    writer.commit({})
    for spec in TABLES:
        if spec.name != "losses":  # not the core's
            file = f"{spec.name}.parquet"
            assert plain(tmp_path / file).equals(plain(run_of(name).path / file)), spec.name

    shaped = _core.Core(plan)
    shaped.keep_tables(())
    shaped.keep_statistics(True, (), ())
    for _ in NativeReader(find_traces(trace(name))).read(shaped):
        pass
    assert shaped.statistics() == core.statistics()
    found, general = json.loads(shaped.summary()), json.loads(core.summary())
    assert general["ops"].pop("by_shape") == 0
    assert found["ops"].pop("by_shape") == run_of(name).core["ops"]["by_shape"]
    for summary in (found, general):
        del summary["losses"]["states_missing"]  # without the stages' table nobody looks at threads' states
    assert found == general


@pytest.mark.parametrize("name", ["demo-qd4", "demo-kernel", "fio-psync-qd1-nvme", "ctf-mem-qd1"])
def test_models_that_are_shipped_have_ops_alike(name: str, run_of: RunOf) -> None:
    """Most of their ops are attributed as others of their shape were: those of many points and one request too, and
    those with waits that are cut by what threads did meanwhile (Ceph on memstore).
    """
    ops = run_of(name).core["ops"]
    assert ops["by_shape"] > 0.8 * ops["complete"]


TEMPLATES = (
    ("submit", "queued", "taken", "step", "step", "leave", "reply"),
    ("submit", "queued", "taken", "leave", "reply"),
    ("submit", "reply"),
    ("submit", "queued", "reply", "taken", "step", "leave"),  # late points
    ("submit", "queued", "open", "join", "work", "close", "reply"),
    ("submit", "step", "step", "reply", "reply"),
    ("submit", "queued", "queued", "queued", "io_begin"),  # without an end
    ("submit", *["queued"] * 5, "reply"),
)


@st.composite
def alike(draw: st.DrawFn) -> list[Line]:
    """Many ops of few templates, on threads of their own or shared, interleaved."""
    lines = []
    for op in range(draw(st.integers(2, 12))):
        at = 1000 + draw(st.integers(0, 300))
        threads = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
        for i, name in enumerate(draw(st.sampled_from(TEMPLATES))):
            at += draw(st.sampled_from([0, 1, 7, 40]))
            payload: dict[str, Any] = {"id": op, "ref": op, "oid": op, "off": 4096, "len": 4096}
            context = {
                "tid": threads[i % len(threads)],
                "pid": draw(st.sampled_from([1, 1, 1, 2])),
                "comm": "t",
                "cpu": i,
            }
            wanted = {"submit": ("id", "oid"), "queued": ("id", "ref"), "taken": ("ref",), "join": ("id",),
                      "io_begin": ("id", "off", "len"), "reply": ("id",)}.get(name, ())  # fmt: skip
            lines.append(Line(at, f"app:{name}", context, {f: payload[f] for f in wanted}))
    lines.sort(key=lambda line: line.ts_ns)
    for _ in range(draw(st.integers(0, 2))):  # events that come too late
        i = draw(st.integers(0, len(lines) - 1))
        lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(i))
    return lines


def both(lines: list[Line], plan: str = PLAN) -> tuple[list[Any], list[Any]]:
    found = []
    for each in (False, True):
        driver = Driver(plan)
        driver.core.keep_statistics(True, (), ())
        if each:
            driver.core.attribute_each()
        for line in lines:
            driver.push(line)
        driver.finish()
        assert not (each and driver.core.shapes())
        summary = driver.summary()
        by_shape = summary["ops"].pop("by_shape")
        assert not (each and by_shape)
        found.append([driver.tables(), summary, json.loads(driver.core.statistics())])
    return found[0], found[1]


@settings(max_examples=75)
@given(alike())
def test_ops_alike(lines: list[Line]) -> None:
    shaped, each = both(lines)
    assert shaped == each


@st.composite
def with_requests(draw: st.DrawFn) -> list[Line]:
    """Ops of two templates. A thread of each queues a bio, mostly while it works for the op; the request goes its way
    between the op's points, or behind them."""
    lines = []
    blocks = ("block_bio_queue", "block_getrq", "block_rq_insert", "block_rq_issue", "block_rq_complete")
    gap = st.sampled_from([0, 1, 7, 40])
    usual = draw(st.lists(gap, min_size=12, max_size=12))
    for op in range(draw(st.integers(4, 16))):
        gaps = iter(usual if draw(st.booleans()) else draw(st.lists(gap, min_size=12, max_size=12)))
        at = queued_ns = 1000 + draw(st.integers(0, 300))
        tids = draw(st.sampled_from([(op, op), (op, 50 + op)]))
        template = draw(st.sampled_from([TEMPLATES[1], ("submit", "queued", "taken", "step", "reply")]))
        for i, name in enumerate(template):
            at += next(gaps)
            payload = {"submit": {"id": op, "oid": op}, "queued": {"id": op, "ref": op}, "taken": {"ref": op},
                       "reply": {"id": op}}.get(name, {})  # fmt: skip
            lines.append(Line(at, f"app:{name}", {"tid": tids[i > 1], "pid": 1, "comm": "t"}, payload))
            if name == "taken":
                queued_ns = at
                at += 20  # time for the request
        at = queued_ns
        for name in blocks:
            at += next(gaps)
            if draw(st.sampled_from([True] * 19 + [False])):
                issuer = draw(st.sampled_from([tids[1], 99])) if name == "block_rq_issue" else tids[1]
                block = {"dev": 8 << 20, "sector": 8 * op, "nr_sector": 8, "rwbs": 1, "tid": issuer, "comm": "t"}
                lines.append(Line(at, name, {"cpu": op}, block))
    return sorted(lines, key=lambda line: line.ts_ns)


@settings(max_examples=60)
@given(with_requests())
def test_ops_with_a_request(lines: list[Line]) -> None:
    shaped, each = both(lines)
    assert shaped == each


@settings(max_examples=50)
@given(events)
def test_any_events(generated: list[Any]) -> None:
    shaped, each = both(lines_of(generated))
    assert shaped == each


KEYS_ALONE = plan_of("""
linger_ns = 100
[keys]
op = "id"
ref = { fields = "ref", scope = "process" }
[points]
submit = { event = "app:submit", role = "begin", key = "op" }
queued = { event = "app:queued", key = "op" }
named = { event = "app:named", key = "op", bind = "ref" }
worked = { event = "app:worked", key = "ref" }
dropped = { event = "app:dropped", key = "ref", release = "ref" }
reply = { event = "app:reply", key = "op", role = "end" }
""")
KEYS_OF = {
    "submit": ("id",), "queued": ("id",), "named": ("id", "ref"), "worked": ("ref",), "dropped": ("ref",),
    "reply": ("id",),
}  # fmt: skip
RUNS = (("submit", "queued", "queued"), ("queued", "queued"), ("queued", "named", "worked", "worked"),
        ("worked", "worked", "dropped"), ("dropped",), ("queued", "reply"))  # fmt: skip
two = st.integers(1, 2)


@st.composite
def runs_of_one_op(draw: st.DrawFn) -> list[Line]:
    """Threads that go on with what they are at, for some events, then with something else; keys that come again."""
    now, lines = 1000, []
    for _ in range(draw(st.integers(1, 40))):
        payload = {"id": draw(two), "ref": draw(two)}
        thread = draw(two)
        context: dict[str, Any] = {"tid": thread, "pid": 1, "comm": "t", "stream": thread}
        odd = draw(st.integers(0, 29))
        if odd == 0:
            context["host"] = "other"
        elif odd == 1:
            context["pid"] = 2
        for name in draw(st.sampled_from(RUNS)):
            now += draw(st.sampled_from([0, 1, 20, 120]))
            at = now - draw(st.sampled_from([0] * 19 + [30]))  # perhaps too late
            fields: dict[str, Any] = {f: payload[f] for f in KEYS_OF[name]}
            if odd == 2:
                fields[KEYS_OF[name][0]] = "a text"
            lines.append(Line(at, f"app:{name}", context, fields))
    return lines


@settings(max_examples=150)
@given(runs_of_one_op())
def test_threads_that_go_on_with_an_op(lines: list[Line]) -> None:
    short, general = both(lines, KEYS_ALONE)
    assert short == general


def test_a_released_key_is_not_gone_on_with() -> None:
    """Where a point could follow by another key of the op, but this one names nothing any more."""
    lines: list[Line] = []
    for op, last in ((1, 2), (2, 2), (3, 1)):
        points = [("submit", {"id": op}), ("named", {"id": op, "ref": 1}), ("named", {"id": op, "ref": 2}),
                  ("worked", {"ref": 1}), ("worked", {"ref": 1}), ("dropped", {"ref": 1}), ("worked", {"ref": last}),
                  ("reply", {"id": op})]  # fmt: skip
        for name, payload in points:
            lines.append(Line(1000 + len(lines), f"app:{name}", {"tid": 1, "pid": 1, "comm": "t"}, payload))
    short, general = both(lines, KEYS_ALONE)
    assert short == general
    assert short[1]["orphans"] == {"orphan:no_op_for_key": 1}


def test_what_ended_is_not_gone_on_with() -> None:
    """An event about an op that has ended: its thread left the one before, and is at this one until it settles."""
    late: list[Line] = []
    for settled in (0, 200):
        points = [(2, "submit", 1), (2, "queued", 1), (2, "queued", 1), (1, "submit", 2), (1, "queued", 2),
                  (1, "queued", 2), (1, "reply", 2), (2, "queued", 2), (2, "queued", 2), (1, "queued", 2)]  # fmt: skip
        for thread, name, op in points:
            at = 1000 + 10 * settled + len(late) + (settled if len(late) % 10 == 8 else 0)
            late.append(Line(at, f"app:{name}", {"tid": thread, "pid": 1, "comm": "t", "stream": thread}, {"id": op}))
    short, general = both(late, KEYS_ALONE)
    assert short == general
    assert short[1]["losses"]["late_transitions"] == 4
    assert short[1]["orphans"] == {"orphan:op_settled": 2}


def test_an_op_that_is_longer_than_a_shape_can_be() -> None:
    """It stops being one on the way, while its thread goes on with it; so does the next, where the steps are known."""
    lines: list[Line] = []
    for op in (1, 2):
        for name in ("submit", *["queued"] * 8200, "reply"):
            context = {"tid": 1, "pid": 1, "comm": "t", "stream": 1}
            lines.append(Line(1000 + len(lines) // 4, f"app:{name}", context, {"id": op}))
    short, general = both(lines, KEYS_ALONE)
    assert short == general
    assert [op["transition_count"] for op in short[0]["ops"]] == [8202, 8202]


def of_template(op: int, template: tuple[str, ...], at: int, tid: int = 1) -> list[Line]:
    """The events of one op."""
    lines = []
    for i, name in enumerate(template):
        payload = {"submit": {"id": op, "oid": op}, "queued": {"id": op, "ref": op}, "taken": {"ref": op},
                   "reply": {"id": op}}.get(name, {})  # fmt: skip
        lines.append(Line(at + 10 * i, f"app:{name}", {"tid": tid, "pid": 1, "comm": "t"}, payload))
    return lines


@pytest.mark.parametrize("others", [0, 1, 40])
def test_files_of_many_ops_alike(others: int, tmp_path: Path) -> None:
    """Their rows are written from the shape's, as long as no other op's come between."""
    lines = []
    for op in range(900):
        other = 900 - others <= op
        lines += of_template(op, TEMPLATES[op % 5 if other else 0], 1000 * op, tid=-1 if other and op % 2 else op % 3)
    for folder, each in (("shaped", False), ("each", True)):
        driver = Driver(PLAN)
        if each:
            driver.core.attribute_each()
        for line in lines:
            driver.push(line)
        driver.core.finish()
        writer = RunWriter(tmp_path / folder)
        writer.write(driver.core)
        writer.commit({})
    for spec in TABLES:
        shaped, alone = (plain(tmp_path / folder / f"{spec.name}.parquet") for folder in ("shaped", "each"))
        assert shaped.equals(alone), spec.name
        assert spec.name != "transitions" or len(alone) > 6000


def test_the_templates_make_shapes() -> None:
    """That the comparison compares something: 100 equal ops are one path of the tree, and statistics have them all."""
    lines = []
    for op in range(100):
        lines += of_template(op, TEMPLATES[1], 1000 * op)
    shaped, each = both(lines)
    assert shaped == each
    driver = Driver(PLAN)
    for line in lines:
        driver.push(line)
    assert driver.core.shapes() == len(TEMPLATES[1])
    assert [s["count"] for s in shaped[2]["stages"]] == [100] * 4
