# SPDX-License-Identifier: MIT
"""`opline why`: which ops are slow, the stages of slow and typical ones, the sentence, and the commands it gives."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lib.build_run import P, Rq, RunBuilder
from tests.lib.recorded import RunOf

from opline.errors import OplineError, UsageError
from opline_analyses.cli import main
from opline_analyses.client.loop import closed_loop
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection
from opline_analyses.why.sets import choose, latency_rule, slowest_rule
from opline_analyses.why.text import sentence
from opline_analyses.why.why import STATES, Why, compare_sets

OPS = 200
PLANTED = (57, 111)  # the slow ones of OPS: the slowest 1 %


def planted(
    kind: str = "work", more_ns: int = 900_000, slow: tuple[int, ...] = PLANTED, states: bool = False
) -> RunBuilder:
    """OPS ops of 100 us and a bit: queue 20, stage `two` 30, device 40 of 50, and `two` is longer in the slow ones."""
    run = RunBuilder()
    for n in range(OPS):
        t = 10_000_000 * n
        two = 30_000 + n + (more_ns if n in slow else 0)
        end = t + 20_000 + two + 50_000
        run.op(
            [
                P("begin", t),
                P("taken", t + 20_000, tid=200, stage="queue", kind="wait"),
                P("done", t + 20_000 + two, tid=200, stage="two", kind=kind),
                P("end", end, tid=200),
            ],
            [Rq(q=end - 48_000, d=end - 45_000, c=end - 5_000)],
            op_class="read" if n % 2 else "write",
        )
        if states:
            for s in run.rows["stages"][-6:]:
                mine = s["duration_ns"] if s["stage"] == "two" else 0
                waited = mine - 30_000 - n
                s |= {"states_tid": 200, "on_cpu_ns": s["duration_ns"] - max(waited, 0), "runnable_ns": max(waited, 0)}
                s |= {"blocked_io_ns": 0, "blocked_ns": 0}
    return run


def why(path: Path, rule: str = "1%", which: Selection | None = None) -> Why:
    run = open_tables(path)
    return compare_sets(run, choose(run, which or Selection(), slowest_rule(rule)))


def out_of(capfd: pytest.CaptureFixture[str], *args: str | Path) -> str:
    assert main([str(a) for a in args]) == 0
    return capfd.readouterr().out


def test_programs_are_told_apart(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Whose the slow ops are: a recording has I/O of other programs, too. Of one program there is no such line."""
    run = planted()
    assert " programs: " not in out_of(capfd, "why", "--all", run.write(tmp_path / "one"))
    for n, row in enumerate(run.rows["ops"]):
        row |= {"pid": 7, "comm": "backup"} if n in (PLANTED[0], 3, 4) else {}
    out = out_of(capfd, "why", "--all", run.write(tmp_path / "two"))
    assert f"of 2 programs: app {OPS - 3} ops, 1 slow; backup 3 ops, 1 slow" in " ".join(out.split())


def test_a_planted_stage_is_named_with_its_times(tmp_path: Path) -> None:
    """Means by hand: the two slow ops have n = 57 and 111; typical are ranks 50 to 149 of the other 198."""
    w = why(planted().write(tmp_path))
    others = [n for n in range(OPS) if n not in PLANTED][49:149]
    assert (w.sets.ops, w.sets.slow, w.sets.typical) == (200, 2, 100)
    assert (w.sets.typical_from_ns, w.sets.typical_to_ns) == (100_000 + others[0], 100_000 + others[-1])
    assert (w.sets.slow_from_ns, w.longest_ns) == (1_000_057, 1_000_111)
    lead = w.stages[0]
    assert (lead.stage, lead.slow.total_ns, lead.slow.mean_ns) == ("two", 2 * 930_000 + 168, 930_084)
    assert lead.typical.total_ns == sum(30_000 + n for n in others)
    assert w.latency.more_ns == pytest.approx(900_084 - sum(others) / 100)
    assert [s.more_ns for s in w.stages[1:]] == [0.0] * (len(w.stages) - 1)
    assert w.share(lead.more_ns) == pytest.approx(1.0)
    assert w.sums
    assert sentence(w) == "The slowest 1 % spend 930.1 us of 1 ms in `two`; typical ones 30.1 us of 100.1 us."


