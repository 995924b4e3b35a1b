# SPDX-License-Identifier: MIT
"""`--probe-budget`: a probe whose hits cost more than they may is removed and said, the others go on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opline.capture.probes.budget import Budget

SOURCE = Path(__file__).parents[1] / "probed_app" / "hot.c"
MODEL = """
[probes]
program = "hot"
"app:hot" = { function = "hot" }
"app:cold" = { function = "cold" }
[points]
cold = { event = "app:cold", role = "begin", thread = "switch" }
hot = { event = "app:hot", optional = true, role = "end", thread = "leave" }
"""
SECOND = 1_000_000_000

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_the_dearest_goes_until_the_rest_is_within_the_budget() -> None:
    budget = Budget(0.02, ["a", "b", "b", "c"], [1000, 1000, 2000, 0], 0)
    assert budget.look(SECOND, [10_000, 0, 5_000, 999_999]) == [], "exactly 2 %, and what costs nothing"
    assert budget.look(2 * SECOND, [20_001, 0, 10_000, 0]) == ["a"], "10.001 ms and 10 ms: one of them is enough"
    assert budget.look(3 * SECOND, [90_000, 1_000, 20_000, 0]) == ["b"], "both programs of b; a is gone already"
    assert [(r.event, r.hits_per_s, r.at_ns) for r in budget.refused] == [
        ("a", 10_001, 2 * SECOND),
        ("b", 11_000, 3 * SECOND),
    ]
    assert budget.refused[1].share == pytest.approx(0.021)
    assert budget.look(3 * SECOND, [0, 0, 0, 0]) == [], "no time has passed"


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("hot") / "hot"
    subprocess.run(["gcc", "-O1", "-rdynamic", "-o", binary, SOURCE], check=True, timeout=60)
    return binary


def _record(opline: Run, where: Path, hot: Path, *more: str) -> tuple[dict[str, Any], str]:
    model = where / "hot.toml"
    model.write_text(MODEL)
    done = opline("record", "-o", where / "run", "--model", model, "--no-block", *more, "--", hot, "2")
    assert done.returncode == 0, done.stderr
    return json.loads((where / "run" / "recording.json").read_text()), done.stderr


@pytest.mark.live
def test_too_hot_a_probe_is_removed_and_said_and_the_others_are_whole(hot: Path, opline: Run, tmp_path: Path) -> None:
    document, said = _record(opline, tmp_path, hot, "--probe-budget", "2%")
    probes = document["probes"]
    (refused,) = probes["refused"]
    assert refused["event"] == "app:hot" and refused["share"] > 0.02
    assert probes["sent"]["app:cold"] == int((tmp_path / "run" / "stdout.txt").read_text())
    assert "probe app:hot refused" in said and "too hot for --probe-budget" in said
    (gap,) = document["gaps"]
    assert (gap["loss"], gap["from_ns"]) == ("probes_refused", refused["at_ns"])
    begin = document["command"]["begin_monotonic_ns"]
    assert 0 < refused["at_ns"] - begin < 2 * SECOND, "while it ran"
    losses = opline("losses", tmp_path / "run").stdout
    assert "probes_refused" in losses


@pytest.mark.live
def test_without_a_budget_nothing_is_removed(hot: Path, opline: Run, tmp_path: Path) -> None:
    document, said = _record(opline, tmp_path, hot)
    assert document["probes"]["refused"] == [] and "refused" not in said
    probes = document["probes"]
    assert 0 < probes["entry_ns"] < probes["stepped_ns"]
    hit_ns = [one["hit_ns"] for one in probes["measured"]]
    assert hit_ns == sorted(hit_ns) and hit_ns[0] == probes["entry_ns"] < hit_ns[-1], "empty caches make it dear"
    assert probes["own_ns"] > 0 and hit_ns[0] <= probes["hit_ns"] <= hit_ns[-1]
    assert f"about {probes['hit_ns']:,} ns each: " in said


@pytest.mark.live
def test_of_what_runs_already_it_is_removed_before_the_recording_begins(hot: Path, opline: Run, tmp_path: Path) -> None:
    model = tmp_path / "hot.toml"
    model.write_text(MODEL)
    with subprocess.Popen([hot, "60"], stdout=subprocess.DEVNULL) as running:
        run = tmp_path / "run"
        limits = ("--probe-budget", "2%", "--duration", "1")
        done = opline("record", "-o", run, "--model", model, "--no-block", *limits, "--pid", str(running.pid))
        running.kill()
    assert done.returncode == 0, done.stderr
    document = json.loads((run / "recording.json").read_text())
    (refused,) = document["probes"]["refused"]
    assert refused["event"] == "app:hot" and refused["at_ns"] < document["command"]["begin_monotonic_ns"]
    assert document["gaps"] == [] and "probe app:hot refused" in done.stderr


@pytest.mark.parametrize("value", ["2", "0%", "x%", "-1%"])
def test_a_budget_is_a_share(value: str, opline: Run, tmp_path: Path) -> None:
    done = opline("record", "-o", tmp_path / "run", f"--probe-budget={value}", "--model", "postgresql", "--", "true")
    assert done.returncode == 2 and "a share of one processor's time is wanted" in done.stderr


def test_a_budget_is_for_a_models_probes(opline: Run, tmp_path: Path) -> None:
    done = opline("record", "-o", tmp_path / "run", "--probe-budget", "2%", "--model", "syscalls", "--", "true")
    assert done.returncode == 2 and "needs a model with [probes]" in done.stderr and not (tmp_path / "run").exists()
