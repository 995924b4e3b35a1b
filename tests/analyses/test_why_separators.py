# SPDX-License-Identifier: MIT
"""`opline why`: what separates slow ops from the others is named where it does, and nothing where nothing does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lib.build_run import P, Rq, RunBuilder

from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection
from opline_analyses.why.attributes import Attribute, attributes, numeric, valued
from opline_analyses.why.separators import Separation, phi, separate, what_separates
from opline_analyses.why.sets import choose, slowest_rule

OPS = 6000
SLOW = 60


def bursts(random: np.random.Generator) -> Any:
    """Places of slow ops that come in bursts, as in real runs."""
    places: set[int] = set()
    while len(places) < SLOW:
        at = int(random.integers(OPS - 40))
        places |= set((at + random.integers(0, 40, 6)).tolist())
    return np.array(sorted(places)[:SLOW])


def sticky(random: np.random.Generator, values: int) -> Any:
    """An attribute that keeps its value for some dozens of ops."""
    codes: list[int] = []
    while len(codes) < OPS:
        codes += [int(random.integers(values))] * int(random.integers(1, 90))
    return np.array(codes[:OPS], np.int32)


def noise(random: np.random.Generator) -> list[Attribute]:
    """Attributes that have nothing to do with being slow."""
    found = [valued(f"a{i}", f"are a{i} {{}}", sticky(random, 4), list("wxyz")) for i in range(8)]
    depth = np.abs(np.cumsum(random.normal(0, 1, OPS))).astype(np.int64)
    return [*found, numeric("depth", "meet more than {}", "meet at most {}", depth, np.ones(OPS, bool))]


def test_phi_is_pearsons_r_of_two_flags() -> None:
    random = np.random.default_rng(1)
    a, b = random.random(500) < 0.2, random.random(500) < 0.4
    found = phi(np.array([float((a & b).sum())]), np.array([float(b.sum())]), int(a.sum()), 500)
    assert found[0] == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert phi(np.array([0.0]), np.array([0.0]), 5, 10)[0] == 0.0


def test_chance_is_not_named() -> None:
    """Bursts of slow ops and sticky attributes: a test that takes ops for independent speaks nearly each time."""
    named = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        found = separate(noise(random), bursts(random), OPS)
        named += found.found is not None
        assert found.best is not None
    assert named <= 1


def test_a_cause_of_most_is_named() -> None:
    right = 0
    for seed in range(10):
        random = np.random.default_rng(100 + seed)
        slow = bursts(random)
        codes = (random.random(OPS) < 0.2).astype(np.int32)
        codes[slow[random.random(SLOW) < 0.7]] = 1
        planted = valued("device", "are on device {}", codes, ["sda", "sdb"])
        found = separate([*noise(random), planted], slow, OPS).found
        right += found is not None and found.text == "are on device sdb"
        assert found is None or found.attribute == "device"
    assert right >= 9


def test_the_same_in_other_words_is_said_with_it() -> None:
    random = np.random.default_rng(5)
    slow = bursts(random)
    codes = (random.random(OPS) < 0.1).astype(np.int32)
    codes[slow] = 1
    found = separate(
        [valued("thread", "pass {}", codes, ["x", "y"]), valued("object", "work on {}", codes, ["p", "q"])], slow, OPS
    ).found
    assert found is not None
    assert (found.text, found.same, found.slow_met, found.slow) == ("pass y", ["work on q"], SLOW, SLOW)
    assert (found.met, found.ops) == (int(codes.sum()), OPS)


def test_a_device_is_named_before_its_descriptor() -> None:
    random = np.random.default_rng(6)
    slow = bursts(random)
    codes = (random.random(OPS) < 0.1).astype(np.int32)
    codes[slow] = 1
    almost = codes.copy()
    almost[np.flatnonzero(codes == 0)[:20]] = 1  # a few more ops, so the descriptor goes better with the slow ones
    found = separate(
        [valued("object", "work on {}", codes, ["5", "6"]), valued("device", "are on {}", almost, ["sda", "sdb"])],
        slow,
        OPS,
    ).found
    assert found is not None
    assert (found.text, found.same) == ("are on sdb", ["work on 6"])


def test_what_holds_in_one_half_only_is_not_named() -> None:
    slow = np.arange(30, OPS, 100)
    codes = np.zeros(OPS, np.int32)
    codes[slow[slow < OPS // 2]] = 1
    assert separate([valued("x", "are {}", codes, ["a", "b"])], slow, OPS).found is None


def test_few_slow_ops_say_nothing() -> None:
    random = np.random.default_rng(1)
    assert separate(noise(random), np.arange(29), OPS).too_few


def recorded(slow: Any, **of_slow: Any) -> RunBuilder:
    """1200 ops of which each 40th is slow, and then called with what ``of_slow`` says of it."""
    run = RunBuilder()
    random = np.random.default_rng(7)
    for n in range(1200):
        t, is_slow = n * 200_000, slow(n)
        longer = 900_000 if is_slow else 0
        odd = of_slow if is_slow else {}
        worker = odd.get("tid", 200 + int(random.integers(3)))
        run.op(
            [
                P("begin", t, cpu=int(random.integers(4))),
                P("taken", t + 20_000, tid=worker, comm="worker"),
                P("end", t + 100_000 + longer + int(random.integers(1000)), tid=worker, comm="worker"),
            ],
            [Rq(q=t + 30_000, d=t + 31_000, c=t + 90_000 + longer, dev=odd.get("dev", (8 << 20) + n % 2))],
            obj=odd.get("obj", f"o{int(random.integers(8))}"),
            length_bytes=odd.get("length_bytes", 4096 << int(random.integers(3))),
        )
    return run


def separation(run: RunBuilder, path: Path) -> Separation:
    opened = open_tables(run.write(path))
    choose(opened, Selection(), slowest_rule("30"))
    return what_separates(opened)


@pytest.mark.parametrize(
    ("of_slow", "text"),
    [
        ({"dev": (8 << 20) + 16}, "are on device 8:16"),
        ({"obj": "o9"}, "work on object o9"),
        ({"tid": 209}, "pass thread worker:209"),
        ({"length_bytes": 65536}, "are longer than 16384 bytes"),
    ],
    ids=["device", "object", "thread", "size"],
)
def test_what_is_planted_in_a_run_is_named(of_slow: dict[str, Any], text: str, tmp_path: Path) -> None:
    found = separation(recorded(lambda n: n % 40 == 3, **of_slow), tmp_path).found
    assert found is not None
    assert text in (found.text, *found.same)
    assert (found.slow_met, found.slow, found.ops) == (30, 30, 1200)


def test_nothing_is_named_in_a_run_without_a_cause(tmp_path: Path) -> None:
    found = separation(recorded(lambda n: n % 40 == 3 + n // 500), tmp_path)
    assert found.found is None
    assert found.attributes >= 8


def test_what_a_request_meets_is_counted_by_hand(tmp_path: Path) -> None:
    """Three requests on one device and one on another, each queued while the ones before are there."""
    run = RunBuilder()
    for n, (q, c, dev, kind) in enumerate(
        [(0, 100, 1, "write"), (20, 60, 1, "write"), (40, 90, 1, "read"), (45, 80, 2, "read"), (70, 95, 1, "read")]
    ):
        run.op([P("begin", q), P("end", c + 5)], [Rq(q=q + 1, d=q + 2, c=c, dev=dev << 20, kind=kind)], obj=f"o{n}")
    opened = open_tables(run.write(tmp_path))
    choose(opened, Selection(), slowest_rule("1"))
    what_separates(opened)
    found = {a.name: a for a in attributes(opened)}

    def more(name: str) -> list[tuple[str, list[bool]]]:
        a = found[name]
        half = a.conditions[: len(a.conditions) // 2]
        return [(c.text, [c.low <= code <= c.high for code in a.codes.tolist()]) for c in half]

    assert more("queue depth met") == [
        ("meet more than 0 requests at the device", [False, True, True, False, True]),
        ("meet more than 1 requests at the device", [False, False, True, False, True]),
    ]
    assert more("writes met") == [
        ("meet more than 0 write requests at the device", [False, True, True, False, True]),
        ("meet more than 1 write requests at the device", [False, False, True, False, False]),
    ]
    assert more("ops in flight") == [
        ("begin with more than 0 others in flight", [False, True, True, True, True]),
        ("begin with more than 1 others in flight", [False, False, True, True, True]),
        ("begin with more than 2 others in flight", [False, False, False, True, True]),
    ]