def test_the_sets_sum_to_the_latency_to_the_nanosecond(tmp_path: Path) -> None:
    run = planted()
    run.rows["stages"][0]["duration_ns"] -= 7
    run.rows["ops"][0]["unattributed_ns"] += 7
    w = why(run.write(tmp_path), "50%")
    for side in ("slow", "typical"):
        whole = getattr(w.latency, side).total_ns
        assert sum(getattr(s, side).total_ns for s in w.stages) == whole
    broken = planted()
    broken.rows["stages"][57 * 6]["duration_ns"] += 1
    assert not why(broken.write(tmp_path / "broken")).sums
    assert main(["why", str(tmp_path / "broken")]) == 1


def test_waiting_for_a_cpu_is_said_where_the_states_are_known(tmp_path: Path) -> None:
    path = planted(states=True).write(tmp_path)
    w = why(path)
    assert w.stages[0].slow.runnable_ns == 2 * 900_000
    for side in ("slow", "typical"):
        for state in (*STATES, "state_unknown_ns"):
            assert getattr(getattr(w.latency, side), state) == sum(getattr(getattr(s, side), state) for s in w.stages)
    assert w.latency.slow.runnable_ns == 2 * 900_000 and w.latency.slow.state_unknown_ns == 0
    assert "spend 900 us of 1 ms waiting for a CPU in `two`; typical ones none of" in sentence(w)


def test_waiting_for_a_cpu_in_many_stages_is_said(tmp_path: Path) -> None:
    run = planted(slow=())
    for row in run.rows["ops"][:2]:
        row["latency_ns"] += 600_000
    for s in run.rows["stages"]:
        waited = (200_000 if s["stage"] == "queue" else 80_000) if s["op_id"] < 2 else 0
        s |= {"on_cpu_ns": s["duration_ns"], "runnable_ns": waited, "blocked_io_ns": 0, "blocked_ns": 0}
        s["duration_ns"] += waited
    said = sentence(why(run.write(tmp_path)))
    assert "spend 600 us of 700 us waiting for a CPU, the most of it in `queue`; typical ones none" in said


def test_after_the_device_is_said_of_a_stage_that_begins_at_its_end(tmp_path: Path) -> None:
    run = planted(slow=())
    for row in run.rows["ops"][:2]:
        row["latency_ns"] += 700_000
        row["end_ns"] += 700_000
    for s in run.rows["stages"][:12]:
        if s["stage"] == "reap":
            s["duration_ns"] += 700_000
    assert "waiting in `reap` (after the device had finished)" in sentence(why(run.write(tmp_path)))


def test_no_stage_is_named_alone_that_does_not_make_half(tmp_path: Path) -> None:
    run = RunBuilder()
    for n in range(100):
        t, more = n * 1_000_000, 300_000 if n == 5 else 0
        names = ("one", "two", "three")
        points = [P("a", t)]
        for i, name in enumerate(names):
            points.append(P(f"p{i}", points[-1].ts_ns + 10_000 + more, stage=name))
        run.op(points)
    said = sentence(why(run.write(tmp_path)))
    assert said.startswith(
        "The slowest 1 % takes 930 us, typical ones 30 us; no stage makes most of the difference: 33 % in"
    )


def test_alike_ops_are_called_alike(tmp_path: Path) -> None:
    said = sentence(why(planted(slow=()).write(tmp_path)))
    assert said == "The slowest 1 % are hardly slower than typical ones: 100.2 us against 100.1 us."


def test_one_monster_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = planted(slow=(57,)).write(tmp_path)
    assert "one of the slow ops alone has 71 % of their time" in out_of(capfd, "why", "--all", path, "--slowest", "5")
    assert "alone" not in out_of(capfd, "why", "--all", path, "--slowest", "2")


@pytest.mark.parametrize(
    ("text", "slow"),
    [("1%", 2), ("0.1%", 1), ("3", 3), ("99%", 198)],
)
def test_slowest(text: str, slow: int, tmp_path: Path) -> None:
    assert why(planted().write(tmp_path), text).sets.slow == slow


@pytest.mark.parametrize(
    ("text", "slow"),
    [(">1ms", 2), (">=1000.057us", 2), (">1000057ns", 1), ("1000.058us", 1), (">0.0001001s", 100)],
)
def test_latency(text: str, slow: int, tmp_path: Path) -> None:
    run = open_tables(planted().write(tmp_path))
    assert choose(run, Selection(), latency_rule(text)).slow == slow


