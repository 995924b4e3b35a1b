# SPDX-License-Identifier: MIT
"""`opline view`: who may ask and what is given; in a real browser, every op in full and a part in finer cells."""

from __future__ import annotations

import base64
import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lib.browser import PROGRAM, Browser
from tests.lib.build_run import P, RunBuilder
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import hostile_run

from opline.errors import OplineError
from opline_analyses.report.columns import decoded
from opline_analyses.runs.run import open_run
from opline_analyses.runs.selection import Selection
from opline_analyses.view import pages
from opline_analyses.view.pages import Pages, Viewed
from opline_analyses.view.server import Server
from opline_analyses.view.tables import Tables


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


@pytest.fixture
def server(demo: Correlated, tmp_path: Path) -> Iterator[Server]:
    hostile = hostile_run(tmp_path / "<b>run")
    with open_run(demo.path, interruptible=False) as one, open_run(hostile, interruptible=False) as two:
        runs = [Viewed(one, "demo", Selection(), False), Viewed(two, hostile.name, Selection(), False)]
        with Server(Pages(runs)) as running:
            thread = threading.Thread(target=running.serve_forever)
            thread.start()
            yield running
            running.shutdown()
            thread.join()


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers of an answer; ``path`` below the token's if it does not begin with a slash."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    whole = path if path.startswith("/") else f"/{server.token}/{path}"
    connection.request(method, whole, headers={"Host": f"127.0.0.1:{server.server_port}", **headers})
    answer = connection.getresponse()
    found = answer.status, answer.read(), dict(answer.getheaders())
    connection.close()
    return found


