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
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lib.browser import PROGRAM, Browser
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import hostile_run

from opline.errors import OplineError
from opline_analyses.report import data
from opline_analyses.report.columns import decoded
from opline_analyses.runs.run import open_run
from opline_analyses.runs.selection import Selection
from opline_analyses.view.pages import Pages, Viewed
from opline_analyses.view.server import Server


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
                 "0/op/x", "0/?since=x", "0/?since=99999999999999999999", "0/?until=4", "0/x.json"):  # fmt: skip
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


def test_a_part_has_its_own_ops(server: Server, demo: Correlated) -> None:
    begins = sorted(row["begin_ns"] for row in demo.rows("ops"))
    page = ask(server, f"0/?since={begins[100]}&until={begins[200]}")[1].decode()
    head = json.loads(re.findall(r'<script type="application/json" id="head">(.*?)</script>', page)[0])["runs"][0]
    assert (head["ops"], head["start_ns"], head["part"]) == (100, str(begins[0]), True)


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: ./check --browser installs it")
def test_in_a_browser(server: Server, demo: Correlated, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the run were large: ops that the page holds rounded are asked for; a part of it is held in full."""
    rows = len(demo.rows("stages"))
    monkeypatch.setattr(data, "FULL_ROWS", rows - 1)
    monkeypatch.setattr(data, "DETAIL", 60)
    ops = sorted(demo.rows("ops"), key=lambda r: r["latency_ns"])
    address = f"http://127.0.0.1:{server.server_port}/{server.token}/0/"
    with Browser() as browser:
        page = browser.open(address)
        assert page.ask("opline.page.runs[0].full") is False
        known = page.ask("Array.from(opline.page.runs[0].detailOf).map((d, i) => d < 0 ? i : -1).filter(i => i >= 0)")
        ids = page.ask("Array.from(opline.page.runs[0].opIds)")
        op = next(row for row in ops if row["op_id"] == ids[known[len(known) // 2]])
        page.ask(f"(location.hash = '#op={op['op_id']}', 1)")
        page.wait(f"document.getElementById('op-note').textContent.startsWith('op {op['op_id']} ')")
        page.wait("document.querySelector('#op-table') !== null")
        stages = [r for r in demo.rows("stages") if r["op_id"] == op["op_id"]]
        told = page.ask("document.getElementById('op-note').textContent").replace("\u2009", "").replace("\u202f", "")
        assert re.sub(r"\D", "", told.split(" unattributed = ")[1].split("ns")[0]) == str(op["latency_ns"])
        first = min(row["begin_ns"] for row in ops)
        assert f"begins at {(op['begin_ns'] - first) / 1e9:.9f} s" in told
        names = page.ask("[...document.querySelectorAll('#op-table tbody tr')].map(r => r.children[2].textContent)")
        assert names == [r["stage"] for r in stages]
        assert page.requests == [address, f"{address}op/{op['op_id']}"]
        # a part: the middle tenth of the time, by the key
        span = page.ask("opline.page.runs[0].head.span_ns")
        page.ask(f"(opline.update({{op: null, time: [{span * 45 // 100}, {span * 55 // 100}]}}), 1)")
        page.press("f")
        page.wait("document.documentElement?.dataset.ready === '1' && opline.page.runs[0].full")
        inside = [r for r in ops if first + span * 45 // 100 <= r["begin_ns"] < first + span * 55 // 100]
        assert page.ask("opline.stats().selected") == len(inside)
        span = max(r["end_ns"] for r in inside) - min(r["begin_ns"] for r in inside)  # not from the run's start
        rate = round(len(inside) * 1e9 / span)
        subtitle = page.ask("document.getElementById('subtitle').textContent")
        said = re.search(r", ([\d\s]+)/s", subtitle)
        assert said is not None
        assert abs(int(re.sub(r"\s", "", said[1])) - rate) <= 1, subtitle
        page.press("0")
        page.wait("document.documentElement?.dataset.ready === '1' && !opline.page.runs[0].full")
        assert page.errors == []


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
