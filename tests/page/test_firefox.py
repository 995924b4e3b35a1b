# SPDX-License-Identifier: MIT
"""The page in Firefox: the same numbers as in the run, a region, an op, names that are no markup, nothing on the
console. Skipped where there is none (Debian: firefox-esr).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lib.firefox import PROGRAM, Firefox
from tests.lib.recorded import RunOf
from tests.page.test_report import hostile_run

from opline_analyses.base.colours import STATES
from opline_analyses.cli import main
from opline_analyses.report import data

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Firefox here: apt install firefox-esr")


@pytest.fixture(scope="module")
def firefox() -> Iterator[Firefox]:
    with Firefox() as running:
        yield running


@pytest.mark.parametrize("held", ["full", "rounded"])
def test_its_numbers_are_the_runs(
    held: str, firefox: Firefox, run_of: RunOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if held == "rounded":
        monkeypatch.setattr(data, "FULL_ROWS", 0)
    run = run_of("demo-qd4")
    assert main(["report", str(run.path), "-o", str(tmp_path / "page.html")]) == 0
    ops = [r for r in run.rows("ops") if r["complete"]]
    firefox.open(tmp_path / "page.html")
    stats = firefox.ask("opline.stats()")
    assert stats["sum"] + stats["over"] + stats["under"] == stats["selected"] == len(ops)
    assert stats["sums"]["latency"] == str(sum(r["latency_ns"] for r in ops))
    assert firefox.ask("opline.page.runs[0].full") is (held == "full")
    # a region: as the page has widened it
    first = run.core["first_ns"]
    span = firefox.ask("opline.page.runs[0].head.span_ns")
    begin = run.first_op_ns
    part = f"{begin + (span - begin) // 4}, {begin + (span - begin) // 2}"
    region = firefox.ask(
        f"(opline.update({{ region: opline.page.runs[0].snapped([{part}, 0, 9007199254740991]) }}), "
        "opline.stats().region)"
    )
    inside = [r for r in ops if region[0] <= r["begin_ns"] - first < region[1]]
    stats = firefox.ask("opline.stats()")
    assert stats["selected"] == len(inside) > 100
    assert stats["sums"]["latency"] == str(sum(r["latency_ns"] for r in inside))
    # the slowest of them, by its key
    firefox.press("j")
    slowest = max(inside, key=lambda r: r["latency_ns"])
    note = re.sub(r"[\u2009\u202f]", "", firefox.ask("document.getElementById('op-note').textContent"))
    assert note.startswith(f"op {slowest['op_id']} ")
    assert re.sub(r"\D", "", note.split(" unattributed = ")[1].split("ns")[0]) == str(slowest["latency_ns"])
    assert firefox.ask("document.querySelectorAll('#waterfall rect').length") > 10
    assert firefox.errors == []


def test_the_difference_of_two_runs(firefox: Firefox, run_of: RunOf, tmp_path: Path) -> None:
    runs = [run_of("demo-qd4"), run_of("demo-kernel")]
    assert main(["report", *(str(run.path) for run in runs), "-o", str(tmp_path / "page.html")]) == 0
    firefox.open(tmp_path / "page.html")
    ops = [sum(bool(row["complete"]) for row in run.rows("ops")) for run in runs]
    assert firefox.ask("opline.page.difference.bins.cells.reduce((a, b) => a + b, 0)") == ops[1] - ops[0]
    assert firefox.errors == []


def test_names_are_text(firefox: Firefox, tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "<b>run")
    assert main(["report", str(run), "-o", str(tmp_path / "page.html")]) == 0
    firefox.open(tmp_path / "page.html")
    assert firefox.ask("document.querySelectorAll('img, b.run, iframe').length") == 0
    assert "<b>run" in firefox.ask("document.title")
    assert firefox.errors == []


def test_what_threads_did_is_drawn(firefox: Firefox, run_of: RunOf, tmp_path: Path) -> None:
    run = run_of("demo-kernel")
    assert main(["report", str(run.path), "-o", str(tmp_path / "page.html")]) == 0
    firefox.open(tmp_path / "page.html")
    firefox.press("j")
    op = firefox.ask("opline.state.op")
    drawn = firefox.ask(
        "[...document.querySelectorAll('#waterfall g.states [data-ns]')].map(r => `${r.dataset.state} ${r.dataset.ns}`)"
    )
    expected = [f"{STATES[r['state'] + '_ns'][0]} {r['duration_ns']}" for r in run.rows("states") if r["op_id"] == op]
    assert len(expected) > 20
    assert sorted(drawn) == sorted(expected)
