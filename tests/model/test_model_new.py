# SPDX-License-Identifier: MIT
"""`opline model new`: a model from what a program offers, which can be recorded with as it is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from opline.capture.probes.template import pairs
from opline.model import check_text

SOURCES = Path(__file__).parents[1] / "probed_app"
COUNT = 37

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("probed") / "probed"
    argv = ["gcc", "-O1", f"-I{SOURCES}", "-o", str(binary), f"{SOURCES}/probed.c", "-llttng-ust", "-ldl"]
    subprocess.run(argv, check=True, timeout=120)
    return binary


def test_pairs_are_found_by_the_words_at_their_ends() -> None:
    names = ["a:query__start", "a:query__done", "a:query__parse__start", "a:query__parse__done", "a:restart", "a:done"]
    assert pairs(names) == [("a:query__start", "a:query__done"), ("a:query__parse__start", "a:query__parse__done")]
    assert pairs(["m:io_enter_fn", "m:io_exit_fn", "m:begin"]) == [("m:io_enter_fn", "m:io_exit_fn")]
    assert pairs(["m:begin", "x:end"]) == []


def test_the_template_names_all_that_the_program_offers(probed: Path, opline: Run) -> None:
    done = opline("model", "new", probed)
    assert done.returncode == 0, done.stderr
    model, problems = check_text(done.stdout, "new", "new.toml")
    assert [p for p in problems if p.severity == "error"] == []
    assert {rule.events[0] for rule in model.rules} == {"twin:start", "twin:finish"}
    for name in ("twin:submit", "probed:submit", "probed:start", "probed:finish"):
        assert name in done.stdout
    assert all(len(line) <= 120 for line in done.stdout.splitlines())


def test_a_program_that_offers_nothing_is_said(tmp_path: Path, opline: Run) -> None:
    plain = tmp_path / "plain"
    subprocess.run(["gcc", "-x", "c", "-", "-o", plain], input="int main(void) { return 0; }", text=True, check=True)
    done = opline("model", "new", plain)
    assert done.returncode == 1 and done.stdout == "" and "has no USDT probes and no LTTng tracepoints" in done.stderr


@pytest.mark.live
def test_recording_with_the_template_gives_ops(probed: Path, opline: Run, tmp_path: Path) -> None:
    """With the USDT probes alone: the tracepoints are taken out of the text."""
    text = opline("model", "new", probed).stdout.replace("twin:", "probed:").replace('# "probed:', '"probed:')
    model = tmp_path / "new.toml"
    model.write_text(text)
    done = opline("record", "-o", tmp_path / "run", "--model", model, "--no-block", "--", probed, COUNT)
    assert done.returncode == 0, done.stderr
    query = "SELECT class, count(*) AS n FROM ops WHERE complete GROUP BY class"
    (row,) = json.loads(opline("sql", tmp_path / "run", query, "--json").stdout)
    assert row == {"class": "twin", "n": 2 * COUNT}
