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


def one_of_40(n: int) -> bool:
    """Not each 40th: shifted by 40 that would be the same."""
    return n % 40 == n // 40 * 7 % 30


def recorded(slow: Any, **of_slow: Any) -> RunBuilder:
    """1200 ops of which some are slow, and then called with what ``of_slow`` says of it."""
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
    found = separation(recorded(one_of_40, **of_slow), tmp_path).found
    assert found is not None
    assert text in (found.text, *found.same)
    assert (found.slow_met, found.slow, found.ops) == (30, 30, 1200)


def test_a_queue_is_a_reason_of_the_device_it_is_at(tmp_path: Path) -> None:
    """Of four devices one is slow, and requests queue there: those that meet most are slowest."""
    run = RunBuilder()
    random = np.random.default_rng(2)
    free = 0
    for n in range(4000):
        t, dev = n * 100_000 + int(random.integers(50_000)), int(random.integers(4))
        free = max(free, t) + 250_000 if dev == 0 else free
        end = free if dev == 0 else t + 50_000
        run.op(
            [P("begin", t), P("end", end + 100)], [Rq(q=t + 1, d=t + 2, c=end, dev=(8 << 20) + dev)], obj=f"o{n % 7}"
        )
    opened = open_tables(run.write(tmp_path))
    choose(opened, Selection(), slowest_rule("200"))
    found = what_separates(opened).found
    assert found is not None
    assert found.text == "are on device 8:0"
    assert found.above_all is not None
    assert found.above_all.startswith("meet more than ")


def test_nothing_is_named_in_a_run_without_a_cause(tmp_path: Path) -> None:
    found = separation(recorded(lambda n: n % 40 == 3 + n // 500), tmp_path)
    assert found.found is None
    assert found.attributes >= 8


def test_what_a_request_meets_is_counted_by_hand(tmp_path: Path) -> None:
    """Three requests on one device and one on another, each queued while the ones before are there; and a slow op."""
    run = RunBuilder()
    for n, (q, c, dev, kind) in enumerate(
        [(0, 100, 1, "write"), (20, 60, 1, "write"), (40, 90, 1, "read"), (45, 80, 2, "read"), (70, 95, 1, "read"),
         (200, 400, 3, "read")]
    ):  # fmt: skip
        run.op([P("begin", q), P("end", c + 5)], [Rq(q=q + 1, d=q + 2, c=c, dev=dev << 20, kind=kind)], obj=f"o{n}")
    opened = open_tables(run.write(tmp_path))

    def more(name: str, slowest: str) -> list[tuple[str, list[int]]]:
        """The conditions of an attribute, and the ops that meet them."""
        choose(opened, Selection(), slowest_rule(slowest))
        what_separates(opened)
        (a,) = (a for a in attributes(opened) if a.name == name)
        return [
            (c.text, [n for n, code in enumerate(a.codes.tolist()) if c.low <= code <= c.high]) for c in a.conditions
        ]

    assert more("queue depth met", "1") == [
        ("meet more than 0 requests at the device", [1, 2, 4]),
        ("meet more than 1 requests at the device", [2, 4]),
    ]
    assert more("writes met", "1") == [
        ("meet more than 0 write requests at the device", [1, 2, 4]),
        ("meet more than 1 write requests at the device", [2]),
    ]
    # the first op is slow as well: what holds it up may hold up those that meet it
    assert more("queue depth met", "2") == [("meet more than 0 requests at the device", [2, 4])]
    assert more("arrivals", "1")[0] == ("begin with more than 0 others begun in the 45 ns before", [1, 2, 3, 4])


def staggered(width: int) -> RunBuilder:
    """1200 ops, each 40th of them 2 ms longer than the 200 us between two begins; ``width`` at a time."""
    run = RunBuilder()
    ends = [0] * width
    random = np.random.default_rng(5)
    for n in range(1200):
        slot = n % width
        t = ends[slot] + 1000 if width == 1 else n * 200_000
        ends[slot] = t + 100_000 + (2_000_000 if n % 40 == 3 else 0) + int(random.integers(1000))
        run.op([P("begin", t), P("end", ends[slot])])
    return run


def test_what_a_slow_op_leaves_in_flight_is_no_reason(tmp_path: Path) -> None:
    """Ops that begin on time while a slow one is there, and a loop in which a begin is the last op's end."""
    for name, run, has in (("paced", staggered(40), True), ("loop", staggered(1), False)):
        opened = open_tables(run.write(tmp_path / name))
        choose(opened, Selection(), slowest_rule("30"))
        found = what_separates(opened)
        assert found.found is None
        arrivals = [a for a in attributes(opened) if a.name == "arrivals"]
        assert (bool(arrivals), [a.conditions for a in arrivals if a.conditions]) == (has, [])


def test_ops_that_come_at_once_are_named(tmp_path: Path) -> None:
    """Now and then five begin together, and the last of them wait for the first."""
    run = RunBuilder()
    random = np.random.default_rng(6)
    together = set(random.choice(240, 30, replace=False).tolist())
    for n in range(1200):
        place = n % 5 if n // 5 in together else 0
        t = n * 200_000 - place * 199_000
        run.op([P("begin", t), P("end", t + 100_000 + (150_000 + n) * (place > 2))])
    opened = open_tables(run.write(tmp_path))
    choose(opened, Selection(), slowest_rule("60"))
    found = what_separates(opened).found
    assert found is not None
    assert found.text.startswith("begin with more than 2 others begun in the ")
    assert (found.slow_met, found.slow) == (60, 60)
