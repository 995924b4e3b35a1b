# SPDX-License-Identifier: MIT
"""What slow ops waited for: the causes sum to the waits, and the first sentence names the one that makes most of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.analyses.test_why import PLANTED, out_of, planted

from opline_analyses.export import wait_stacks
from opline_analyses.ops import stages
from opline_analyses.ops.waited import Spent, brief, holder_besides, spent_on
from opline_analyses.runs import columns
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection
from opline_analyses.why.sets import choose, slowest_rule
from opline_analyses.why.waits import waits_of


def waiting(*slow_parts: dict[str, Any]) -> Any:
    """`planted` with waits: each op waits 10 us for a CPU in its stage `two`, the slow ones besides for these parts of
    900 us in all, the first of them 600 us long.
    """
    run = planted(states=True)
    for s in run.rows["stages"]:
        if s["stage"] != "two":
            continue
        slow = s["op_id"] in PLANTED
        at_ns, waits = s["begin_ns"], [{"kind": "cpu", "tid": 200, "depth": 0, "duration_ns": 10_000}]
        lengths = [900_000] if len(slow_parts) == 1 else [600_000, *[300_000 // (len(slow_parts) - 1)] * 5]
        if slow:
            waits += [part | {"duration_ns": ns} for part, ns in zip(slow_parts, lengths, strict=False)]
        for n, wait in enumerate(waits):
            number = {"wait_id": 10 * s["op_id"] + n, "op_id": s["op_id"], "seq": s["seq"], "part_count": 1}
            run.rows["waits"].append({"certain": True, **number, "begin_ns": at_ns, **wait})
            at_ns += wait["duration_ns"]
        s |= {"on_cpu_ns": s["duration_ns"] - 910_000 * slow - 10_000 * (not slow), "runnable_ns": 10_000}
        s |= {"blocked_io_ns": 900_000 * slow, "blocked_ns": 0}
    return run


JOURNAL = {"kind": "device", "path": "jbd2/sda-8", "depth": 1, "comm": "jbd2/sda-8", "tid": 9}


def flushes(run: Any) -> int:
    """A flush of the device 8:0; its number."""
    request = dict(run.rows["requests"][-1])
    request |= {"request_id": 10_000, "kind": "flush", "dev": 8 << 20, "queue_comm": "jbd2/sda-8"}
    run.rows["requests"].append(request)
    return 10_000


def test_ranges_of_ops_give_the_same_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = waiting(JOURNAL)
    number = flushes(run)
    for row in run.rows["waits"]:
        if row["kind"] == "device":
            row["request_id"] = number
    opened = open_tables(run.write(tmp_path))
    sets = choose(opened, Selection(), slowest_rule("1%"))
    whole = waits_of(opened, sets)
    monkeypatch.setattr(columns, "RANGE", 7)
    assert whole is not None
    assert {c.spent.request for c in whole.causes} == {None, "flush"}
    assert waits_of(opened, sets) == whole


def test_the_cause_of_most_is_the_first_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = waiting(JOURNAL)
    number = flushes(run)
    for row in run.rows["waits"]:
        if row["kind"] == "device":
            row["request_id"] = number
    path = run.write(tmp_path)
    told = " ".join(out_of(capfd, "why", path).split())
    assert told.startswith(
        "The slowest 1 % wait 900 us of 1 ms for jbd2/sda-8, whose flush was at the device (8:0); typical ones none of"
    )
    assert len(out_of(capfd, "why", path).splitlines()) <= 12
    document = json.loads(out_of(capfd, "why", "--json", path))
    assert document["wait_sentence"] in told
    (device, cpu) = document["waits"]
    assert (device["kind"], device["request"], device["slow_ns"], device["stages"]) == (
        "device", "flush", 1_800_000, {"two": 1_800_000}
    )  # fmt: skip
    assert (cpu["kind"], cpu["slow_ns"], cpu["typical_ns"]) == ("cpu", 20_000, 100 * 10_000)
    everything = out_of(capfd, "why", "--all", path)
    assert "jbd2/sda-8 → flush at the device (8:0)" in everything and "not certain" not in everything
    one = out_of(capfd, "ops", path, "--op", str(PLANTED[0]))
    assert "jbd2/sda-8 → flush at the device (8:0)" in one


def test_what_one_thread_did_is_named_where_no_single_cause_is_most(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    work, cpu = JOURNAL | {"kind": "work"}, JOURNAL | {"kind": "cpu", "instead_comm": "hog", "instead_tid": 3}
    run = waiting(work, cpu)
    for row in run.rows["waits"]:
        if row["kind"] == "work":
            row["duration_ns"] = 400_000
    told = " ".join(out_of(capfd, "why", run.write(tmp_path)).split())
    assert "wait 700 us of 1 ms for jbd2/sda-8; typical ones none" in told
    assert (
        "Of that 400 us for jbd2/sda-8, which ran; 300 us for jbd2/sda-8, which waited for a CPU while hog ran." in told
    )


def test_who_had_the_cpu_is_said_where_waiting_for_it_is_most(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A program that ran for less than a tenth of that time is not named."""
    hog, build = ({"kind": "cpu", "depth": 0, "instead_comm": name, "instead_tid": 3} for name in ("hog", "cc1plus"))
    run = waiting(hog, build | {"instead_comm": "tail"}, build)
    for row in run.rows["waits"]:
        if row.get("instead_comm") == "tail":
            row["duration_ns"] = 60_000
        elif row.get("instead_comm") == "cc1plus":
            row["duration_ns"] = 240_000
    told = " ".join(out_of(capfd, "why", run.write(tmp_path / "one")).split())
    assert "They wait 910 us for a CPU, while mostly hog (600 us) and cc1plus (240 us) ran. " in told
    nobody = waiting({"kind": "cpu", "depth": 0}).write(tmp_path / "nobody")
    assert "for a CPU, while" not in out_of(capfd, "why", nobody)
    assert "for a CPU, while" not in out_of(capfd, "why", waiting(JOURNAL).write(tmp_path / "journal"))