def test_incomplete_and_tainted_ops_are_left_out_and_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = planted()
    run.op([P("begin", 3_000_000_000)], complete=False, reason="no_end")
    run.op([P("begin", 3_100_000_000), P("end", 3_900_000_000, stage="two")], tainted=True)
    path = run.write(tmp_path)
    assert main(["why", str(path)]) == 0
    captured = capfd.readouterr()
    assert "slow: 2 of 200 ops" in captured.out
    assert "left out: 1 incomplete op, 1 op that overlaps lost events (--tainted counts these)." in captured.err
    assert "slow:    2 of 201 ops, 1 ms and more" in out_of(capfd, "why", "--all", path, "--tainted")


def test_what_cannot_be_compared_is_one_line(tmp_path: Path) -> None:
    run = open_tables(planted().write(tmp_path))
    with pytest.raises(OplineError, match="All 200 ops are slow by this rule"):
        choose(run, Selection(), slowest_rule("200"))
    with pytest.raises(OplineError, match="the longest takes 1000111 ns"):
        choose(run, Selection(), latency_rule(">1s"))
    with pytest.raises(OplineError, match="No op to count"):
        choose(run, Selection("o.begin_ns < 0"), slowest_rule("1%"))
    for rule in ("0", "0%", "100%", "-3", "fast"):
        with pytest.raises(UsageError, match="--slowest"):
            slowest_rule(rule)
    for rule in (">5", "<5ms", "5 minutes"):
        with pytest.raises(UsageError, match="--latency"):
            latency_rule(rule)


def test_csv_and_json_have_the_same_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = planted().write(tmp_path / "a run")
    rows = list(csv.DictReader(io.StringIO(out_of(capfd, "why", "--all", path, "--csv"))))
    document = json.loads(out_of(capfd, "why", "--all", path, "--json"))
    assert document["schema"] == "opline why 1"
    shown = [*document["stages"], document["latency"]]
    assert [r["stage"] for r in rows] == [r["stage"] for r in shown]
    assert [int(r["slow_total_ns"]) for r in rows] == [r["slow_total_ns"] for r in shown]
    assert rows[-1]["slow_total_ns"] == str(1_000_057 + 1_000_111)
    assert document["sentence"].startswith("The slowest 1 % spend")


def looped(path: Path, begins: list[int], length: int) -> int | None:
    run = RunBuilder()
    for t in begins:
        run.op([P("begin", t), P("end", t + length)])
    return closed_loop(open_tables(run.write(path)))


def test_a_closed_loop_is_known_by_its_begins(tmp_path: Path) -> None:
    """Two slots, each begins 1 us after its last end; a client with a schedule, idle between ops; begins at random."""
    two = sorted([n * 101_000 for n in range(40)] + [n * 101_000 + 50_000 for n in range(40)])
    assert looped(tmp_path / "two", two, 100_000) == 2
    assert looped(tmp_path / "paced", [n * 200_000 for n in range(80)], 100_000) is None
    random = np.random.default_rng(3)
    open_loop = np.cumsum(random.exponential(50_000, 300)).astype(int).tolist()
    assert looped(tmp_path / "open", open_loop, 100_000) is None


def test_a_client_that_takes_its_time_between_two_ops_is_a_loop(tmp_path: Path) -> None:
    """One op at a time: 25 us after the last end, whatever it took, or 25 us after it because one is due each 125."""
    run, steady = RunBuilder(), RunBuilder()
    random = np.random.default_rng(4)
    at = 0
    for n in range(200):
        took = 100_000 + int(random.integers(-20_000, 20_000))
        run.op([P("begin", at), P("end", at + took)])
        at += took + 25_000 + int(random.integers(1000))
        steady.op([P("begin", n * 125_000 + int(random.integers(1000))), P("end", n * 125_000 + took + 1000)])
    assert closed_loop(open_tables(run.write(tmp_path / "loop"))) == 1
    assert closed_loop(open_tables(steady.write(tmp_path / "paced"))) is None


