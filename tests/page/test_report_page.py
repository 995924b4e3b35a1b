# SPDX-License-Identifier: MIT
"""The page in a real browser: its numbers against `opline stages` and SQL, marking, keys, the address, no request.

Skipped where no Chromium is installed: `./check --browser` installs Debian's chromium-headless-shell.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from tests.lib.browser import PROGRAM, Page
from tests.lib.build_run import P, Rq, RunBuilder
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import HOSTILE, hostile_run

from opline.talk import shown
from opline_analyses.cli import main
from opline_analyses.report import cells, data
from opline_analyses.runs.run import open_tables

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: ./check --browser installs it")
STATS = "opline.stats()"
#: The open op; whole numbers of any length as texts.
DETAIL = """JSON.parse(JSON.stringify(opline.page.runs[opline.state.run].detail(opline.page.open),
            (key, value) => typeof value === 'bigint' ? String(value) : value))"""


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


def stage_sums(run: Path, where: str) -> tuple[int, int, dict[str, int]]:
    """By SQL: ops, their latency, and the time of each stage."""
    con = duckdb.connect()
    for table in ("ops", "stages"):
        con.execute(f"CREATE VIEW {table} AS FROM read_parquet('{run}/{table}.parquet')")
    con.execute(
        f"""CREATE TABLE marked AS SELECT op_id, latency_ns FROM (
              SELECT *, begin_ns - {open_tables(run).start_ns()} AS t FROM ops) WHERE complete AND {where}"""
    )
    ops, latency = con.execute("SELECT count(*), coalesce(sum(latency_ns), 0)::HUGEINT FROM marked").fetchall()[0]
    found = con.execute(
        "SELECT stage, sum(duration_ns)::HUGEINT FROM stages SEMI JOIN marked USING (op_id) GROUP BY stage"
    )
    return ops, latency, {stage: total for stage, total in found.fetchall() if total}


def some_region(demo: Correlated) -> tuple[int, int, int, int]:
    """From, to, and latencies: ns."""
    return demo.first_op_ns + 80000001, demo.first_op_ns + 160000001, 1400001, 13000001


def page_sums(page: Page) -> tuple[int, int, dict[str, int]]:
    """What the page has for what is marked."""
    found = page.ask(STATS)["sums"]
    names = page.ask("opline.page.runs[opline.state.run].head.stages.map(s => s.name)")
    stages = {name: int(v) for name, v in zip(names, found["stages"], strict=True) if v != "0"}
    assert sum(stages.values()) + int(found["unattributed"]) == int(found["latency"])
    return found["ops"], int(found["latency"]), stages


def test_the_whole_run_is_what_opline_stages_prints(
    demo: Correlated, opened: Callable[..., Page], capsys: pytest.CaptureFixture[str]
) -> None:
    page = opened(demo.path)
    stats = page.ask(STATS)
    ops = len(demo.rows("ops"))
    assert stats["sum"] + stats["over"] + stats["under"] == ops == stats["selected"]
    capsys.readouterr()
    main(["stages", str(demo.path), "--json"])
    rows = {row["stage"]: row for row in json.loads(capsys.readouterr().out)["stages"]}
    printed = page.ask("[...document.querySelectorAll('#stages tbody tr')].map(r => [r.dataset.stage, r.dataset.sum])")
    assert {name: int(total) for name, total in printed if name != "unattributed"} == {
        name: row["total_ns"]
        for name, row in rows.items()
        if name not in ("unattributed", "unknown", "latency") and row["total_ns"]
    }
    assert page.ask("Number(document.querySelector('.law').dataset.law)") == rows["latency"]["total_ns"]
    assert page.ask("document.querySelectorAll('.oprow[data-op]').length") > 5
    painted = page.ask(
        """(() => { const c = document.querySelector('canvas.plot'), b = opline.page.heats[0].box;
            const d = c.getContext('2d').getImageData(b.x, b.y, b.width, b.height).data; let n = 0;
            for (let i = 0; i < d.length; i += 4) if (d[i] < 200 && d[i + 2] > d[i] + 40) n++; return n; })()"""
    )
    cells = page.ask("opline.page.heats[0].bins.used")
    assert painted > cells * 5, "a cell is 5 by 5 pixels; lines cover some"


def test_latencies_and_offsets_of_a_device_are_drawn(demo: Correlated, opened: Callable[..., Page]) -> None:
    """Below the three lanes of bars: each cell with a request is dark."""
    page = opened(demo.path)
    found = page.ask(
        """(() => { const c = document.querySelector('canvas.lane'), width = c.width - 200;
            const d = c.getContext('2d').getImageData(60, 93, width, 101).data;
            return [['d2c', 0, 48], ['offset', 53, 101]].map(([key, from, to]) => { let n = 0;
              for (let i = from * width * 4; i < to * width * 4; i += 4)
                if (d[i + 3] && d[i] < 200 && d[i + 2] > d[i] + 40) n++;
              return [opline.page.runs[0].columns[`device0.${key}`].filter(Boolean).length, n]; }); })()"""
    )
    assert all(painted > cells > 100 for cells, painted in found), found


def test_what_is_marked_is_what_sql_finds(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path)
    box = page.ask(
        """(() => { const r = document.querySelector('canvas.over').getBoundingClientRect();
            const b = opline.page.heats[0].box; return [r.left + b.x, r.top + b.y, b.width, b.height]; })()"""
    )
    page.drag((box[0] + 0.3 * box[2], box[1] + 0.1 * box[3]), (box[0] + 0.6 * box[2], box[1] + 0.55 * box[3]))
    page.frame()
    t0, t1, l0, l1 = page.ask("opline.state.region")
    where = f"t >= {t0} AND t < {t1} AND latency_ns >= {l0} AND latency_ns < {l1}"
    assert page_sums(page) == stage_sums(demo.path, where)
    marked = page.ask(STATS)["selected"]
    assert 10 < marked < 1000
    assert f"{marked} ops marked" in page.ask("document.getElementById('live').textContent")
    rest = page.ask("[...document.querySelectorAll('#stages tbody tr')].map(r => [r.dataset.stage, r.dataset.rest])")
    expected = stage_sums(demo.path, f"NOT ({where})")[2]
    assert {s: int(v) for s, v in rest if v != "0" and s != "unattributed"} == expected
    classes = page.ask(
        "[...document.querySelectorAll('[data-dimension=class] tbody tr')].map(r => Number(r.dataset.count))"
    )
    assert sum(classes) == marked


def test_an_address_that_is_set_while_the_page_writes_its_own(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path)
    first, second = ([demo.first_op_ns, demo.first_op_ns + span] for span in (100_000_000, 50_000_000))
    page.ask(f"(location.hash = '#t={first[0]},{first[1]}', 1)")
    page.wait(f"opline.state.time?.[1] === {first[1]}")
    written = f"history.replaceState(null, '', '#t={first[0]},{first[1]}')"
    page.ask(f"(location.hash = '#t={second[0]},{second[1]}', {written}, 1)")
    page.wait(f"opline.state.time?.[1] === {second[1]}")
    page.wait(f"location.hash === '#t={second[0]},{second[1]}'")


def test_keys_and_the_address(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path)
    page.ask("document.querySelector('canvas.over').focus()")
    page.press("ArrowRight")
    first = page.ask("opline.state.region")
    assert first is not None
    page.press("ArrowRight", shift=True)
    wider = page.ask("opline.state.region")
    assert wider[0] == first[0]
    assert wider[1] > first[1]
    page.press("ArrowUp")
    assert page.ask("opline.state.region")[2] > 0
    page.press("Enter")
    assert page.ask("document.activeElement.id") == "list"
    opened_op = page.ask("opline.state.op")
    assert opened_op is not None
    page.press("j")
    assert page.ask("opline.state.op") != opened_op
    page.press("k")
    assert page.ask("opline.state.op") == opened_op
    assert page.ask("document.querySelector('[aria-selected=true]').dataset.op") == str(opened_op)
    for key in ("z", "s", "y", "w"):
        page.press(key)
    state = page.ask("JSON.parse(JSON.stringify(opline.state))")
    assert state["time"] and state["even"] and state["linear"] and state["waited"]
    stats = page.ask(STATS)
    part = page.ask("opline.hashOf()")
    again = opened(demo.path, part)
    assert again.ask("JSON.parse(JSON.stringify(opline.state))") == state
    assert again.ask(STATS) == stats
    page.ask("document.querySelector('#why button').click()")
    slow = sorted((row["latency_ns"] for row in demo.rows("ops")), reverse=True)[:20]
    assert page.ask(STATS)["selected"] == len(slow), "the slowest 1 %"
    assert page.ask("opline.state.region")[2] == slow[-1]
    page.press("Escape")
    page.press("0")
    assert page.ask("[opline.state.region, opline.state.time]") == [None, None]
    page.press("t")
    assert page.ask("document.documentElement.dataset.theme") == "dark"
    page.press("?")
    assert page.ask("document.getElementById('help').open")


def test_an_op_is_what_the_run_has(demo: Correlated, opened: Callable[..., Page]) -> None:
    slowest = max(demo.rows("ops"), key=lambda row: (row["latency_ns"], -row["op_id"]))
    page = opened(demo.path, f"#op={slowest['op_id']}")
    found = page.ask(DETAIL)
    stages = [row for row in demo.rows("stages") if row["op_id"] == slowest["op_id"]]
    names = page.ask("opline.page.runs[0].head.stages.map(s => s.name)")
    assert [(names[s["stage"]], s["begin"], s["duration"]) for s in found["stages"]] == [
        (row["stage"], row["begin_ns"] - slowest["begin_ns"], row["duration_ns"])
        for row in sorted(stages, key=lambda row: row["seq"])
    ]
    wanted = {row["request_id"] for row in stages if row["request_id"] is not None}
    requests = [row for row in demo.rows("requests") if row["request_id"] in wanted]
    steps = ("queue_ns", "getrq_ns", "insert_ns", "issue_ns", "complete_ns")
    assert [r["steps"] for r in found["requests"]] == [
        {k: row[s] - slowest["begin_ns"] for k, s in zip("qgidc", steps, strict=True) if row[s] is not None}
        for row in requests
    ]
    assert page.ask("document.querySelectorAll('#waterfall rect').length") >= len(stages)
    assert page.ask("document.querySelectorAll('#op-table tbody tr').length") == len(stages)


@pytest.mark.parametrize("coarse", [False, True])
def test_a_rounded_page_has_exact_sums_of_what_it_marks(
    coarse: bool, demo: Correlated, opened: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``coarse``: as if there were no room for the ops' numbers and begins."""
    monkeypatch.setattr(data, "FULL_ROWS", 0)
    monkeypatch.setattr(data, "DETAIL", 300)
    if coarse:
        monkeypatch.setattr(data, "OPS_SHARE", 0)
        monkeypatch.setattr(cells, "MOST_TICKS", 1000)
    asked = some_region(demo)
    page = opened(demo.path, f"#b={','.join(map(str, asked))}")
    t0, t1, l0, l1 = page.ask("opline.state.region")
    assert (t0, t1, l0, l1) != asked, "it follows the cells"
    expected = stage_sums(demo.path, f"t >= {t0} AND t < {t1} AND latency_ns >= {l0} AND latency_ns < {l1}")
    assert page_sums(page) == expected
    assert page.ask(STATS)["selected"] == expected[0]
    page.press("Escape")
    assert page_sums(page) == stage_sums(demo.path, "true")
    stats = page.ask(STATS)
    assert stats["sum"] + stats["over"] + stats["under"] == len(demo.rows("ops"))
    page.press("j")
    slowest = max(r["latency_ns"] for r in demo.rows("ops"))
    found = page.ask(DETAIL)["latency"]
    assert slowest * 0.99 < found <= slowest if coarse else found == slowest  # of one step of 1 % any may be first
    run = "opline.page.runs[0]"
    named = {r["op_id"]: r["latency_ns"] for r in demo.rows("ops")}
    known = page.ask(f"Array.from({run}.opIds).filter(id => id >= 0)")
    assert set(known) <= set(named)
    assert len(set(known)) == len(known) == (300 if coarse else len(named))
    detailed = page.ask(f"Array.from({run}.detailOf).flatMap((d, i) => d < 0 ? [] : [[{run}.opIds[i], "
                        f"Number({run}.detail(i).latency), {run}.detail(i).begin]])")  # fmt: skip
    first = demo.core["first_ns"]
    begins = {r["op_id"]: r["begin_ns"] - first for r in demo.rows("ops")}
    assert detailed
    assert all([latency, begin] == [named[op], begins[op]] for op, latency, begin in detailed)
    if coarse:
        assert page.ask(f"{run}.head.tick_ns") > 1000
        page.ask(f"(opline.page.list.onPick({run}.opIds.indexOf(-1), true), 1)")
        assert "no room for more of this op" in page.ask("document.getElementById('waterfall').textContent")
        assert page.ask("opline.state.op") is None


