# SPDX-License-Identifier: MIT
"""The data of the page: columns, cells and sums against SQL by hand; the file: its policy, and names as text."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lib.build_run import P, Rq, RunBuilder
from tests.lib.recorded import Correlated, RunOf

from opline_analyses.base.colours import shades, stage_colour
from opline_analyses.cli import main
from opline_analyses.intervals.intervals import time_within
from opline_analyses.report import data
from opline_analyses.report.cells import cells_of, code_edges, sample_order
from opline_analyses.report.columns import Columns, decoded, zigzag
from opline_analyses.report.data import PageData, page_data
from opline_analyses.report.document import document, script
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028\u202e\"'`${x}\\"


@given(st.lists(st.integers(0, 2**53)))
def test_columns_come_back(values: list[int]) -> None:
    columns = Columns()
    columns.add("plain", np.array(values, np.int64))
    columns.add("rising", np.sort(np.array(values, np.int64)), delta=True)
    blob = columns.blob()
    assert decoded(columns.directory, blob, "plain").tolist() == values
    assert decoded(columns.directory, blob, "rising").tolist() == sorted(values)


@given(st.lists(st.integers(-(2**60), 2**60), min_size=1))
def test_zigzag_is_never_negative_and_tells_all_apart(values: list[int]) -> None:
    found = zigzag(np.array(values, np.int64)).tolist()
    assert found == [2 * v if v >= 0 else -2 * v - 1 for v in values]


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**11)), min_size=1, max_size=60))
def test_every_op_is_in_the_cell_that_its_numbers_say(ops: list[tuple[int, int]]) -> None:
    ordered = sorted(ops)
    begin, latency = (np.array(column, np.int64) for column in zip(*ordered, strict=True))
    cells = cells_of(begin, latency)
    for n, (b, v) in enumerate(ordered):
        edge, above = cells.edges_ns[cells.code[n]], cells.edges_ns[cells.code[n] + 1]
        assert edge <= v < above <= max(edge + 1, edge * 1.01)
        assert cells.column[cells.cell[n]] * cells.width_ns <= b < (cells.column[cells.cell[n]] + 1) * cells.width_ns
        assert cells.row[cells.cell[n]] == cells.code[n] // 18
    assert np.bincount(cells.cell).sum() == len(ops)


def test_codes_are_whole_numbers_a_hundredth_apart() -> None:
    edges = code_edges(10**10)
    assert edges[0] == 0
    assert edges[-1] > 10**10 >= edges[-2]
    assert (np.diff(edges) >= 1).all()
    assert (edges[1:] <= np.maximum(edges[:-1] * 1.01, edges[:-1] + 1)).all()


def test_a_sample_has_the_slowest_and_some_of_each_cell() -> None:
    rng = np.random.default_rng(7)
    begin = np.sort(rng.integers(0, 10**9, 5000))
    latency = rng.integers(10**3, 10**6, 5000)
    cells = cells_of(begin, latency)
    chosen = sample_order(cells, latency, 100)[:3000]
    assert len(chosen) == 3000 == len(set(chosen.tolist()))
    assert set(np.argsort(-latency, kind="stable")[:100].tolist()) <= set(chosen.tolist())
    per_cell = np.bincount(cells.cell[chosen], minlength=len(cells.row))
    assert per_cell.min() >= 1, "no cell without an op in detail"
    assert np.array_equal(chosen, sample_order(cells, latency, 100)[:3000])


def test_in_flight_is_the_exact_time_within_each_bin() -> None:
    edges = np.array([0, 10, 20, 30])
    assert time_within(np.array([5, 12, 29]), np.array([25, 14, 40]), edges).tolist() == [5, 12, 6]


def columns_of(page: PageData, name: str) -> Any:
    return decoded(page.head["columns"], page.blob, name)


def test_a_stage_has_its_colour_by_name() -> None:
    assert stage_colour("D2C", "device") == "#D55E00"
    assert stage_colour("no model has it", "wait") == stage_colour("no model has it", "wait")
    kinds = ("work", "wait", "network", "device", "block", "unknown")
    assert {stage_colour("x", k) for k in kinds} <= {c for k in kinds for c in shades(k)}
    of_kinds = [set(shades(k)) for k in kinds]
    assert sum(map(len, of_kinds)) == len(set.union(*of_kinds)), "no colour belongs to two kinds"


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


def asked(run: Correlated, sql: str) -> list[tuple[Any, ...]]:
    con = duckdb.connect()
    for table in ("ops", "stages", "requests"):
        con.execute(f"CREATE VIEW {table} AS FROM read_parquet('{run.path}/{table}.parquet')")
    return con.execute(sql).fetchall()


def test_a_page_in_full_has_every_duration(demo: Correlated) -> None:
    page = page_data(open_tables(demo.path), Selection())
    head = page.head
    assert head["full"]
    assert head["ops"] == head["counted"] == len(demo.rows("ops"))
    (rows,) = asked(demo, "SELECT count(*), sum(duration_ns) FROM stages")
    durations = columns_of(page, "detail.durations")
    assert (len(durations), int(durations.sum())) == (rows[0], int(rows[1]))
    first = demo.core["first_ns"]
    assert head["start_ns"] == str(first)
    wanted = sorted((row["begin_ns"] - first, row["op_id"]) for row in demo.rows("ops"))
    assert columns_of(page, "begin").tolist() == [b for b, _ in wanted]
    codes = columns_of(page, "op_id")
    assert np.cumsum(np.where(codes % 2, -(codes + 1) // 2, codes // 2) + 1).tolist() == [op + 1 for _, op in wanted]
    for device in range(len(head["devices"]["list"])):
        total = head["devices"]["list"][device]
        done = columns_of(page, f"device{device}.count").sum()
        assert done + total["not_completed"] + total["outside"] == total["requests"]
        assert columns_of(page, f"device{device}.d2c").sum() == done


def test_cells_have_the_exact_sums(demo: Correlated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "FULL_ROWS", 0)
    monkeypatch.setattr(data, "DETAIL", 150)
    page = page_data(open_tables(demo.path), Selection())
    head = page.head
    assert not head["full"]
    assert head["detailed"] == 150
    columns, rows = columns_of(page, "cell.column"), columns_of(page, "cell.row")
    sums = columns_of(page, "cell.stages").reshape(len(head["stages"]), len(rows))
    edges, width = columns_of(page, "code_edges"), head["cell_ns"]
    first = int(head["start_ns"])
    busiest = np.argsort(-columns_of(page, "cell.count"))[:5]
    for c in busiest:
        low, high = (int(edges[min(r * 18, len(edges) - 1)]) for r in (rows[c], rows[c] + 1))
        where = f"begin_ns - {first} >= {columns[c] * width} AND begin_ns - {first} < {(columns[c] + 1) * width}"
        where += f" AND latency_ns >= {low} AND latency_ns < {high}"
        found = dict(
            asked(
                demo,
                f"""SELECT stage, sum(duration_ns)::BIGINT FROM stages
                    SEMI JOIN (FROM ops WHERE {where}) USING (op_id) GROUP BY 1""",
            )
        )
        assert {s["name"]: int(v) for s, v in zip(head["stages"], sums[:, c], strict=True) if v} == {
            k: v for k, v in found.items() if v
        }
        assert asked(demo, f"SELECT count(*), sum(latency_ns)::BIGINT FROM ops WHERE {where}") == [
            (columns_of(page, "cell.count")[c], columns_of(page, "cell.latency")[c])
        ]
    assert columns_of(page, "cell.count").sum() == head["ops"]


def test_the_same_run_gives_the_same_bytes(demo: Correlated) -> None:
    pages = [document("x", [page_data(open_tables(demo.path), Selection())]) for _ in range(2)]
    assert pages[0] == pages[1]


def hostile_run(path: Path) -> Path:
    """Names with markup, quotes and escapes; times beyond 2^53 ns."""
    start = 2**60 + 1
    run = RunBuilder()
    for n in range(40):
        t = start + n * 1000
        run.op(
            [P("a", t, comm=HOSTILE), P("b", t + 100 + n, stage=HOSTILE, kind="wait", comm=HOSTILE, tid=101)],
            [Rq(t + 10, t + 12, t + 20, t + 30, t + 60)] if n % 2 else [],
            op_class=f"class {HOSTILE}",
            obj=f"{HOSTILE}{n % 3}",
        )
    run.op([P("a", start + 90_000)], complete=False, reason="no_end")
    return run.write(path)


class Scripts(HTMLParser):
    """The script and image elements of a page, as a parser of HTML sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self._in: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "style", "meta", "link", "iframe"):
            self.found.append((tag, given))
        self._in = given.get("id") or given.get("type") or tag

    def handle_data(self, data: str) -> None:
        if self._in:
            self.text[self._in] = self.text.get(self._in, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._in = None


def test_names_are_text_and_the_policy_names_the_script(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run")
    assert main(["report", str(run), "-o", str(tmp_path / "x.html"), "--title", HOSTILE]) == 0
    text = (tmp_path / "x.html").read_text()
    parser = Scripts()
    parser.feed(text)
    kinds = [given.get("type") for tag, given in parser.found if tag == "script"]
    assert kinds == ["application/json", "text/plain", "module"]
    assert not [tag for tag, _ in parser.found if tag in ("img", "link", "iframe")]
    policy = next(g["content"] or "" for t, g in parser.found if t == "meta" and "http-equiv" in g)
    for kind in ("script", "style"):
        (body,) = re.findall(
            {"script": r'<script type="module">(.*?)</script>', "style": r"<style>(.*?)</style>"}[kind], text, re.DOTALL
        )
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    head = json.loads(parser.text["head"])
    assert head["runs"][0]["start_ns"] == str(2**60 + 1)
    assert head["runs"][0]["incomplete_ns"] == [90_000]
    names = [s["name"] for s in head["runs"][0]["stages"]]
    assert any(name.startswith("</script><script>alert(1)") for name in names)
    assert not re.search("[\u2028\u202e]", text), "what turns a line around is shown as an escape"
    assert html.escape("<img src=x onerror=alert(2)>") in text


def test_the_script_never_parses_markup() -> None:
    code = script()
    for banned in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
        "fetch(",
    ):
        assert banned not in code
    assert not re.search(r"^(import|export) ", code, re.MULTILINE)
    assert "</script" not in code


def test_nothing_to_show_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunBuilder()
    run.op([P("a", 0)], complete=False, reason="no_end")
    assert main(["report", str(run.write(tmp_path / "run")), "-o", str(tmp_path / "x.html")]) == 1
    assert "No op to count" in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("name", ["app-libaio-qd16-nvme", "app-sync-qd4-ext4-direct", "fdatasync-2-queues-busy"])
def test_the_page_says_what_why_says(name: str, run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    path = run_of(name).path
    assert main(["why", str(path)]) == 0
    said = " ".join(capfd.readouterr().out.split("\n\n")[0].split())
    assert page_data(open_tables(path), Selection()).head["why"]["sentence"] == said