def test_on_recorded_ops_it_agrees_with_sql(
    run_of: RunOf, opline: Callable[..., Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both sets and a stage's sums by a query of their own; and each of the commands that it gives works."""
    path = run_of("demo-qd4").path
    w = why(path)
    slow = open_tables(path).rows(
        """SELECT stage, sum(duration_ns) FROM stages WHERE op_id IN
               (SELECT op_id FROM ops WHERE complete AND NOT tainted ORDER BY latency_ns DESC, op_id DESC LIMIT 20)
           GROUP BY stage"""
    )
    assert {s.stage: s.slow.total_ns for s in w.stages if s.slow.total_ns} == {s: int(ns) for s, ns in slow if ns}
    assert w.sums
    text = out_of(capfd, "why", "--all", path, "--class", "write")
    assert max(map(len, text.splitlines()[3:-4])) <= 80
    commands = [line.strip() for line in text.split("to look further:\n")[1].splitlines()]
    assert [shlex.split(c)[1] for c in commands] == ["ops", "interference", "plot"]
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "opline"
        done = opline(*words[1:], cwd=tmp_path)
        assert (done.returncode, done.stderr.replace("opline: wrote slow.png\n", "")) == (0, "")
    assert (tmp_path / "slow.png").read_bytes().startswith(b"\x89PNG")


def test_a_trace_is_named_with_its_model(trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    path = trace("demo-qd4")
    text = out_of(capfd, "why", "--all", path, "--model", "demo", "--since", "0.01")
    commands = text.split("to look further:\n")[1].splitlines()
    assert all(f"{path} --model demo" in c for c in commands)
    assert "--since 0.01" in commands[-1]


def test_the_answer_is_short_and_the_rest_is_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = planted(states=True).write(tmp_path)
    short = out_of(capfd, "why", path)
    assert len([line for line in short.splitlines() if line]) <= 12
    assert all(len(line) <= 80 for line in short.splitlines() if not line.startswith("  opline "))
    assert short.startswith("The slowest 1 % spend 900 us of 1 ms waiting for a CPU in `two`")
    (row,) = (line.split() for line in short.splitlines() if line.startswith("two"))
    assert row[-1] == "100.0", "the stage has the whole difference"
    (command,) = (line.strip() for line in short.splitlines() if line.startswith("  opline "))
    assert main(shlex.split(command)[1:]) == 0, "the hint leads somewhere"
    assert "without it" not in short and "p99" in out_of(capfd, "why", "--all", path)


def test_the_kind_of_time_that_makes_most_of_the_difference_is_named_where_no_stage_does(tmp_path: Path) -> None:
    run = RunBuilder()
    for n in range(100):
        t, more = n * 1_000_000, 300_000 if n == 5 else 0
        points = [P("a", t)]
        for i, (name, kind) in enumerate((("one", "work"), ("log flush", "device"), ("data flush", "device"))):
            points.append(P(f"p{i}", points[-1].ts_ns + 10_000 + more, stage=name, kind=kind))
        run.op(points)
    said = sentence(why(run.write(tmp_path)))
    assert said.endswith("; 67 % of the difference is time at the device: 33 % `data flush`, 33 % `log flush`.")


def test_what_a_shorter_stage_would_give(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each op's own time in the stage less 30 %: the planted stage of the two slow ops, and `two` of all others."""
    path = planted().write(tmp_path / "run")
    text = out_of(capfd, "why", path, "--all")
    (found,) = json.loads(out_of(capfd, "why", path, "--json"))["forecasts"]
    two = np.array([30_000 + n + (900_000 if n in PLANTED else 0) for n in range(OPS)])
    now, then = two + 70_000, two * 0.7 + 70_000
    assert (found["stage"], found["shorter_by"]) == ("two", 0.3)
    assert found["mean_ns"] == pytest.approx(now.mean()) and found["mean_if_ns"] == pytest.approx(then.mean())
    rank = OPS * 99 // 100 - 1
    assert found["p99_ns"] == np.sort(now)[rank] and found["p99_if_ns"] == pytest.approx(np.sort(then)[rank])
    assert "if two were 30 % shorter: mean " in text


@pytest.mark.parametrize(("syncs", "told"), [(12, True), (6, False)])
def test_a_class_that_has_the_slow_ops_is_the_next_question(
    syncs: int, told: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Too few slow ops for what separates them: their class is a fact all the same, from ten on."""
    run = RunBuilder()
    for n in range(OPS):
        slow = n % (OPS // syncs) == 0 and n // (OPS // syncs) < syncs
        t = 10_000_000 * n
        run.op([P("begin", t), P("end", t + (5_000_000 if slow else 3_000) + n, stage="all")],
               op_class="fdatasync" if slow else "pwrite64")  # fmt: skip
    path = run.write(tmp_path / "run")
    assert main(["why", str(path), "--slowest", str(syncs)]) == 0
    said = capfd.readouterr().out
    share = f"100 % of the slow ops are of class fdatasync, against {100 * syncs // OPS} % of all ops."
    assert (share in said) == told
    assert (f"  opline why {path} --class fdatasync\n" in said) == told
    assert len([line for line in said.splitlines() if line]) <= 12
    assert main(["why", str(path), "--class", "fdatasync", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["sets"]["ops"] == syncs and found["class"] is None
