# SPDX-License-Identifier: MIT
"""The page's lanes of threads and devices, in real browsers: each stage and request of the ops of a window is a slice
of its thread or device, arrows lead from thread to thread, and what is not drawn is said.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lib.browser import PROGRAM, Browser, Page
from tests.lib.firefox import PROGRAM as FIREFOX
from tests.lib.firefox import Firefox
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import hostile_run

from opline.store.arrays import ABSENT
from opline_analyses.cli import main
from opline_analyses.ops.thread_names import NO_THREAD, host_of_key, thread_keys
from opline_analyses.report import data
from opline_analyses.runs.run import open_run
from opline_analyses.runs.selection import Selection
from opline_analyses.view import pages
from opline_analyses.view.pages import Pages, Viewed
from opline_analyses.view.server import Server

chromium = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: ./check --browser installs it")
DRAWN = "document.getElementById('threads').dataset.drawn"
NOTE = "document.getElementById('threads-note').textContent"
SLICES = """opline.lanes.lanes.filter(l => !l.device).flatMap(l => l.slices.map(s =>
    [s.op.id, l.label, s.parts[0].label, s.from, s.to]))"""


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


def window_of(run: Correlated) -> tuple[int, int]:
    """About the slowest op: from before its begin on, and a moment longer."""
    slowest = max(run.rows("ops"), key=lambda row: row["latency_ns"] or 0)
    begin = slowest["begin_ns"] - run.core["first_ns"]
    return begin - 1_000_000, begin + slowest["latency_ns"] + 2_000_000


def stages_in(run: Correlated, window: tuple[int, int]) -> list[list[Any]]:
    """[op, thread, stage, from, to] of the stages that touch the window, of complete ops under way in it; ns from its
    begin.
    """
    t0, t1 = (t + run.core["first_ns"] for t in window)
    under_way = {
        row["op_id"]
        for row in run.rows("ops")
        if row["complete"] and row["begin_ns"] < t1 and row["begin_ns"] + row["latency_ns"] > t0
    }
    return [
        [row["op_id"], row["tid"], row["stage"], row["begin_ns"] - t0, row["begin_ns"] + row["duration_ns"] - t0]
        for row in run.rows("stages")
        if row["op_id"] in under_way and row["begin_ns"] + row["duration_ns"] >= t0 and row["begin_ns"] <= t1
    ]


def by_tid(slices: list[list[Any]]) -> list[tuple[Any, ...]]:
    """Slices of the page with the thread's number instead of its name."""
    found = []
    for op, label, *rest in slices:
        found.append((op, None if label == "block completion" else int(label.rsplit(" ", 1)[1]), *rest))
    return sorted(found, key=repr)


def check_slices(run: Correlated, window: tuple[int, int], slices: list[list[Any]]) -> None:
    expected = stages_in(run, window)
    assert len(expected) > 100
    assert by_tid(slices) == sorted((tuple(row) for row in expected), key=repr)


@chromium
def test_every_stage_is_a_slice_of_its_thread(demo: Correlated, opened: Callable[..., Page]) -> None:
    window = window_of(demo)
    page = opened(demo.path, f"#h=1&t={window[0]},{window[1]}")
    page.wait(DRAWN)
    slices = page.ask(SLICES)
    check_slices(demo, window, slices)
    assert NO_THREAD not in {label for _, label, *_ in slices}
    ops = {op for op, *_ in slices}
    assert f"{len(ops)} ops" in page.ask(NOTE)
    # no slice of a row lies over another one of it
    clashes = page.ask(
        """opline.lanes.lanes.flatMap(l => l.slices.map((s, k) =>
            l.slices.slice(0, k).some(o => o.row === s.row && o.to > s.from))).filter(Boolean).length"""
    )
    assert clashes == 0 == page.ask("opline.lanes.over")


