# SPDX-License-Identifier: MIT
"""The page's search, sorting, commands, CSV and the zoom of one op, in a real browser.

Skipped where no Chromium is installed: `./check --browser` installs Debian's chromium-headless-shell.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.browser import PROGRAM, Page
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import hostile_run

from opline_analyses.base.colours import HUES
from opline_analyses.cli import main

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: ./check --browser installs it")
LISTED = "[...document.querySelectorAll('#list-rows .oprow')].map(r => Number(r.dataset.op))"


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


def search(page: Page, text: str) -> list[str]:
    """Types into the search field; what is offered."""
    page.ask(
        f"""(() => {{ const field = document.getElementById('search'); field.focus(); field.value = {json.dumps(text)};
            field.dispatchEvent(new Event('input')); return 1; }})()"""
    )
    return list(page.ask("[...document.querySelectorAll('#found button')].map(b => b.textContent)"))


def test_search_finds_ops_stages_and_names(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path)
    page.press("/")
    assert page.ask("document.activeElement.id") == "search"
    assert search(page, "818")[0] == "op 818"
    page.press("Enter")
    assert page.ask("opline.state.op") == 818
    assert "stage shard queue" in search(page, "shard")
    page.ask("[...document.querySelectorAll('#found button')].find(b => b.textContent === 'stage shard queue').click()")
    assert page.ask("opline.page.runs[0].head.stages[opline.state.value].name") == "shard queue"
    assert page.ask("document.getElementById('search').value") == ""
    assert search(page, "write")[0] == "class write"
    page.press("Enter")
    writes = sum(row["class"] == "write" for row in demo.rows("ops"))
    assert 0 < writes < len(demo.rows("ops"))
    assert page.ask("opline.page.runs[0].visibleCount") == writes
    assert search(page, "no such name") == []
    assert "Nothing" in page.ask("document.getElementById('found').textContent")
    page.press("Escape")
    assert page.ask("document.getElementById('found').hidden")
    assert search(page, "999999999") == ["op 999999999"]
    page.press("Enter")
    page.wait("document.getElementById('said').textContent.includes('no op 999999999')")


def test_headings_sort(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path)
    ops = demo.rows("ops")
    slowest = [row["op_id"] for row in sorted(ops, key=lambda row: (-row["latency_ns"], row["op_id"]))]
    shown = page.ask(LISTED)
    assert shown == slowest[: len(shown)]
    click = "document.querySelector('[data-sort={}]').click()"
    page.ask(click.format("begin"))
    shown = page.ask(LISTED)
    assert shown == [row["op_id"] for row in sorted(ops, key=lambda row: row["begin_ns"])][: len(shown)]
    page.ask(click.format("begin"))
    shown = page.ask(LISTED)
    assert shown == [row["op_id"] for row in sorted(ops, key=lambda row: -row["begin_ns"])][: len(shown)]
    assert page.ask("document.getElementById('list-note').textContent").startswith("2 003")
    cells = (
        "[...document.querySelectorAll('.stagetable tbody tr')].map(r => [r.dataset.stage, r.children[7].dataset.v])"
    )
    page.ask("[...document.querySelectorAll('.stagetable th button')].find(b => b.textContent === 'p99').click()")
    found = [float(v) for _, v in page.ask(cells) if v]
    assert found == sorted(found, reverse=True)
    assert len(found) > 10
    page.press("y")  # drawn anew: it stays sorted
    assert [float(v) for _, v in page.ask(cells) if v] == found


def test_the_command_for_a_region_prints_its_ops(
    demo: Correlated, opened: Callable[..., Page], capsys: pytest.CaptureFixture[str]
) -> None:
    first = demo.first_op_ns
    page = opened(demo.path, f"#b={first + 80_000_001},{first + 160_000_001},1400001,13000001")
    command = shlex.split(page.ask("document.querySelector('#for-this code').textContent"))
    assert command[:3] == ["opline", "ops", "RUN"]
    capsys.readouterr()
    assert main(["ops", str(demo.path), *command[3:], "--json"]) == 0
    printed = [json.loads(line)["op_id"] for line in capsys.readouterr().out.splitlines()]
    marked = page.ask("Array.from(opline.page.selected, i => opline.page.runs[0].opIds[i])")
    assert len(marked) > 10
    assert sorted(printed) == sorted(marked)
    page.press("Escape")
    assert page.ask("document.getElementById('for-this').textContent") == ""
    page.press("j")
    assert page.ask("document.querySelector('#waterfall .command code').textContent") == (
        f"opline ops RUN --op {page.ask('opline.state.op')}"
    )


@pytest.mark.parametrize("hostile", [False, True])
def test_the_listed_ops_as_csv(
    hostile: bool, demo: Correlated, opened: Callable[..., Page], request: pytest.FixtureRequest
) -> None:
    run = hostile_run(request.getfixturevalue("tmp_path") / "hostile") if hostile else demo.path
    page = opened(run)
    page.ask(
        """(() => { window.kept = []; const make = URL.createObjectURL;
            URL.createObjectURL = (blob) => { window.kept.push(blob); return make.call(URL, blob); }; return 1; })()"""
    )
    page.ask("document.getElementById('csv').click()")
    page.ask("window.kept[0].text().then(text => { window.text = text; })")
    page.wait("typeof window.text === 'string'")
    rows = list(csv.DictReader(io.StringIO(page.ask("window.text"), newline="")))
    if hostile:
        assert rows
        assert not any(row["class"].startswith(("=", "+", "-", "@")) for row in rows)
        return
    ops = {row["op_id"]: row for row in demo.rows("ops")}
    assert [int(row["op"]) for row in rows] == sorted(ops, key=lambda op: (-ops[op]["latency_ns"], op))
    start = demo.core["first_ns"]
    for row in rows:
        op = ops[int(row["op"])]
        assert (int(row["begin_ns"]), int(row["latency_ns"])) == (op["begin_ns"] - start, op["latency_ns"])
        assert (row["class"], row["exact"]) == (op["class"], "yes")


def test_one_op_zooms(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path, "#op=818")
    shown = "document.querySelector('#waterfall > svg').dataset.shown.split(' ').map(Number)"
    bars = "document.querySelectorAll('#waterfall > svg g').length"
    whole, all_bars = page.ask(shown), page.ask(bars)
    assert whole == [0, page.ask("Number(opline.page.runs[0].detail(opline.page.open).latency)")]
    page.ask("document.querySelector('#waterfall > svg').focus()")
    page.press("+")
    half = page.ask(shown)
    assert half[1] - half[0] == pytest.approx(whole[1] / 2)
    page.press("+")
    page.press("ArrowRight")
    assert page.ask(shown)[0] > half[0]
    assert page.ask(bars) < all_bars
    assert page.ask("document.activeElement.tagName") == "svg"
    page.press("0")
    assert page.ask(shown) == whole
    page.ask(
        """document.querySelector('#waterfall > svg').dispatchEvent(
            new WheelEvent('wheel', { deltaY: -100, clientX: 700, bubbles: true, cancelable: true }))"""
    )
    wheeled = page.ask(shown)
    assert wheeled[0] > 0
    assert wheeled[1] - wheeled[0] == pytest.approx(whole[1] * 0.8)
    page.press("j")
    assert page.ask(shown)[0] == 0, "another op is shown whole"


def test_names_of_a_hostile_trace_are_text_in_what_is_found(
    opened: Callable[..., Page], request: pytest.FixtureRequest
) -> None:
    page = opened(hostile_run(request.getfixturevalue("tmp_path") / "hostile"))
    assert search(page, "<")
    assert page.ask("document.querySelectorAll('#found button :not(span, bdi)').length") == 0


NOTES = "[...document.querySelectorAll('#notes .onenote bdi')].map(n => n.textContent)"


def write_note(page: Page, text: str, key: str = "Enter") -> None:
    page.press("n")
    page.ask(f"(() => {{ document.querySelector('#notes input').value = {json.dumps(text)}; return 1; }})()")
    page.press(key)


def test_notes_travel_in_the_link(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path, "#op=818")
    text = "commit & fsync = 50 % <b>äö</b>, here"
    write_note(page, "not kept", "Escape")
    assert page.ask(NOTES) == []
    write_note(page, text)
    begin = next(op["begin_ns"] for op in demo.rows("ops") if op["op_id"] == 818) - demo.core["first_ns"]
    assert page.ask("opline.state.notes") == [[begin, text]]
    page.press("0")
    page.ask("opline.update({ region: [1000, 3000, 0, 9e15] })")
    write_note(page, "earlier")
    assert page.ask(NOTES) == ["earlier", text]
    assert page.ask("document.querySelectorAll('#notes b').length") == 2, "markup in a note is text"
    link = page.ask("opline.hashOf()")
    page.ask("opline.update({ notes: [], region: null })")
    assert page.ask(NOTES) == []
    page.ask(f"(() => {{ location.hash = {json.dumps(link)}; return 1; }})()")
    page.wait(f"({NOTES}).length === 2")
    assert page.ask("opline.state.notes") == [[2000, "earlier"], [begin, text]]
    page.ask("document.querySelector('#notes button').click()")
    assert page.ask(NOTES) == [text]


def test_a_note_is_a_line_in_the_heat_map(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path)
    middle = page.ask("(opline.page.heats[0].time[0] + opline.page.heats[0].time[1]) / 2")
    write_note(page, "here")
    assert page.ask("opline.state.notes[0][0]") == pytest.approx(middle, abs=1)
    page.frame()
    # drawn points in the column of the note, and in one 20 pixels beside it
    drawn, beside = page.ask(
        """(() => { const heat = opline.page.heats[0]; const { box, over } = heat;
        const at = Math.round(heat.x(heat.time[0] / 2 + heat.time[1] / 2));
        const data = over.getContext('2d').getImageData(at, box.y, 21, box.height).data;
        const count = (k) => { let n = 0;
            for (let y = 0; y < box.height; y++) n += data[4 * (21 * y + k) + 3] > 0; return n; };
        return [count(0), count(20)]; })()"""
    )
    assert beside == 0 and drawn > 50


@pytest.mark.parametrize("part", ["n=5", "n=,x", "n=-5,x", "n=1e3,x", "n=5,%E0%A4%A", "n=99999999999999999,x"])
def test_a_note_that_makes_no_sense_is_left_out(part: str, demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path, f"#{part}&n=7,good&y=1")
    assert page.ask("opline.state.notes") == [[7, "good"]]
    assert page.ask("opline.state.linear") is True


def test_values_are_copied(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path, "#op=818")
    page.ask(
        """(() => { window.copied = []; Object.defineProperty(navigator, 'clipboard', { value: {
            writeText: (text) => { window.copied.push(text); return Promise.resolve(); } } }); return 1; })()"""
    )
    page.press("c")
    latency = next(op["latency_ns"] for op in demo.rows("ops") if op["op_id"] == 818)
    assert page.ask("window.copied") == [str(latency)]
    row = "[...document.querySelectorAll('.stagetable tbody tr')].find(r => r.dataset.stage === 'shard queue')"
    page.ask(f"({row}).children[6].dispatchEvent(new MouseEvent('dblclick', {{ bubbles: true }}))")
    copied = page.ask("window.copied")[1]
    assert copied == page.ask(f"({row}).children[6].dataset.v") and int(copied) > 0
    page.wait(f"document.getElementById('said').textContent === 'copied: {copied}'")


def test_a_legend_names_the_kinds_that_are_there(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path)
    entries = "[...document.querySelectorAll('.legend > span')].map(e => e.textContent)"
    kinds = "[...document.querySelectorAll('#stages td.kind')].map(e => e.textContent).filter(Boolean)"
    *named, shades = page.ask(entries)
    assert set(named) == set(page.ask(kinds)) and len(named) > 2 and shades.startswith("shades")
    colours = [
        list(map(int, re.findall("[0-9]+", c)))
        for c in page.ask(
            "[...document.querySelectorAll('.legend .swatch')].map(e => getComputedStyle(e).backgroundColor)"
        )
    ]
    assert colours == [[*bytes.fromhex(HUES[kind][0][1:])] for kind in named]
    half = "(({ first_ns: first, span_ns: end }) => [first, (first + end) / 2, 0, 9007199254740991])"
    page.ask(f"(opline.update({{ region: opline.page.runs[0].snapped({half}(opline.page.runs[0].head)) }}), 1)")
    page.frame()
    assert page.ask(entries)[-2] == "less than the other ops"


@pytest.mark.parametrize("known", [True, False])
def test_the_cost_of_the_recording_is_said_where_it_is_known(
    known: bool, demo: Correlated, opened: Callable[..., Page], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(demo.path, tmp_path / "run"))
    manifest = json.loads((run / "manifest.json").read_text())
    command = {"begin_monotonic_ns": 1_000_000_000, "end_monotonic_ns": 3_000_000_000}
    manifest["recording"] = {"command": command}
    if known:
        manifest["recording"] |= {"event_count": 6000, "trace_bytes": 300_000}
        manifest["recording"]["collector"] = {"cpu_ns": 4_000_000, "sent": {"request": 1500, "off_cpu": 500}}
    (run / "manifest.json").write_text(json.dumps(manifest))
    said = opened(run).ask("document.querySelector('#facts .cost')?.textContent")
    wanted = "3,000 events/s, 50 bytes each, the collectors took 0.004 s of CPU, 2,000 ns for each of their events."
    assert said == (wanted if known else None)