def test_counts_per_cell_say_what_counts_per_op_say(
    demo: Correlated, opened: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large run's dearest kinds (objects, threads, ...) are kept per cell: exact for what is marked, no filter."""
    monkeypatch.setattr(data, "FULL_ROWS", 0)
    monkeypatch.setattr(data, "DETAIL_BYTES", 10**6)
    page = opened(demo.path, f"#b={','.join(map(str, some_region(demo)))}")
    run = "opline.page.runs[0]"
    assert page.ask(f"{run}.head.threads_in_cells && {run}.dimensions.every(d => d.cells || d.name === 'class')")
    t0, t1, l0, l1 = page.ask("opline.state.region")
    first = demo.core["first_ns"]
    marked = [
        r for r in demo.rows("ops") if t0 <= r["begin_ns"] - first < t1 and l0 <= r["latency_ns"] < l1
    ]  # fmt: skip
    assert len(marked) == page.ask(STATS)["selected"] > 10
    script = """(n, d) => { const run = opline.page.runs[0];
        return [d.values, Array.from(run.countValues(n, opline.page.selected, opline.state.region)),
                Array.from(run.countValues(n, null))]; }"""
    for column, name in (("object", "object"), ("length_bytes", "size"), ("class", "class")):
        found = page.ask(
            f"(() => {{ const n = opline.page.runs[0].dimensions.findIndex(d => d.name === '{name}'); "
            f"return ({script})(n, opline.page.runs[0].dimensions[n]); }})()"
        )
        of_marked, of_all = Counter(r[column] for r in marked), Counter(r[column] for r in demo.rows("ops"))
        assert sorted(zip(found[1], found[2], strict=True)) == sorted((of_marked[v], of_all[v]) for v in of_all)
    found = page.ask(f"({script})(-1, {{values: opline.page.runs[0].head.threads}})")
    passed = {(r["op_id"], r["tid"]) for r in demo.rows("stages") if r["tid"] is not None}
    ids = {r["op_id"] for r in marked}
    by_thread = Counter(tid for op, tid in passed if op in ids)
    counts = {name.rsplit(" ", 1)[1]: n for name, n in zip(found[0], found[1], strict=True) if not name.startswith("(")}
    assert counts == {str(tid): by_thread[tid] for tid in {tid for _, tid in passed}}
    assert page.ask("[...document.querySelectorAll('#who [data-dimension=object] button')].every(b => b.disabled)")
    assert not page.ask("document.querySelector('#who [data-dimension=class] button').disabled")
    page.press("j")
    assert page.ask("document.querySelector('#op-table') !== null")


def test_a_hostile_run_shows_its_names_and_runs_nothing(tmp_path: Path, opened: Callable[..., Page]) -> None:
    page = opened(hostile_run(tmp_path / "run"), "#op=7")
    text = page.ask("document.body.innerText")
    visible = shown(HOSTILE)
    assert visible[:40] in text
    assert page.ask("document.querySelectorAll('img, iframe, object').length") == 0
    assert page.ask("opline.page.runs[0].head.stages.map(s => s.name)").count(visible) == 1
    ops, latency, stages = stage_sums(tmp_path / "run", "true")
    assert page_sums(page) == (ops, latency, {shown(name): total for name, total in stages.items()})
    assert page.ask("opline.page.runs[0].head.start_ns") == str(2**60 + 1)
    page.press("j")


@pytest.mark.parametrize("full", [True, False])
def test_no_digit_of_a_long_time_is_lost(
    full: bool, tmp_path: Path, opened: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times that no double holds, and sums that 53 bits do not hold: those of a page in full have more than 64."""
    length = 2**62 + 1 if full else 2**58 + 1
    built = RunBuilder()
    for n in range(7):
        at = n + 1
        built.op(
            [P("a", at), P("b", at + 3 + n), P("c", at + length + n)], [Rq(at + 1, at + 1, at + 1, at + 2, at + 2)]
        )
    run = built.write(tmp_path / "long")
    if not full:
        monkeypatch.setattr(data, "FULL_ROWS", 0)
    page = opened(run)
    assert page.ask("opline.page.runs[0].full") is full
    expected = stage_sums(run, "true")
    assert expected[1] == 7 * length + 21
    assert page_sums(page) == expected
    law = page.ask("document.querySelector('.law').textContent")
    assert re.sub(r"\D", "", law.split("=")[1].split("latency")[0]) == str(7 * length + 21)
    page.press("j")
    found = page.ask(DETAIL)
    op = found["id"]  # in order of doubles the seven are equal
    assert (found["takes"], found["unattributed"]) == (str(length + op), "0")
    rows = sorted((r for r in built.rows["stages"] if r["op_id"] == op), key=lambda r: r["seq"])
    assert [int(s["takes"]) for s in found["stages"]] == [r["duration_ns"] for r in rows]
    told = page.ask("document.getElementById('op-note').textContent")
    assert re.sub(r"\D", "", told.split("unattributed =")[1].split("ns")[0]) == str(length + op)


def test_a_long_name_is_cut_and_stays_a_name(run_of: RunOf, opened: Callable[..., Page]) -> None:
    """Ceph's stages without a name of their own are called by two points: longer than their column."""
    page = opened(run_of("ctf-deb12-uprobes-qd16").path)
    names = page.ask(
        """[...document.querySelectorAll('.stagetable td:first-child')].map(cell => {
            const name = cell.querySelector('button');
            return [name.title.split(':').length > 1, name.scrollWidth > name.clientWidth,
                name.offsetLeft + name.offsetWidth <= cell.offsetLeft + cell.clientWidth]; })"""
    )
    assert len(names) > 20 and any(cut for _, cut, _ in names)
    assert all(told and inside for told, _, inside in names)
    assert page.ask("document.querySelector('#stages').scrollWidth <= document.querySelector('#stages').clientWidth")


def test_a_phone_and_a_printer(demo: Correlated, opened: Callable[..., Page]) -> None:
    page = opened(demo.path, "#op=817", width=390)
    assert page.ask("document.documentElement.scrollWidth") <= 390
    assert page.call("Page.printToPDF")["data"].startswith("JVBER")