@chromium
def test_arrows_lead_from_thread_to_thread(demo: Correlated, opened: Callable[..., Page]) -> None:
    window = window_of(demo)
    page = opened(demo.path, f"#h=1&t={window[0]},{window[1]}")
    page.wait(DRAWN)
    flows = page.ask("opline.lanes.flows.map(f => [f.op.id, f.from.lane.label, f.to.lane.label, f.at])")
    t0 = window[0] + demo.core["first_ns"]
    ids = {op for op, *_ in page.ask(SLICES)}
    expected: Counter[tuple[int, int]] = Counter()
    before: dict[int, Any] = {}
    for row in sorted(demo.rows("stages"), key=lambda r: (r["op_id"], r["seq"])):
        op, at = row["op_id"], row["begin_ns"] - t0
        if op in before and before[op] != row["tid"] and op in ids and 0 <= at <= window[1] - window[0]:
            expected[op, at] += 1
        before[op] = row["tid"]
    assert len(expected) > 50
    assert Counter((op, at) for op, _, _, at in flows) == expected
    assert all(a != b for _, a, b, _ in flows)


@chromium
def test_devices_have_the_requests_once(demo: Correlated, opened: Callable[..., Page]) -> None:
    window = window_of(demo)
    page = opened(demo.path, f"#h=1&t={window[0]},{window[1]}")
    page.wait(DRAWN)
    drawn = page.ask(
        "opline.lanes.lanes.filter(l => l.device).flatMap(l => l.slices.map(s => s.parts[s.parts.length - 1].to))"
    )
    ids = {op for op, *_ in stages_in(demo, window)}
    wanted = {row["request_id"] for row in demo.rows("links") if row["op_id"] in ids}
    t0, t1 = (t + demo.core["first_ns"] for t in window)
    ends = [
        row["complete_ns"] - t0
        for row in demo.rows("requests")
        if row["request_id"] in wanted and row["complete_ns"] >= t0 and row["queue_ns"] <= t1
    ]
    assert len(drawn) > 10
    assert sorted(drawn) == sorted(ends)


@chromium
def test_lanes_zoom_and_open_an_op(demo: Correlated, opened: Callable[..., Page]) -> None:
    window = window_of(demo)
    page = opened(demo.path, f"#t={window[0]},{window[1]}")
    assert page.ask("document.querySelector('#threads canvas')") is None, "a closed panel costs nothing"
    page.press("h")
    page.wait(DRAWN)
    assert page.ask("document.getElementById('threads').open") and "h=1" in page.ask("opline.hashOf()")
    shown = "document.querySelector('#threads canvas').dataset.shown.split(' ').map(Number)"
    whole = page.ask(shown)
    assert whole == [0, window[1] - window[0]]
    page.ask("document.querySelector('#threads canvas').focus()")
    page.press("+")
    half = page.ask(shown)
    assert half[1] - half[0] == pytest.approx(whole[1] / 2)
    page.press("ArrowRight")
    assert page.ask(shown)[0] > half[0]
    page.press("0")
    assert page.ask(shown) == whole
    page.ask(
        """document.querySelector('#threads canvas').dispatchEvent(
            new WheelEvent('wheel', { deltaY: -100, clientX: 700, bubbles: true, cancelable: true }))"""
    )
    assert page.ask(shown)[1] - page.ask(shown)[0] == pytest.approx(whole[1] * 0.8)
    page.press("0")
    page.ask("document.querySelector('#threads canvas').scrollIntoView()")
    # a click in the middle of the longest slice opens its op
    op, x, y = page.ask(
        """(() => { const canvas = document.querySelector('#threads canvas');
            const box = canvas.getBoundingClientRect();
            const all = opline.lanes.lanes.filter(l => !l.device).flatMap(l => l.slices.map(s => [l, s]));
            const [lane, slice] = all.reduce((a, b) => b[1].to - b[1].from > a[1].to - a[1].from ? b : a);
            const [from, to] = canvas.dataset.shown.split(' ').map(Number);
            const share = ((slice.from + slice.to) / 2 - from) / (to - from);
            return [slice.op.id, box.left + 190 + share * (box.width - 198), box.top + lane.y + 15 * slice.row + 7];
        })()"""
    )
    for kind, buttons in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)):
        page.mouse(kind, x, y, buttons)
        if kind == "mouseMoved":
            assert f"op {op}," in page.ask("document.getElementById('threads-hover').textContent")
    page.wait(f"opline.state.op === {op}")
    page.press("h")
    assert page.ask("document.getElementById('threads').open") is False
    assert "h=1" not in page.ask("opline.hashOf()")


