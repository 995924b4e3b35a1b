# SPDX-License-Identifier: MIT
"""What models make the core conclude: the mail's Ceph, opline's own tracepoints, a batch that its work opens."""

from __future__ import annotations

import pytest
from tests.lib.core_driver import Driver, Line, check_laws, parse_line, run, value_of

from opline.model import check_trace, load_model

MAIL = "ceph-2014"  # what `--model ceph` is for a trace of that time

# C1.6: the mail's op, with nanoseconds that the mail's microseconds hide. (delta in us, event, fields)
CLIENT, DISPATCH, WORKER = 86656, 24224, 94688
MAIL_OP = [
    (0, CLIENT, "ioctximpl:aio_write", "oid={oid}"),
    (10, CLIENT, "ioctximpl:queue_aio_write", "num=0"),
    (300, DISPATCH, "osd:ms_fast_dispatch", "oid={oid} {req}"),
    (11, DISPATCH, "oprequest:set_rmw_flags", "{req} flag=4"),
    (17, DISPATCH, "osd:enqueue_op", "oid={oid}"),
    (6, DISPATCH, "osd:shard_index_enqueue", "shard=3"),
    (13, DISPATCH, "pg:queue_op", "pg=7"),
    (68, WORKER, "osd:opwq_process_start", "{req}"),
    (5, WORKER, "osd:dequeue_op", "oid={oid}"),
    (3, WORKER, "oprequest:mark_flag_point", "{req} msg=reached_pg"),
    (49, WORKER, "oprequest:mark_flag_point", "{req} msg=started"),
    (5, WORKER, "oprequest:mark_flag_point", "{req} msg=started"),
    (5, WORKER, "osd:prepare_tx_enter", "{req}"),
    (3, WORKER, "osd:do_osd_op_pre", "oid={oid}"),
    (2, WORKER, "osd:do_osd_op_pre_write", "oid={oid}"),
    (15, WORKER, "osd:do_osd_op_post", "oid={oid}"),
    (26, WORKER, "osd:prepare_tx_exit", "{req}"),
    (188, WORKER, "osd:opwq_process_finish", "{req}"),
]


def mail_op(start_ns: int, oid: str, tid: int) -> list[Line]:
    lines = []
    ts = start_ns
    for n, (delta_us, thread, event, fields) in enumerate(MAIL_OP):
        ts += delta_us * 1000 + (17 * n) % 23
        line = parse_line(f"{ts} {event} tid={thread} pid={1 if thread == CLIENT else 2}")
        # The events have a payload field of the name `tid` besides the thread's.
        filled = fields.format(oid=oid, req=f"type=8 num=4107 inc=0 tid={tid}")
        line.payload = {k: value_of(v) for k, v in (pair.split("=") for pair in filled.split())}
        lines.append(line)
    return lines


def stitched(*ops: list[Line]) -> Driver:
    driver = Driver(load_model(MAIL).plan_json())
    lines = sorted((line for op in ops for line in op), key=lambda line: line.ts_ns)
    for line in lines:
        driver.push(line)
    driver.finish()
    check_laws(driver, len(lines))
    return driver


def points_of(driver: Driver, op_id: int) -> list[str]:
    return [t["point"] for t in driver.tables()["transitions"] if t["op_id"] == op_id]


def test_the_op_of_the_mail_has_its_18_states() -> None:
    """C1.4, C1.7: object in some events, request in others, thread in the rest; states named after a field."""
    driver = stitched(mail_op(1_000_000_123, "object53", 54))
    points = points_of(driver, 0)
    assert len(points) == 18
    assert points[0] == "ioctximpl:aio_write" and points[-1] == "osd:opwq_process_finish"
    assert points[9:12] == ["mark_flagpt:reached_pg", "mark_flagpt:started", "mark_flagpt:started#2"]
    (op,) = driver.tables()["ops"]
    assert (op["object"], op["class"], op["complete"], op["unknown_ns"]) == ("object53", "write", True, 0)


def test_interleaved_ops_on_the_same_threads_and_a_name_used_twice() -> None:
    """C1.4, C1.13: two ops at once, one after the other on one object: each has its own 18 states."""
    # b's events come between a's on the worker's thread; each carries a key of its own.
    made = [mail_op(1_000_000_000, "a", 1), mail_op(1_000_060_000, "b", 2), mail_op(1_003_000_000, "a", 3)]
    driver = stitched(*made)
    ops = driver.tables()["ops"]
    between = [line.ts_ns for line in made[1] if line.ts_ns < made[0][-1].ts_ns]
    assert len(between) > 8, "b is under way while a is"
    assert times_of(driver) == sorted([line.ts_ns for line in lines] for lines in made)
    assert sorted((op["object"], op["transition_count"], op["complete"]) for op in ops) == [
        ("a", 18, True),
        ("a", 18, True),
        ("b", 18, True),
    ]


