# SPDX-License-Identifier: MIT
"""`opline why`: slow ops that come with a period are told so, with what else does; others are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lib.build_run import P, Rq, RunBuilder

from opline_analyses.runs import columns
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection
from opline_analyses.why.sets import choose, slowest_rule
from opline_analyses.why.tail import ahead_of_them, tail_blame
from opline_analyses.why.when import bursts, episodes, log_tail, rhythms, when_slow
from opline_analyses.why.when_text import when_lines

MS, S = 1_000_000, 1_000_000_000


def noise(random: np.random.Generator, length_ns: int, number: int) -> Any:
    """Slow ops as disturbed machines have them: in clusters that come at any time."""
    centres = random.integers(0, length_ns, number // 4)
    return np.sort(random.choice(centres, number) + random.exponential(30 * MS, number)).astype(np.int64)


def test_the_tail_is_the_binomial_s() -> None:
    random = np.random.default_rng(1)
    drawn = (random.random((200_000, 12)) < 0.15).sum(axis=1)
    for k in range(7):
        assert np.exp(log_tail(12, 12, 0.15)[k]) == pytest.approx((drawn >= k).mean(), rel=0.1)


def test_overlapping_ops_are_one_episode() -> None:
    begins, ends = np.array([10, 15, 500, 30, 800]), np.array([100, 20, 600, 40, 801])
    times, sizes = episodes(begins, ends, 50)
    assert (times.tolist(), sizes.tolist()) == ([10, 500, 800], [3, 1, 1])


@pytest.mark.parametrize("period_ms", [100, 5_000])
@pytest.mark.parametrize("others", [0, 20])
def test_a_period_is_found_among_others(period_ms: int, others: int) -> None:
    right = 0
    for seed in range(5):
        random = np.random.default_rng(seed)
        period, turns = period_ms * MS, 20
        at = period // 3 + period * np.arange(turns) + random.integers(0, period // 25, turns)
        begins = np.concatenate((at, noise(random, period * turns, others))).astype(np.int64)
        found = bursts(begins, begins + period // 50, 0, period * turns)
        if found is None:
            continue
        assert found.period_ns == pytest.approx(period, rel=0.02)  # never another one
        assert found.within(np.array([period // 3 + 7 * period + period // 50])).all()
        assert found.width_ns < period / 10
        assert found.met >= 0.75 * turns
        right += 1
    assert right >= 4


def test_a_few_bursts_of_many_ops_outweigh_as_many_stalls_of_one() -> None:
    """Nine bursts of twenty ops each 5 s among thirty single ones: as episodes the bursts are few."""
    right = 0
    for seed in range(5):
        random = np.random.default_rng(seed)
        at = 5 * S * np.arange(1, 10)
        burst = (at[:, None] + random.integers(0, 200 * MS, (9, 20))).ravel()
        begins = np.concatenate((burst, random.integers(0, 50 * S, 30)))
        found = bursts(begins, begins + 5 * MS, 0, 50 * S)
        assert found is not None
        right += abs(found.period_ns / (5 * S) - 1) < 0.02 and found.inside >= 180
    assert right == 5


def test_half_a_period_says_no_more() -> None:
    """Bursts each second, and one between two of them: most turns of half a second are empty."""
    random = np.random.default_rng(1)
    at = np.append(S * np.arange(1, 9), 7 * S // 2)
    begins = (at[:, None] + random.integers(0, 40 * MS, (9, 12))).ravel()
    found = bursts(begins, begins + 5 * MS, 0, 9 * S)
    assert found is not None
    assert found.period_ns == pytest.approx(S, rel=0.02)


def test_a_period_of_few_slow_ops_is_not_told() -> None:
    """Each second one slow op, and forty of them for each of these in one burst: the period explains next to none."""
    begins = np.concatenate((S * np.arange(1, 21), 7 * S + S // 2 + MS * np.arange(800) // 4)).astype(np.int64)
    assert bursts(begins, begins + MS // 2, 0, 21 * S) is None


def test_clusters_without_a_period_are_none() -> None:
    named = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        begins = noise(random, 10 * S, int(random.integers(30, 300)))
        named += bursts(begins, begins + 2 * MS, 0, 10 * S) is not None
    assert named <= 1


def test_too_few_are_none() -> None:
    begins = np.arange(5) * S
    assert bursts(begins, begins + MS, 0, 5 * S) is None
    assert bursts(np.zeros(0, np.int64), np.zeros(0, np.int64), 0, 0) is None


@pytest.mark.parametrize("at_once", [columns.RANGE, 97])
def test_what_comes_with_them_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Reads each 10 ms; each 500 ms for 20 ms a backup writes, and they take 5 ms. Other writes come at any time."""
    monkeypatch.setattr(columns, "RANGE", at_once)
    run = RunBuilder()
    random = np.random.default_rng(3)
    for n in range(1000):
        t = 10 * MS * n
        slow = 5 * MS if t % (500 * MS) < 20 * MS else 0
        end = t + 100_000 + slow + n
        run.op([P("begin", t), P("end", end)], [Rq(q=t + 10, d=t + 20, c=end - 10, kind="read")], op_class="read")
    for t in [500 * MS * n + 100_000 * k for n in range(20) for k in range(200)]:
        run.request(Rq(q=t, d=t + 10, c=t + 90_000, nr_sectors=2048), comm="backup")
    for t in random.integers(0, 10 * S, 2000).tolist():
        run.request(Rq(q=t, d=t + 10, c=t + 50_000), comm="logger")
    opened = open_tables(run.write(tmp_path))
    choose(opened, Selection(), slowest_rule("4%"))
    found, others = when_slow(opened)
    assert found is not None
    assert found.period_ns == pytest.approx(500 * MS, rel=0.001)
    assert (found.inside, found.slow, found.met, found.turns) == (40, 40, 20, 20)
    (only,) = others
    assert only.what == "write requests of backup"
    assert only.share == pytest.approx(0.8, abs=0.15)
    assert only.width_ns <= 25 * MS
    text = "\n".join(when_lines(found, others))
    assert "when: every 500 ms, for" in text
    assert "in 20 of 20 such times" in text
    assert "so do write requests of backup" in text
    assert list(when_lines(None, [])) == []


