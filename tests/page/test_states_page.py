# SPDX-License-Identifier: MIT
"""When an op's threads ran, waited for a CPU or were blocked: the strips of its waterfall against the table states."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.browser import PROGRAM, Page
from tests.lib.recorded import RunOf
from tests.page.test_report import hostile_run

from opline_analyses.base.colours import STATES, STATES_UNKNOWN

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: ./check --browser installs it")


def test_what_a_thread_did_in_each_stage(run_of: RunOf, opened: Callable[..., Page]) -> None:
    """In an op's strips, one after the other, and its table; what is not known is drawn as unknown."""
    run = run_of("demo-kernel")
    half_known = {r["op_id"] for r in run.rows("stages") if r["on_cpu_ns"] is None}
    complete = {r["op_id"] for r in run.rows("ops") if r["complete"]}
    for op in (min(half_known & complete), max(complete - half_known)):
        page = opened(run.path, f"#op={op}")
        page.wait(f"document.getElementById('op-note').textContent.startsWith('op {op} ')")
        drawn = page.ask(
            """[...document.querySelectorAll('#waterfall g.states')].map(g => [...g.querySelectorAll('rect')].map(
                r => [r.dataset.state, ...['ns', 'at'].map(
                    k => r.dataset[k] === undefined ? null : Number(r.dataset[k]))]))"""
        )
        rows = sorted((r for r in run.rows("stages") if r["op_id"] == op), key=lambda r: r["seq"])
        expected = [
            [["unknown", None, None]]
            if r["on_cpu_ns"] is None
            else [
                [STATES[f"{p['state']}_ns"][0], p["duration_ns"], p["begin_ns"] - r["begin_ns"]]
                for p in sorted(run.rows("states"), key=lambda p: int(p["begin_ns"]))
                if (p["op_id"], p["seq"]) == (op, r["seq"])
            ]
            for r in rows
        ]
        assert sorted(drawn, key=str) == sorted(expected, key=str)
        assert any(len(parts) > 1 for parts in expected)
        assert page.ask("document.querySelector('.stateslegend').textContent").startswith("strip below a stage")
        cells = page.ask("[...document.querySelectorAll('#op-table tbody tr')].map(r => r.lastChild.textContent)")
        assert [text == STATES_UNKNOWN for text in cells] == [r["on_cpu_ns"] is None for r in rows]


def test_of_a_run_that_has_sums_alone_the_strip_says_so(
    run_of: RunOf, tmp_path: Path, opened: Callable[..., Page]
) -> None:
    """An older opline wrote no table of the states."""
    run = run_of("demo-kernel")
    shutil.copytree(run.path, tmp_path / "run")
    (tmp_path / "run" / "states.parquet").unlink()
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    del manifest["checksums"]["states.parquet"]
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    stages = [s for s in run.rows("stages") if s["on_cpu_ns"] is not None]
    several = [s for s in stages if sum(bool(s[name]) for name in STATES) > 1]
    op = next(o["op_id"] for o in run.rows("ops") if o["complete"] and any(s["op_id"] == o["op_id"] for s in several))
    page = opened(tmp_path / "run", f"#op={op}")
    page.wait(f"document.getElementById('op-note').textContent.startsWith('op {op} ')")
    drawn = page.ask("[...document.querySelectorAll('#waterfall g.states .untimed')].map(r => Number(r.dataset.ns))")
    assert sorted(drawn) == sorted(s[n] for s in several if s["op_id"] == op for n in STATES if s[n])
    assert "paler: how long, not when" in page.ask("document.querySelector('.stateslegend').textContent")


def test_a_run_without_states_has_no_strip(tmp_path: Path, opened: Callable[..., Page]) -> None:
    page = opened(hostile_run(tmp_path / "run"), "#op=1")
    page.wait("document.getElementById('op-note').textContent.startsWith('op 1 ')")
    assert page.ask("document.querySelectorAll('#waterfall g.states, .stateslegend').length") == 0