def times_of(driver: Driver) -> list[list[int]]:
    """Of each op the times of its own transitions."""
    found: dict[int, list[int]] = {}
    for t in driver.tables()["transitions"]:
        found.setdefault(t["op_id"], []).append(t["ts_ns"])
    return sorted(map(sorted, found.values()))


def test_events_without_a_key_are_of_the_op_that_their_thread_is_at() -> None:
    """C1.4: two ops at once on the dispatcher and the worker; events that name no op fall to whoever is there then, and
    what another thread does meanwhile to neither.
    """
    model = """\
[keys]
op = "oid"
[points]
begin = { event = "p:begin", role = "begin", key = "op", thread = "enter" }
enter = { event = "p:enter", key = "op", thread = "enter" }
inside = { event = "p:inside" }
leave = { event = "p:leave", key = "op", thread = "leave" }
end = { event = "p:end", key = "op", role = "end" }
"""
    own = {
        "a": [(10, "begin", 1, "oid=a"), (12, "inside", 1, ""), (20, "enter", 7, "oid=a"), (21, "inside", 7, ""),
              (25, "leave", 7, "oid=a"), (50, "enter", 7, "oid=a"), (52, "inside", 7, ""), (60, "leave", 7, "oid=a"),
              (90, "end", 1, "oid=a")],
        "b": [(14, "begin", 1, "oid=b"), (16, "inside", 1, ""), (30, "enter", 7, "oid=b"), (31, "inside", 7, ""),
              (32, "inside", 7, ""), (40, "leave", 7, "oid=b"), (95, "end", 1, "oid=b")],
    }  # fmt: skip
    nobodys = [(15, "inside", 8, ""), (45, "inside", 7, ""), (75, "inside", 7, "")]
    every = sorted([*own["a"], *own["b"], *nobodys])
    driver = run(model, [f"{at} p:{event} tid={tid} pid=1 {fields}".rstrip() for at, event, tid, fields in every])
    assert times_of(driver) == [[at for at, *_ in events] for events in own.values()]
    assert all(op["complete"] for op in driver.tables()["ops"])


def test_an_op_without_its_last_state_is_not_complete() -> None:
    """C1.5."""
    driver = stitched(mail_op(1_000_000_000, "a", 1)[:-1])
    (op,) = driver.tables()["ops"]
    assert (op["complete"], op["reason"], op["latency_ns"]) == (False, "no_end", None)


def test_a_batch_that_its_first_work_opens() -> None:
    model = """\
[keys]
op = "id"
[points]
begin = { event = "p:begin", role = "begin", key = "op" }
sync = { event = "p:sync", batch = { work = "kv" } }
join = { event = "p:join", key = "op", batch = { join = "kv" } }
done = { event = "p:done", key = "op", batch = { close = "kv" } }
end = { event = "p:end", key = "op", role = "end" }
[batches]
kv = { auto = true }
"""
    lines = []
    for at, ids in ((0, (1, 2)), (1000, (3,))):
        lines += [f"{at + 10} p:begin tid=1 pid=1 id={i}" for i in ids]
        lines += [f"{at + t} p:sync tid=9 pid=1" for t in (20, 30)]
        lines += [f"{at + 40} p:join tid=9 pid=1 id={i}" for i in ids]
        lines += [f"{at + 50} p:sync tid=9 pid=1"]
        lines += [f"{at + 60} p:done tid=9 pid=1 id={i}" for i in ids]
        lines += [f"{at + 70} p:end tid=1 pid=1 id={i}" for i in ids]
    driver = run(model, lines)
    check_laws(driver, len(lines))
    batches = driver.tables()["batches"]
    assert [(b["begin_ns"], b["end_ns"], b["member_count"]) for b in batches] == [(20, 60, 2), (1020, 1060, 1)]
    for op in (0, 1, 2):
        assert points_of(driver, op) == ["begin", "sync", "sync#2", "join", "sync#3", "done", "end"]
    assert driver.summary()["losses"]["batches_left_open"] == 0


def test_an_end_of_one_class_only() -> None:
    model = """\
[keys]
op = "id"
[points]
begin = { event = "p:begin", role = "begin", key = "op", class = "{what}" }
half = { event = "p:half", key = "op", role = { end = ["read", "stat"] } }
end = { event = "p:end", key = "op", role = "end" }
"""
    lines = [f"{at} p:begin tid=1 pid=1 id={at} what={what}" for at, what in ((1, "read"), (2, "write"))]
    lines += [f"{ts} p:{event} tid=1 pid=1 id={at}" for ts, event in ((10, "half"), (20, "end")) for at in (1, 2)]
    driver = run(model, lines)
    check_laws(driver, len(lines))
    ops = sorted((op["class"], op["latency_ns"], op["late_count"]) for op in driver.tables()["ops"])
    assert ops == [("read", 9, 1), ("write", 18, 0)]