@chromium
def test_the_marked_time_is_the_window_and_a_filter_holds(demo: Correlated, opened: Callable[..., Page]) -> None:
    window = window_of(demo)
    page = opened(demo.path, f"#h=1&b={window[0]},{window[1]},0,9007199254740991")
    page.wait(DRAWN)
    region = page.ask("opline.state.region")
    check_slices(demo, (region[0], region[1]), page.ask(SLICES))
    before = page.ask(DRAWN)
    page.ask("[...document.querySelectorAll('#who button')].find(b => b.textContent === 'read').click()")
    page.wait(f"{DRAWN} !== {json.dumps(before)}")
    classes = {row["op_id"]: row["class"] for row in demo.rows("ops")}
    assert {classes[op] for op, *_ in page.ask(SLICES)} == {"read"}


@chromium
def test_what_is_not_drawn_is_said(
    run_of: RunOf, demo: Correlated, opened: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = opened(demo.path, "#h=1")
    page.wait(DRAWN)
    ops = sum(row["complete"] for row in demo.rows("ops"))
    assert re.sub("[\u2009\u202f ]", "", page.ask(NOTE)).find(f"1000of{ops}ops,evenlychosen") > 0
    assert len({op for op, *_ in page.ask(SLICES)}) == 1000
    assert "are too many" in page.ask(NOTE)


@chromium
def test_a_rounded_page_says_what_it_has_not(
    demo: Correlated, opened: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "FULL_ROWS", 0)
    monkeypatch.setattr(data, "DETAIL", 100)
    page = opened(demo.path, "#h=1")
    page.wait(DRAWN)
    detailed = page.ask("opline.page.runs[0].columns['detail.op'].length")
    ops = sum(row["complete"] for row in demo.rows("ops"))
    assert 0 < detailed < ops
    assert f"{ops - detailed} are in this page without details" in re.sub(r"(?<=\d)\D(?=\d)", "", page.ask(NOTE))


@chromium
def test_a_large_run_asks_for_the_window(demo: Correlated, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "HELD_ROWS", 0)
    window = window_of(demo)
    with (
        open_run(demo.path, interruptible=False) as run,
        Server(Pages([Viewed(run, "demo", Selection(), False)])) as server,
    ):
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            page = browser.open(server.address, f"#h=1&t={window[0]},{window[1]}")
            page.wait(DRAWN)
            check_slices(demo, window, page.ask(SLICES))
            assert page.errors == []
        finally:
            server.shutdown()
            thread.join()


@chromium
def test_names_are_text(tmp_path: Path, opened: Callable[..., Page]) -> None:
    page = opened(hostile_run(tmp_path / "hostile"), "#h=1")
    page.wait(DRAWN)
    assert page.ask("opline.lanes.lanes.length") > 0
    assert page.ask("document.querySelectorAll('#threads td :not(bdi)').length") == 0


@pytest.mark.skipif(FIREFOX is None, reason="no Firefox here: apt install firefox-esr")
def test_lanes_in_firefox(demo: Correlated, tmp_path: Path) -> None:
    assert main(["report", str(demo.path), "-o", str(tmp_path / "page.html")]) == 0
    window = window_of(demo)
    with Firefox() as firefox:
        firefox.open(tmp_path / "page.html")
        firefox.ask(f"(opline.update({{ time: [{window[0]}, {window[1]}], threads: true }}), 1)")
        firefox.ask(
            f"new Promise(done => {{ const look = () => {DRAWN} ? done(1) : requestAnimationFrame(look); look(); }})"
        )
        check_slices(demo, window, firefox.ask(SLICES))
        assert firefox.errors == []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded client and server, joined."""
    folder = tmp_path_factory.mktemp("recorded")
    packed = Path(__file__).parents[1] / "hosts" / "two-hosts-block.tar.xz"
    subprocess.run(["tar", "-xJf", packed, "-C", folder], check=True)
    given, out = folder / "two-hosts-block", folder / "cluster"
    assert main(["join", "-o", str(out), f"client={given}/client", f"server={given}/server"]) == 0
    return out


def hosts_of_stages(cluster: Path) -> Counter[tuple[int, str, int | None]]:
    """(op, host, tid) of all stages of the joined run."""
    with open_run(cluster, interruptible=False) as run:
        return Counter(run.rows("SELECT op_id, host, tid FROM stages SEMI JOIN ops USING (op_id)"))


@chromium
@pytest.mark.parametrize("held", ["file", "asked"])
def test_a_joined_run_has_lanes_by_host(
    held: str, cluster: Path, opened: Callable[..., Page], browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    if held == "file":
        check_hosts(cluster, opened(cluster, "#h=1"))
        return
    monkeypatch.setattr(pages, "HELD_ROWS", 0)
    with (
        open_run(cluster, interruptible=False) as run,
        Server(Pages([Viewed(run, "cluster", Selection(), False)])) as server,
    ):
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            check_hosts(cluster, browser.open(server.address, "#h=1"))
        finally:
            server.shutdown()
            thread.join()


def check_hosts(cluster: Path, page: Page) -> None:
    page.wait(DRAWN)
    drawn = page.ask(
        """opline.lanes.lanes.filter(l => !l.device).flatMap(l => l.slices.map(s =>
            [s.op.id, opline.lanes.run.head.hosts[l.host].name, l.label]))"""
    )
    found: Counter[tuple[int, str, int | None]] = Counter()
    for op, host, label in drawn:
        assert label.startswith(f"{host}:")
        done = label == f"{host}:block completion"
        found[op, host, None if done else int(label.rsplit(" ", 1)[1])] += 1
    assert found == hosts_of_stages(cluster)
    assert {host for _, host, _ in found} == {"client", "server"}
    order = page.ask("opline.lanes.lanes.map(l => l.host)")
    assert order == sorted(order), "one group for each host"
    devices = page.ask("opline.lanes.lanes.filter(l => l.device).map(l => [l.label, l.short, l.host])")
    assert devices == [["server:vda", "vda", 1]]
    client, server = page.ask("opline.lanes.run.head.hosts")
    document = json.loads((cluster / "cluster.json").read_text())
    bound = next(host for host in document["hosts"] if host["name"] == "server")
    assert (client["reference"], client["bound_max_ns"]) == (True, 0)
    assert (server["reference"], server["clock"]) == (False, "client")
    assert (server["bound_p50_ns"], server["bound_max_ns"]) == (bound["bound_p50_ns"], bound["bound_max_ns"])
    assert bound["bound_max_ns"] > 0
    heads = page.ask("[...document.querySelectorAll('#threads details tbody th')].map(h => h.textContent)")
    assert heads[0] == "client: all times are of this host's clock"
    assert heads[1].startswith("server: times are ±") and heads[1].endswith("on the clock of client")


def test_threads_of_two_hosts_with_one_number_are_two() -> None:
    tid, host = np.array([7, 7, 7, ABSENT, ABSENT, 0]), np.array([-1, 0, 1, 1, -1, 1])
    keys = thread_keys(tid, host)
    assert len(set(keys.tolist())) == 6
    assert [host_of_key(key) for key in keys.tolist()] == host.tolist()
