# SPDX-License-Identifier: MIT
"""`opline view` of a recording that goes on: ops appear when they are settled, stay what they are, and in the end it is
the page of the whole run.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.lib.browser import PROGRAM, Browser

from opline.capture.directory.leftovers import sweep
from opline_analyses.runs.run import open_run

OPLINE = Path(sys.executable).with_name("opline")
STORE = Path(__file__).parents[2] / "examples/demo-store/run"
ALL = 1 << 53
STATE = """(() => { const run = window.opline?.page.runs[0]; return run?.head.followed && run.answer ?
    [run.head.followed.until_ns, run.head.ops, opline.stats().sum, run.follows?.now ?? '',
     run.head.start_ns, run.head.followed.ago_ns] : null; })()"""


@contextmanager
def recording(folder: Path, seconds: int) -> Iterator[subprocess.Popen[str]]:
    """The demo store's benchmark, while it is recorded."""
    command = [str(p) for p in (OPLINE, "record", "-o", folder, "--model", "demo", "--", STORE, "--seconds", seconds)]
    with subprocess.Popen(
        [*command, "--rate", "300", "--qd", "4"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as recorder:
        while not (folder / "recording.json").exists():
            assert recorder.poll() is None, recorder.stdout and recorder.stdout.read()
            time.sleep(0.05)
        yield recorder
        recorder.communicate(timeout=60)


@contextmanager
def viewed(folder: Path) -> Iterator[str]:
    """The address."""
    with subprocess.Popen([OPLINE, "view", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as view:
        assert view.stdout is not None
        assert view.stderr is not None
        try:
            yield view.stdout.readline().strip()
        finally:
            view.send_signal(signal.SIGINT)
        _, said = view.communicate(timeout=30)
        assert "is still being recorded: the page follows it." in said
        assert "Traceback" not in said


@pytest.fixture
def swept(runtime: Path) -> Iterator[None]:
    """What a killed recorder leaves is removed, whatever becomes of the test."""
    yield
    sweep()


def asked(address: str, question: str) -> Any:
    with urllib.request.urlopen(f"{address}{question}", timeout=30) as answer:
        return json.load(answer)


@pytest.mark.live
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: ./check --browser installs it")
def test_the_page_follows_a_recording_to_its_end(tmp_path: Path, runtime: Path) -> None:
    folder = tmp_path / "rec"
    seen: dict[int, list[Any]] = {}  # what was said of each op while it was recorded
    starts: set[int] = set()
    with recording(folder, 12) as recorder, viewed(folder) as address, Browser() as browser:
        page = browser.open(
            address,
            ready="document.documentElement?.dataset.ready === '1' || document.querySelector('meta[http-equiv]')",
        )
        page.wait(STATE)
        states = []
        while recorder.poll() is None:
            try:
                found = page.ask(STATE)
            except RuntimeError:  # it is being loaded anew
                break
            if found is None:
                break
            states.append(found)
            until_ns, start_ns, ago_ns = found[0], int(found[4]), found[5]
            assert 0 <= time.monotonic_ns() - start_ns - until_ns - ago_ns < 30e9  # since the head was made
            if found[3] == "recording":
                region = asked(address, f"region?t0=0&t1={ALL}")
                starts.add(int(found[4]))
                assert region["all"]["ops"] == region["ops"] <= region["marked"]
                seen |= {row[0]: row[:4] for row in region["list"]}
            time.sleep(0.2)
        recorder.wait(60)
        counts = [ops for _, ops, *_ in states]
        assert counts == sorted(counts)
        assert len(set(counts)) > 1, states
        assert max(found[2] for found in states) > 0
        page.wait("document.documentElement?.dataset.ready === '1' && !opline.page.runs[0].head.followed")
        with open_run(folder) as run:
            ops = {op: rest for op, *rest in run.rows("SELECT op_id, begin_ns, latency_ns, tainted FROM ops")}
            (whole,) = run.row("SELECT count(*) FROM ops WHERE complete")
        stats = page.ask("opline.stats()")
        assert stats["sum"] + stats["over"] + stats["under"] == whole > counts[-1] * 0.5
        assert "recording" not in page.ask("document.getElementById('followed').textContent")
        assert page.errors == []
        assert {re.sub(r"/\d+/.*", "", r) for r in page.requests} == {address.removesuffix("/0/")}
    (start,) = starts
    assert len(seen) > 100
    for op, begin, latency, _ in seen.values():
        assert ops[op][:2] == [begin + start, latency]


@pytest.mark.live
@pytest.mark.usefixtures("swept")
def test_without_an_op_it_waits_and_a_killed_recorder_is_an_end(tmp_path: Path) -> None:
    folder = tmp_path / "rec"
    with subprocess.Popen(
        [OPLINE, "record", "-o", folder, "--model", "demo", "--", "sleep", "60"], stderr=subprocess.PIPE
    ) as recorder:
        while not (folder / "recording.json").exists():
            assert recorder.poll() is None
            time.sleep(0.05)
        with viewed(folder) as address:
            with urllib.request.urlopen(address, timeout=30) as answer:
                assert b"Waiting for the first op that is complete." in answer.read()
            recorder.kill()
            recorder.wait()
            deadline = time.monotonic() + 30
            while (state := asked(address, "news?t1=1&since=0")["state"]) != "over" and time.monotonic() < deadline:
                time.sleep(0.1)
            assert state == "over"
            with pytest.raises(urllib.error.HTTPError) as refused:  # as of any run without an op
                urllib.request.urlopen(address, timeout=30)
            assert b"No op to count" in refused.value.read()