def test_a_rule_is_passed_over_where_the_event_lacks_its_field() -> None:
    model = """\
[keys]
op = "id"
old = "number"
[points]
begin = { event = "p:begin", role = "begin", key = ["op", "old"] }
end = [{ event = "p:end", key = "op", role = "end" }, { event = "p:end", key = "old", role = "end" }]
"""
    driver = run(model, ["1 p:begin tid=1 pid=1 id=7 number=8", "5 p:end tid=1 pid=1 number=8"])
    (op,) = driver.tables()["ops"]
    assert op["complete"] and op["latency_ns"] == 4


def test_lint_reads_the_cores_counters() -> None:
    driver = stitched(mail_op(1_000_000_000, "a", 1)[2:], [parse_line("9000000000 osd:new tid=1 pid=1")])
    events = {f["event"]: f["count"] for f in driver.tables()["fates"]}
    said = [p.message for p in check_trace(load_model(MAIL), driver.summary(), events)]
    assert "point ioctximpl:aio_write: never seen: the trace has no ioctximpl:aio_write" in said
    assert "point osd:enqueue_op: its key oid never found an op" in said
    assert any(s.startswith("no point for osd:new (1 events)") for s in said)


@pytest.mark.parametrize("points", [0, 1, 2])
def test_lint_of_the_three_macros_says_nothing_of_a_correct_program(points: int) -> None:
    """Whatever ways of naming threads, keys and bytes it leaves out, and if it has no point between its ends."""
    lines = ["1 opline:op_begin tid=1 pid=1 key=1 thread=0 object=o op_class=write offset=0 length=512"]
    for i in range(points):
        lines.append(f"{i + 2} opline:op_point tid=2 pid=1 key=1 thread=1 point=p{i} offset=0 length=0")
    lines.append(f"9 opline:op_end tid=2 pid=1 key={min(1 - points % 2, 1)} result=0")
    driver = run(load_model("generic").text, lines)
    (op,) = driver.tables()["ops"]
    assert op["complete"]
    events = {f["event"]: f["count"] for f in driver.tables()["fates"]}
    fields = {
        "opline:op_begin": {"key", "thread", "object", "op_class", "offset", "length"},
        "opline:op_point": {"key", "thread", "point", "offset", "length"},
        "opline:op_end": {"key", "result"},
    }
    assert check_trace(load_model("generic"), driver.summary(), events, fields) == []
    if points:  # a field that a rule needs and the events lack is said all the same
        fields["opline:op_point"] -= {"length"}
        assert check_trace(load_model("generic"), driver.summary(), events, fields)
    # from one thread to another it waits, whatever the points are called
    kinds = {(s["from_point"], s["to_point"]): s["kind"] for s in driver.tables()["stages"]}
    if points:
        assert kinds["begin", "p0"] == "wait"
        assert set(kinds.values()) - {kinds["begin", "p0"]} <= {"work"}


def test_oplines_own_tracepoints() -> None:
    """Thread rules by number; key 0 is the thread's op; a point's length has bytes in flight; a key comes again."""
    lines = []
    for at in (0, 1000):  # the second time with the same key, an address that is used again
        lines += [
            f"{at + 1} opline:op_begin tid=1 pid=1 key=0xa0 thread=1 object=o op_class=write offset=0 length=512",
            f"{at + 2} opline:op_point tid=1 pid=1 key=0 thread=0 point=checked offset=0 length=0",
            f"{at + 3} opline:op_point tid=1 pid=1 key=0 thread=2 point=queued offset=0 length=0",
            f"{at + 4} opline:op_point tid=1 pid=1 key=0 thread=0 point=lost offset=0 length=0",
            f"{at + 5} opline:op_point tid=2 pid=1 key=0xa0 thread=3 point=taken offset=0 length=0",
            f"{at + 6} opline:op_point tid=2 pid=1 key=0xa0 thread=0 point=io offset=4096 length=512",
            f"{at + 7} block_bio_queue tid=9 dev=7 sector=8 nr_sector=1 rwbs=1",
            f"{at + 8} opline:op_end tid=2 pid=1 key=0xa0 result=0",
            f"{at + 9} opline:op_point tid=2 pid=1 key=0 thread=0 point=lost offset=0 length=0",
        ]
    driver = run(load_model("generic").text, lines)
    check_laws(driver, len(lines))
    for op in (0, 1):
        assert points_of(driver, op) == ["begin", "checked", "queued", "taken", "io", "end"]
    ops = driver.tables()["ops"]
    assert [(op["class"], op["object"], op["latency_ns"], op["offset_bytes"]) for op in ops] == [
        ("write", "o", 7, 4096)
    ] * 2
    assert [(link["op_id"], link["evidence"]) for link in driver.tables()["links"]] == [(0, "sector"), (1, "sector")]
    fates = {(f["event"], f["fate"]): f["count"] for f in driver.tables()["fates"]}
    assert fates["opline:op_point", "orphan:no_key_no_thread"] == 4