@pytest.mark.parametrize("part", [{"kind": "device", "depth": 0}, {"kind": "interrupt", "depth": 0}])
def test_an_own_request_stays_with_the_stages(
    part: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = out_of(capfd, "why", waiting(part).write(tmp_path))
    assert "spend 930.1 us of 1 ms in `two`" in " ".join(told.split())


def test_the_causes_sum_to_the_waits(tmp_path: Path) -> None:
    """Numbers of the kernel's workers are left out of the names, so that their work is one cause."""
    parts = [JOURNAL | {"kind": "work", "comm": f"kworker/{n}:1", "path": f"kworker/{n}:1"} for n in range(4)]
    run = open_tables(waiting(*parts).write(tmp_path))
    found = waits_of(run, choose(run, Selection(), slowest_rule("1%")))
    assert found is not None and found.slow == 2
    assert [c.spent.path for c in found.causes] == ["kworker", None]
    assert sum(c.slow_ns for c in found.causes) == 2 * 910_000
    nothing = open_tables(planted().write(tmp_path / "nothing"))
    assert waits_of(nothing, choose(nothing, Selection(), slowest_rule("1%"))) is None


def spent(kind: str, path: str | None = None, who: str | None = None, **more: str | None) -> Spent:
    return Spent(
        kind, path, who, *(more.get(name) for name in ("request", "device", "instead", "reason", "cause", "last_cause"))
    )


def test_words() -> None:
    assert brief(spent("device", None, "app", request="read", device="sda")) == "app: read at the device (sda)"
    assert brief(spent("cpu", None, None, instead="hog")) == "no CPU, hog runs"
    assert brief(spent("stopped", "boss", "boss")) == "boss → sends the signal to go on"
    assert spent_on(spent("work", "a → b", "b")) == "a, which waited for b, which ran"
    assert spent_on(spent("device", "a → b", "c", request="write", device="sda")) == (
        "a, which waited for b, for c, whose write request was at the device (sda)"
    )
    assert spent_on(spent("unknown", "a", "a", reason="cycle")) == "a, which waited for what is not known (cycle)"
    assert spent_on(spent("timer")) == "a timer"
    assert spent_on(spent("timer", cause="sleep")) == "a timer (sleep)"
    assert spent_on(spent("timer", cause="poll")) == "an event (poll), until its timeout"
    assert brief(spent("timer", cause="poll")) == "poll, timeout"
    causes = {"cause": "futex", "last_cause": "page under write-back"}
    written = spent("device", "a", "a", request="write", device="sda", **causes)
    assert spent_on(written) == (
        "a lock (futex): a, which waited for a page under write-back: its write request was at the device (sda)"
    )
    assert spent_on(spent("timer", "a", "a", cause="pipe", last_cause="futex")) == (
        "a pipe: a, which waited for a lock (futex), until its timeout"
    )
    assert brief(spent("timer", "a", "a", cause="pipe", last_cause="futex")) == "pipe: a → futex, timeout"
    assert spent_on(spent("timer", "a", "a", last_cause="timerfd")) == "a, which waited for a timer (timerfd)"
    assert spent_on(spent("unknown", reason="no wake-up")) == brief(spent("unknown", reason="no wake-up"))
    assert brief(spent("unknown", reason="no wake-up")) == "not known: no wake-up"


def test_words_of_causes() -> None:
    """The stacks say what the end of a wait does not; a request's own wait needs no more words."""
    assert spent_on(spent("interrupt", cause="reclaim")) == "memory reclaim"
    assert brief(spent("interrupt", cause="reclaim")) == "reclaim"
    assert spent_on(spent("cpu", cause="reclaim")) == "a CPU"
    direct = spent("device", None, "app", request="write", device="sda", cause="direct I/O")
    assert brief(direct) == "app: write at the device (sda)" and direct.own_request
    limit = direct._replace(cause="throttled: wbt")
    assert brief(limit) == "throttled: wbt: app: write at the device (sda)" and not limit.own_request
    assert spent_on(limit) == ("the limit of write-back throttling (wbt): a write request of app at the device (sda)")
    futex = spent("timer", "holder", "holder", cause="futex", last_cause="sleep")
    assert brief(futex) == "futex: holder → sleep"
    assert spent_on(futex) == "a lock (futex): holder, which waited for a timer (sleep)"
    held = futex._replace(holder=holder_besides("holder", "futex", "owner"))
    assert brief(held) == "futex, held by owner: holder → sleep"
    assert spent_on(held) == "a lock (futex) that owner held: holder, which waited for a timer (sleep)"
    assert holder_besides("a → holder", "kernel mutex", "holder") is None
    assert holder_besides("a", "journal commit", "owner") is None  # a lock of a thread on the path
    commit = spent("device", "jbd2/sda-8", "app", request="write", device="sda", cause="journal commit")
    assert spent_on(commit._replace(last_cause="no free tag")) == (
        "a commit of the journal: jbd2/sda-8, which waited for a free tag of the request queue: app, whose write"
        " request was at the device (sda)"
    )
    assert brief(commit._replace(last_cause="no free tag")) == (
        "journal commit: jbd2/sda-8 → no free tag: app: write at the device (sda)"
    )
    assert spent_on(spent("network")) == "a message from the network"


def test_short_waits_join_the_cause_that_is_alike(tmp_path: Path) -> None:
    """They have no stacks. Where two causes are alike they stay apart."""
    for causes, expected in ((["futex"], {"futex", None}), (["futex", "pipe"], {"futex", "pipe", None})):
        parts = [JOURNAL | {"kind": "work", "cause": cause} for cause in [*causes, None]]
        run = open_tables(waiting(*parts).write(tmp_path / str(len(causes))))
        found = waits_of(run, choose(run, Selection(), slowest_rule("1%")))
        assert found is not None and {c.spent.cause for c in found.causes} == expected
        assert sum(c.spent.path is not None and c.spent.cause is None for c in found.causes) == len(causes) - 1


def test_stacks_are_summed_a_range_of_ops_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_tables(waiting(JOURNAL).write(tmp_path / "run"))
    ops, whole = wait_stacks.waited(opened, Selection())
    found = list(whole)
    rows = len(list(wait_stacks._rows(opened)))
    (counted_ns,) = opened.row("SELECT sum(duration_ns)::BIGINT FROM waits SEMI JOIN counted USING (op_id)")
    assert sum(waited.ns for waited in found) == counted_ns > 0
    monkeypatch.setattr(stages, "ROWS", 5)
    again, parts = wait_stacks.waited(opened, Selection())
    assert (again, list(parts)) == (ops, found)
    assert len(list(wait_stacks._rows(opened))) > rows
