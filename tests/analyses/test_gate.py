# SPDX-License-Identifier: MIT
"""`opline compare --fail-if`: a planted regression fails, noise does not, too few runs are refused."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.analyses.test_compare import built, figures, side

from opline.errors import UsageError
from opline_analyses.cli import main
from opline_analyses.compare import gate
from opline_analyses.compare.figures import Figures, baseline_text
from opline_analyses.compare.verdicts import difference


@pytest.mark.parametrize(
    ("text", "figure", "stage", "above", "limit"),
    [
        ("p99(D2C) > +5 %", "p99", "D2C", True, 0.05),
        ("mean>10%", "mean", "latency", True, 0.10),
        (" p99.9 ( shard queue ) > 0 %", "p99.9", "shard queue", True, 0.0),
        ("p50(a → b (x)) > +2.5%", "p50", "a → b (x)", True, 0.025),
        ("iops < -5 %", "iops", "latency", False, -0.05),
        ("mean(latency) < - 20 %", "mean", "latency", False, -0.20),
    ],
)
def test_conditions(text: str, figure: str, stage: str, above: bool, limit: float) -> None:
    c = gate.parse(text)
    assert (c.figure, c.stage, c.above) == (figure, stage, above)
    assert c.limit == pytest.approx(math.log1p(limit))


@pytest.mark.parametrize(
    "text",
    ["", "p99", "p99 > 5", "p99(D2C) = 5 %", "p100 > 5 %", "max > 5 %", "p99 > -5 %", "iops < 5 %", "iops < -100 %",
     "iops(D2C) < -5 %"],
)  # fmt: skip
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(UsageError, match="--fail-if"):
        gate.parse(text)


def outcomes(conditions: list[str], a: list[Figures], b: list[Figures]) -> list[str]:
    return [f.outcome for f in gate.judge([gate.parse(c) for c in conditions], a, b)]


def test_a_regression_fails_and_what_it_does_not_touch_passes() -> None:
    random.seed(1)
    a, b = side(5), side(5, {"queue": 1.5})
    conditions = ["p50(queue) > +20 %", "mean(queue) > +80 %", "p50(reply) > +20 %", "mean > +5 %", "iops < -5 %"]
    assert outcomes(conditions, a, b) == ["fail", "pass", "pass", "fail", "fail"]
    assert outcomes(conditions, b, a) == ["pass"] * 5
    assert outcomes(["mean(queue) < -20 %"], b, a) == ["fail"]


def test_noise_is_undecided_and_fails_nobody() -> None:
    random.seed(2)
    found = [outcomes(["p50 > +5 %"], side(5, wild=0.3), side(5, wild=0.3))[0] for _ in range(60)]
    assert found.count("fail") <= 3  # 2.5 % at a true growth of 5 %, fewer at none
    assert found.count("undecided") > 40


def test_a_growth_of_the_limit_itself_seldom_fails() -> None:
    random.seed(3)
    limit = math.log1p(0.10)
    failed = 0
    for _ in range(400):
        a, b = ([math.exp(random.gauss(mean, 0.05)) for _ in range(5)] for mean in (0.0, limit))
        d = difference(a, b)
        assert d
        p = d.p_beyond(limit, above=True)
        failed += p is not None and p <= gate.LEVEL
    assert failed <= 20  # 2.5 % of 400 is 10


def test_conditions_are_corrected_for_their_number() -> None:
    random.seed(4)
    a, b = side(5, wild=0.02), side(5, {"queue": 1.06}, wild=0.02)
    alone = gate.judge([gate.parse("mean(queue) > 0 %")], a, b)[0]
    among = gate.judge([gate.parse(t) for t in ("mean(queue) > 0 %", *["mean(reply) > +50 %"] * 9)], a, b)[0]
    assert among.p == pytest.approx(10 * alone.p)


def test_too_few_runs_are_refused_and_a_history_will_do() -> None:
    random.seed(5)
    for n, m in ((4, 5), (5, 4), (15, 1), (1, 16)):
        with pytest.raises(UsageError, match=f"here are {n} of A and {m} of B"):
            outcomes(["mean > +5 %"], side(n), side(m))
    history = side(16, wild=0.02)
    assert outcomes(["p50(queue) > +5 %"], history, side(1, {"queue": 2.0})) == ["fail"]
    assert outcomes(["p50(queue) > +50 %"], history, side(1)) == ["pass"]
    with pytest.raises(UsageError, match="p99 takes 5 runs"):
        outcomes(["p99 > +5 %"], history, side(1))


def test_a_stage_that_is_not_there_is_named_with_those_that_are() -> None:
    random.seed(6)
    with pytest.raises(UsageError, match=r"no run has the stage\. Stages: latency, queue, lookup"):
        outcomes(["p50(d2c) > +5 %"], side(5), side(5))


def test_junit_is_xml_with_an_outcome_for_each_condition() -> None:
    random.seed(7)
    name = "a\x1b[31m<&> → b"
    a, b = side(5, wild=0.2), side(5, {"queue": 2.0}, wild=0.2)
    renamed = [Figures(**{**vars(f), "stages": {**f.stages, name: f.stages["queue"]}}) for f in (*a, *b)]
    conditions = [gate.parse(t) for t in (f"mean({name}) > +5 %", "p50(reply) > +5 %", "p50(send) > +90 %")]
    found = gate.judge(conditions, renamed[:5], renamed[5:])
    assert [f.outcome for f in found] == ["fail", "undecided", "pass"]
    for undecided, skipped in (("warn", 1), ("fail", 0)):
        suites = ElementTree.fromstring(gate.junit(found, undecided))
        suite = suites.find("testsuite")
        assert suite is not None
        assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == (
            "3",
            str(2 - skipped),
            str(skipped),
        )
        cases = suite.findall("testcase")
        assert cases[0].get("name") == "mean(a?[31m<&> → b) > +5 %"
        assert [[child.tag for child in case] for case in cases] == [
            ["failure"], ["skipped" if skipped else "failure"], ["system-out"],
        ]  # fmt: skip


@pytest.fixture(scope="module")
def baselines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Five runs, and five whose stage queue takes twice as long."""
    folder = tmp_path_factory.mktemp("baselines")
    random.seed(8)
    for name, scale in (("a", 1.0), ("b", 2.0)):
        runs = [figures(f"{name}{n}", {"queue": scale}, wild=0.05) for n in range(5)]
        (folder / name).write_text(baseline_text(runs))
    return folder / "a", folder / "b"


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--fail-if", "p50(queue) > +20 %"], 4, "fail: p50(queue) > +20 %: "),
        (["--fail-if", "p50(queue) > +20 %", "--undecided", "pass"], 4, "fail: p50(queue) > +20 %: "),
        (["--fail-if", "p50(reply) > +90 %"], 0, ""),
        (["--fail-if", "mean(queue) > +80 %"], 0, "undecided: mean(queue) > +80 %: "),
        (["--fail-if", "mean(queue) > +80 %", "--undecided", "fail"], 5, "undecided: mean(queue) > +80 %: "),
        (["--fail-if", "mean(queue) > +80 %", "--undecided", "pass"], 0, ""),
        (["--fail-if", "p95 > +1 %"], 1, "its figures have no p95"),
        (["--fail-if", "nonsense"], 2, "--fail-if nonsense: a condition is"),
        (["--junit", "out.xml"], 2, "none is given"),
    ],
)
def test_exit_statuses(
    options: list[str], status: int, said: str, baselines: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, baselines), *options]) == status
    err = capfd.readouterr().err
    assert said in err and err.count("\n") == bool(said)