def test_only_who_knows_the_token_may_look(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    own = f"127.0.0.1:{server.server_port}"
    assert ask(server, "")[0] == ask(server, "", Origin=f"http://{own}")[0] == 200
    assert ask(server, "", Host=f"localhost:{server.server_port}")[0] == 200
    for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1", ""):
        assert ask(server, "", Host=host)[0] == 403
    for origin in ("http://evil.example", "null", f"https://{own}", f"http://localhost:{server.server_port}"):
        assert ask(server, "", Origin=origin)[0] == 403
    for path in ("/", "/x/", f"/{server.token}x/", f"/{server.token[:-1]}/", "/favicon.ico"):
        assert ask(server, path)[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(server, "", method)[0] == 501


def test_nothing_but_the_runs_is_given(server: Server) -> None:
    for path in ("2/", "0", "0/../../etc/passwd", "0/op/", "0/op/99999999", "0/op/999999999999999999", "0/op/-1",
                 "0/op/x", "0/cells", "0/cells?t1=4", "0/cells?t1=99999999999999999999", "0/region?t1=-1",
                 "0/x.json"):  # fmt: skip
        status, body, _ = ask(server, path)
        assert status == 404, path
        assert body.endswith(b"\n")
        assert b"Traceback" not in body
    status, body, headers = ask(server, "")
    assert b"&lt;b&gt;run" in body
    assert b"<b>run" not in body
    assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
    page = ask(server, "0/")[1].decode()
    assert "connect-src 'self';" in page
    assert server.token not in page


def test_an_op_is_given_in_full(server: Server, demo: Correlated) -> None:
    op = max(demo.rows("ops"), key=lambda r: r["latency_ns"])
    found = json.loads(ask(server, f"0/op/{op['op_id']}")[1])
    assert found["head"]["ops"] == 1
    blob = base64.b64decode(found["columns"])
    durations = decoded(found["head"]["columns"], blob, "detail.durations").tolist()
    assert durations == [r["duration_ns"] for r in demo.rows("stages") if r["op_id"] == op["op_id"]]


def answer(server: Server, question: str) -> Any:
    status, body, _ = ask(server, f"0/{question}")
    assert status == 200, body
    return json.loads(body)


@pytest.fixture
def large(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """As if the run were larger than a page holds."""
    monkeypatch.setattr(pages, "HELD_ROWS", 0)
    assert ask(server, "0/")[0] == 200
    return server


def cells_of(server: Server, question: str) -> dict[str, Any]:
    found = answer(server, question)
    directory, blob = found["head"]["columns"], base64.b64decode(found["columns"])
    return {**found["head"], **{name: decoded(directory, blob, name) for name in directory}}


def test_every_op_is_in_a_cell_of_its_time_and_latency(large: Server, demo: Correlated) -> None:
    ops = [r for r in demo.rows("ops") if r["complete"]]
    first = demo.core["first_ns"]
    span = max(r["end_ns"] for r in ops) - first
    begin = demo.first_op_ns
    t0, t1 = begin + (span - begin) // 3, begin + (span - begin) // 2
    for low, high in ((0, span + 1), (t0, t1)):
        found = cells_of(large, f"cells?t0={low}&t1={high}&columns=100")
        assert found["total"] == len(ops)
        edges = found["code_edges"].tolist()
        expected: dict[tuple[int, int], int] = {}
        inside = [r for r in ops if low <= r["begin_ns"] - first < high]
        for r in inside:
            code = max(k for k, edge in enumerate(edges) if edge <= r["latency_ns"])
            cell = ((r["begin_ns"] - first - low) // found["width_ns"], code)
            expected[cell] = expected.get(cell, 0) + 1
        at = found["cell.at"]
        counts = dict(
            zip(zip(at // found["codes"], at % found["codes"], strict=True), found["cell.count"], strict=True)
        )
        assert {(int(c), int(r)): int(n) for (c, r), n in counts.items()} == expected
        assert found["most_ns"] == max(r["latency_ns"] for r in inside)


def test_a_region_has_the_sums_that_the_run_has(large: Server, demo: Correlated) -> None:
    ops = {r["op_id"]: r for r in demo.rows("ops") if r["complete"]}
    first = demo.core["first_ns"]
    latencies = sorted(r["latency_ns"] for r in ops.values())
    span, begin = max(r["end_ns"] for r in ops.values()) - first, demo.first_op_ns
    page = ask(large, "0/")[1].decode()
    head = json.loads(re.findall(r'<script type="application/json" id="head">(.*?)</script>', page)[0])["runs"][0]
    names = [s["name"] for s in head["stages"]]
    regions = (
        (0, span + 1, 0, 1 << 62),
        (begin + (span - begin) // 4, begin + (span - begin) // 2, latencies[-400], 1 << 62),
        (0, span, 0, latencies[1500]),
    )
    for t0, t1, v0, v1 in regions:
        question = f"t0={t0}&t1={t1}&v0={v0}&v1={v1}"
        found = answer(large, f"region?{question}")
        marked = {
            op for op, r in ops.items() if t0 <= r["begin_ns"] - first < t1 and v0 <= r["latency_ns"] < v1
        }  # fmt: skip
        assert found["marked"] == found["ops"] == len(marked) > 0
        assert found["latency"] == str(sum(ops[op]["latency_ns"] for op in marked))
        sums = dict.fromkeys(names, 0)
        for row in demo.rows("stages"):
            if row["op_id"] in marked:
                sums[row["stage"]] += row["duration_ns"]
        assert dict(zip(names, map(int, found["stages"]), strict=True)) == sums
        slowest = sorted(marked, key=lambda op: (-ops[op]["latency_ns"], ops[op]["begin_ns"]))[:500]
        assert [row[0] for row in found["list"]] == slowest
        kinds = {k["name"]: k for k in answer(large, f"who?{question}")["kinds"]}
        kinds |= {k["name"]: k for k in answer(large, f"who?{question}&slow=1")["kinds"]}
        for column, name in (("class", "class"), ("object", "object"), ("length_bytes", "size")):
            of_all = Counter(r[column] for r in ops.values())
            of_marked = Counter(ops[op][column] for op in marked)
            rows = sorted((n, all_of) for _, n, all_of, _ in kinds[name]["values"])
            assert rows == sorted((of_marked[v], of_all[v]) for v in of_all)
        passed = {(r["op_id"], r["tid"]) for r in demo.rows("stages") if r["tid"] is not None}
        by_thread = Counter(tid for op, tid in passed if op in marked)
        threads = {label.rsplit(" ", 1)[1]: n for label, n, *_ in kinds["thread passed"]["values"]}
        assert threads == {str(tid): by_thread[tid] for tid in {t for _, t in passed}}
    assert answer(large, "checks?t1=1")["checks"][0][1] is True


def test_a_stage_and_a_filter_can_be_asked_for(large: Server, demo: Correlated) -> None:
    ops = {r["op_id"]: r for r in demo.rows("ops") if r["complete"]}
    span = max(r["end_ns"] for r in ops.values())
    page = ask(large, "0/")[1].decode()
    head = json.loads(re.findall(r'<script type="application/json" id="head">(.*?)</script>', page)[0])["runs"][0]
    stage = next(n for n, s in enumerate(head["stages"]) if s["name"] == "D2C")
    times: Counter[int] = Counter()
    for row in demo.rows("stages"):
        if row["stage"] == "D2C":
            times[row["op_id"]] += row["duration_ns"]
    found = cells_of(large, f"cells?t1={span}&columns=50&stage={stage}")
    assert (int(found["cell.count"].sum()), found["without"]) == (len(times), len(ops) - len(times))
    assert found["most_ns"] == max(times.values())
    kind = next(k for k in answer(large, f"who?t1={span}")["kinds"] if k["name"] == "object")
    label, _, whole, number = kind["values"][3]
    question = f"t1={span}&kind={kind['kind']}&value={number}"
    chosen = [r for r in ops.values() if r["object"] == label]
    assert len(chosen) == whole
    assert int(cells_of(large, f"cells?{question}")["cell.count"].sum()) == whole
    assert answer(large, f"region?{question}")["latency"] == str(sum(r["latency_ns"] for r in chosen))
    slowest = max(chosen, key=lambda r: r["latency_ns"])
    near = answer(large, f"near?{question}&v0={slowest['latency_ns'] - 1}&v1={slowest['latency_ns'] + 1}")
    assert near["list"][0][0] == slowest["op_id"]
    for wrong in (f"cells?t1={span}&stage=99", f"region?t1={span}&kind=99&value=0", f"region?t1={span}&kind=0&value=99",
                  "cells?t1=0", "nothing?t1=5", "cells?t1=x", "region?t0=5&t1=5"):  # fmt: skip
        assert ask(large, f"0/{wrong}")[0] == 404, wrong


def test_devices_of_a_part_count_its_requests(large: Server, demo: Correlated) -> None:
    first = demo.core["first_ns"]
    t0, t1 = demo.first_op_ns + 50_000_000, demo.first_op_ns + 90_000_000
    found = cells_of(large, f"devices?t0={t0}&t1={t1}")["devices"]
    wide = found["width_ns"] * found["bins"]
    steps = ("queue_ns", "getrq_ns", "insert_ns", "issue_ns", "complete_ns")
    inside: Counter[int] = Counter()
    for r in demo.rows("requests"):
        times = [r[s] - first for s in steps if r[s] is not None]
        begin = r["issue_ns"] - first if r["issue_ns"] is not None else times[0]
        if times[-1] >= t0 and begin < t0 + wide:
            inside[r["dev"]] += 1
    assert sorted(d["requests"] for d in found["list"]) == sorted(inside.values())
    assert sum(inside.values()) < len(demo.rows("requests"))


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: ./check --browser installs it")
def test_a_large_run_in_a_browser(large: Server, demo: Correlated) -> None:
    """What is looked at is asked for: the cells of the time shown, what is marked, an op in full, a click, a filter."""
    ops = sorted((r for r in demo.rows("ops") if r["complete"]), key=lambda r: r["latency_ns"])
    first = demo.core["first_ns"]
    address = f"http://127.0.0.1:{large.server_port}/{large.token}/0/"
    run = "opline.page.runs[0]"
    told = f"{run}.answer && !{run}.stale"
    with Browser() as browser:
        page = browser.open(address)
        page.wait(told)
        stats = page.ask("opline.stats()")
        assert stats["sum"] + stats["over"] + stats["under"] == stats["selected"] == len(ops)
        assert stats["sums"]["latency"] == str(sum(r["latency_ns"] for r in ops))
        page.wait(f"{run}.head.checks.length === 2")
        assert "2 of 2 checks" in page.ask("document.getElementById('chips').textContent")
        page.wait(f"{run}.dimensions.some(d => d.name === 'thread passed')")
        page.wait("document.querySelectorAll('[data-dimension=\"thread passed\"] tbody tr').length > 3")
        page.wait(f"{run}.head.devices && document.querySelector('#devices canvas') !== null")
        # the middle tenth, by the address; the whole of it is in finer cells
        span = page.ask(f"{run}.head.span_ns")
        begin = demo.first_op_ns
        t0, t1 = begin + (span - begin) * 45 // 100, begin + (span - begin) * 55 // 100
        page.ask(f"(location.hash = '#t={t0},{t1}&b={t0},{t1},{ops[-300]['latency_ns']},9007199254740991', 1)")
        page.wait(f"{run}.drawn.from_ns === {t0} && {told} && opline.state.region !== null")
        inside = [r for r in ops if t0 <= r["begin_ns"] - first < t1]
        page.frame()
        assert page.ask("opline.stats().sum") == len(inside)
        marked = [r for r in inside if r["latency_ns"] >= ops[-300]["latency_ns"]]
        page.wait(f"opline.stats().selected === {len(marked)}")
        assert f"{len(marked)} ops marked" in page.ask("document.getElementById('marked').textContent")
        law = page.ask("document.querySelector('.law').dataset.law")
        assert law == str(sum(r["latency_ns"] for r in marked))
        # the slowest of the list, in full
        page.press("j")
        op = max(marked, key=lambda r: r["latency_ns"])
        page.wait(f"document.getElementById('op-note').textContent.startsWith('op {op['op_id']} ')")
        page.wait("document.querySelector('#op-table') !== null")
        stages = [r for r in demo.rows("stages") if r["op_id"] == op["op_id"]]
        note = re.sub(r"[\u2009\u202f]", "", page.ask("document.getElementById('op-note').textContent"))
        assert re.sub(r"\D", "", note.split(" unattributed = ")[1].split("ns")[0]) == str(op["latency_ns"])
        assert f"begins at {(op['begin_ns'] - first) / 1e9:.9f} s" in note
        names = page.ask("[...document.querySelectorAll('#op-table tbody tr')].map(r => r.children[2].textContent)")
        assert names == [r["stage"] for r in stages]
        # a click in the picture opens the op that is nearest
        x, y = page.ask(
            f"""(() => {{ const h = opline.page.heats[0], r = h.over.getBoundingClientRect();
                return [r.left + h.x({op["begin_ns"] - first}), r.top + h.y({op["latency_ns"]})]; }})()"""
        )
        page.ask("(opline.update({op: null}), 1)")
        page.mouse("mousePressed", x, y, 1)
        page.mouse("mouseReleased", x, y)
        page.wait(f"opline.state.op === {op['op_id']}")
        # an op by its number in the address, that nobody has named yet
        other = ops[10]
        page.ask(f"(location.hash = '#op={other['op_id']}', 1)")
        page.wait(f"document.getElementById('op-note').textContent.startsWith('op {other['op_id']} ')")
        # a filter
        page.press("Escape")
        page.wait(told)
        page.ask("document.querySelector('[data-dimension=object] button').click()")
        name = page.ask("document.querySelector('[data-dimension=object] button').textContent")
        page.wait(f"opline.stats().selected === {sum(r['object'] == name for r in ops)}")
        assert page.errors == []
        assert {r.split("?")[0].rsplit("/", 1)[0] for r in page.requests} <= {address[:-1], f"{address}op"}


def test_the_command_serves_until_ctrl_c(demo: Correlated) -> None:
    program = Path(sys.executable).with_name("opline")
    with subprocess.Popen([program, "view", demo.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        assert p.stdout is not None
        assert p.stderr is not None
        address = p.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([\w-]{32})/0/", address)
        assert found is not None
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=30)
        connection.request("GET", f"/{found[2]}/0/")
        assert connection.getresponse().read().startswith(b"<!DOCTYPE html>")
        p.send_signal(signal.SIGINT)
        assert p.wait(20) == 130
        assert "Traceback" not in p.stderr.read()


def test_a_port_that_is_taken_is_said(server: Server, demo: Correlated) -> None:
    from opline_analyses.cli import parser_of
    from opline_analyses.commands import view

    args = parser_of("view").parse_args([str(demo.path), "--port", str(server.server_port)])
    with pytest.raises(OplineError, match=f"Cannot listen on 127.0.0.1, port {server.server_port}: Address already"):
        view.run(args)


def test_an_op_id_that_no_op_has_is_said(tmp_path: Path) -> None:
    """Ops are numbered from 0; a table by numbers that somebody made up would fill the memory."""
    run = RunBuilder()
    run.op([P("a", 1000), P("b", 2000)])
    run.rows["ops"][0]["op_id"] = 1 << 60
    with (
        open_run(run.write(tmp_path / "run"), interruptible=False) as opened,
        pytest.raises(OplineError, match="op_id that no op has: it is damaged"),
    ):
        Tables(opened, Selection(), False)


def test_of_a_recording_that_goes_on_only_new_stages_are_put_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What their order is asked of is most of a look, and at almost every look there is no new one."""
    run = RunBuilder()
    run.op([P("a", 0), P("b", 10, stage="z"), P("c", 30, stage="m")], op_class="c")
    whole = RunBuilder()
    whole.op([P("a", 0), P("b", 10, stage="z"), P("n", 15, stage="new"), P("c", 30, stage="m")], op_class="c")
    asked: list[str] = []
    ask = Tables.ask

    def noted(self: Tables, sql: str, *more: Any) -> Any:
        asked.append(sql)
        return ask(self, sql, *more)

    monkeypatch.setattr(Tables, "ask", noted)
    first, second = (one.write(tmp_path / name) for one, name in ((run, "first"), (whole, "second")))
    with open_run(first, interruptible=False) as early, open_run(second, interruptible=False) as late:
        tables = Tables(early, Selection(), False)
        names = [name for name, _ in tables.stages]
        assert names[:2] == ["z", "m"] and len(asked) == 2
        again = Tables(early, Selection(), False, tables)
        assert again.stages == tables.stages and len(asked) == 3
        later = Tables(late, Selection(), False, tables)
        assert [name for name, _ in later.stages] == [*names, "new"] and len(asked) == 5