@pytest.mark.parametrize("at_once", [columns.RANGE, 97])
def test_the_period_of_those_ahead_is_told_where_the_slow_ops_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """A backup writes each second for 50 ms, and a read meets it in some turns only; others are slow by themselves."""
    monkeypatch.setattr(columns, "RANGE", at_once)
    run = RunBuilder()
    random = np.random.default_rng(8)
    hit = {2, 3, 11, 12, 13, 17}
    own = set(random.choice(2000, 25, replace=False).tolist())
    for n in range(2000):
        t = 10 * MS * n + 2 * MS
        behind = n // 100 in hit and n % 100 < 5
        end = t + 100_000 + 5 * MS * (behind or n in own) + n
        run.op([P("begin", t), P("end", end)], [Rq(q=t + 10, d=t + 20, c=end - 10, kind="read")], op_class="read")
    for t in [S * n + MS * k for n in range(20) for k in range(50)]:
        longer = 6 * MS if t // S in hit else 90_000
        run.request(Rq(q=t, d=t + 10, c=t + longer, nr_sectors=2048), comm="backup")
    opened = open_tables(run.write(tmp_path))
    sets = choose(opened, Selection(), slowest_rule("55"))
    found, others = when_slow(opened)
    assert found is None
    owners = ahead_of_them(tail_blame(opened, sets))
    assert "backup" in owners
    (backup,) = rhythms(opened, owners)
    assert backup.owner == "backup"
    assert backup.bursts.period_ns == pytest.approx(S, rel=0.01)
    assert (backup.bursts.met, backup.bursts.turns) == (20, 20)
    (first, second) = when_lines(found, others, [backup])
    assert first.startswith("when: requests of backup, which they wait behind, come every")
    assert second.endswith("in 20 of 20 such times")