def test_what_it_writes(baselines: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", *map(str, baselines), "--fail-if", "p50(queue) > +20 %", "--fail-if", "mean(send) > +90 %"]
    assert main([*arguments, "--junit", str(tmp_path / "out.xml")]) == 4
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["fail", "pass"]
    assert ElementTree.parse(tmp_path / "out.xml").getroot().get("failures") == "1"
    assert main([*arguments, "--json"]) == 4
    found = json.loads(capfd.readouterr().out)["conditions"]
    assert [(c["condition"], c["outcome"]) for c in found] == [
        ("p50(queue) > +20 %", "fail"), ("mean(send) > +90 %", "pass"),
    ]  # fmt: skip
    assert found[0]["ratio"] == pytest.approx(2.0, rel=0.2) and found[0]["p"] < 0.025


def test_any_percentile_of_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """From their distributions, of runs as of a baseline."""
    runs = [str(built(n, 30_000 * (n >= 5)).write(tmp_path / f"r{n}")) for n in range(10)]
    assert main(["compare", *runs[:5], "--save", str(tmp_path / "base")]) == 0
    conditions = ["--fail-if", "p95(queue) > +100 %", "--fail-if", "p95(queue) > +200 %"]
    assert main(["compare", str(tmp_path / "base"), "--", *runs[5:], *conditions]) == 4
    assert [line.split()[0] for line in capfd.readouterr().out.splitlines()[-2:]] == ["fail", "pass"]
