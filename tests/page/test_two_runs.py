# SPDX-License-Identifier: MIT
"""The page of two runs in a real browser: the same axes for both, and the heat map of the difference.

Skipped where no Chromium is installed: `./check --browser` installs Debian's chromium-headless-shell.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.browser import PROGRAM, Page
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import hostile_run
from tests.page.test_report_page import page_sums, stage_sums

from opline.talk import shown

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: ./check --browser installs it")


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


def test_two_runs_stand_on_the_same_axes(tmp_path: Path, demo: Correlated, opened: Callable[..., Page]) -> None:
    other = hostile_run(tmp_path / "other")
    page = opened(demo.path, against=other)
    assert page.ask("opline.page.heats.map(h => h.bins.sum + h.bins.over + h.bins.under)") == [
        len(demo.rows("ops")),
        40,
    ]
    axes = page.ask("opline.page.heats.map(h => [h.axis, h.time])")
    assert axes[0] == axes[1]
    both = page.ask(
        "[...document.querySelectorAll('#stages tbody tr')].map(r => [r.dataset.stage, r.dataset.rest, r.dataset.sum])"
    )
    for column, run in ((1, demo.path), (2, other)):
        expected = {shown(name): total for name, total in stage_sums(run, "true")[2].items()}
        assert {row[0]: int(row[column]) for row in both if row[column] != "0"} == expected
    assert "block requests per op" in page.ask("document.getElementById('comparison-text').textContent")
    page.press("r")
    assert page_sums(page)[0] == 40
    page.press("j")
    assert page.ask("opline.page.runs[1].opIds[opline.page.open]") == 39


def test_the_difference_of_two_runs(demo: Correlated, opened: Callable[..., Page], run_of: RunOf) -> None:
    """Cells sum to the difference of the ops, the colour says which run has more, a click marks the cell's ops."""
    other = run_of("demo-kernel")
    page = opened(demo.path, against=other.path)
    ops = [sum(bool(row["complete"]) for row in run.rows("ops")) for run in (demo, other)]
    held = page.ask("(({ cells, before, after }) => [cells, before.drawn, after.drawn])(opline.page.difference.bins)")
    assert held[1:] == ops and sum(held[0].values()) == ops[1] - ops[0]
    grids = page.ask("opline.page.heats.map(h => [h.bins.columns, h.bins.rows])")
    assert grids[0] == grids[1]
    box = page.ask("opline.page.heats[0].box")
    columns, rows = page.ask("[opline.page.difference.bins.columns, opline.page.difference.bins.rows]")
    page.ask("document.querySelector('#difference canvas').scrollIntoView()")
    pixels = []
    for at in (min(held[0], key=lambda k: held[0][k]), max(held[0], key=lambda k: held[0][k])):
        x = box["x"] + (int(at) // rows + 0.5) * box["width"] / columns
        y = box["y"] + box["height"] - (int(at) % rows + 0.5) * box["height"] / rows
        pixels.append(4 * (round(y) * page.ask("document.querySelector('#difference canvas').width") + round(x)))
        left, top = page.ask(
            "(r => [r.left, r.top])(document.querySelector('#difference canvas').getBoundingClientRect())"
        )
        page.mouse("mouseMoved", left + x, top + y)
        told = page.ask("document.getElementById('hover').textContent")
        page.mouse("mousePressed", left + x, top + y, 1)
        page.mouse("mouseReleased", left + x, top + y)
        page.frame()
        counts = [int(n) for n in re.findall(r"(\d+)(?: ops)? in", re.sub(r"[\u2009\u202f]", "", told))]
        assert counts[1] - counts[0] == held[0][at]
        more = int(held[0][at] > 0)
        assert page.ask("[opline.state.run, opline.stats().selected]") == [more, counts[more]]
    canvas = "document.querySelector('#difference canvas')"
    drawn = f"{canvas}.getContext('2d').getImageData(0, 0, {canvas}.width, {canvas}.height).data"
    (red, blue), (red2, blue2) = page.ask(f"(d => {pixels}.map(p => [d[p], d[p + 2]]))({drawn})")
    assert blue > red and red2 > blue2


def test_another_run_has_no_open_op_that_nobody_chose(
    demo: Correlated, opened: Callable[..., Page], run_of: RunOf
) -> None:
    page = opened(demo.path, against=run_of("demo-kernel").path)
    page.press("j")
    assert page.ask("[opline.state.run, opline.state.op !== null, opline.page.open !== null]") == [0, True, True]
    page.ask("[...document.querySelectorAll('button')].filter(b => b.textContent === 'mark these ops')[1].click()")
    nothing = "[opline.state.run, opline.state.op, opline.page.open, opline.page.list.opened]"
    assert page.ask(nothing) == [1, None, None, None]
    assert page.ask("document.querySelector('.oprow[aria-selected=true]')") is None
    page.press("j")
    assert page.ask("opline.state.op !== null")
    page.ask("opline.update({ region: null, run: 0 })")  # as a click on nothing in the other run's picture
    assert page.ask(nothing) == [0, None, None, None]
