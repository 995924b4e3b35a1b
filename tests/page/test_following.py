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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.lib.browser import PATIENCE, PROGRAM, Browser, Page

from opline.capture.directory.leftovers import sweep
from opline_analyses.runs.run import open_run

OPLINE = Path(sys.executable).with_name("opline")
STORE = Path(__file__).parents[2] / "examples/demo-store/run"
ALL = 1 << 53
STATE = """(() => { const run = window.opline?.page.runs[0]; return run?.head.followed && run.answer ?
    [run.head.followed.until_ns, run.head.ops, opline.stats().sum, run.follows?.now ?? '',
     run.head.start_ns, run.head.followed.ago_ns, run.head.followed.anew] : null; })()"""


@contextmanager
def recording(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The demo store's benchmark, while it is recorded: until SIGINT."""
    command = [str(p) for p in (OPLINE, "record", "-o", folder, "--model", "demo", "--", STORE, "--seconds", 3600)]
    said = folder.with_suffix(".said")
    with (
        said.open("wb") as out,
        subprocess.Popen([*command, "--rate", "300", "--qd", "4"], stdout=out, stderr=out) as recorder,
    ):
        try:
            while not (folder / "recording.json").exists():
                assert recorder.poll() is None, said.read_text()
                time.sleep(0.05)
            yield recorder
        finally:
            recorder.send_signal(signal.SIGINT)


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


def state_of(page: Page) -> list[Any]:
    """STATE, once the page has one: it may be loading itself anew."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(RuntimeError):
            if found := page.ask(STATE):
                return list(found)
        time.sleep(0.05)
    raise AssertionError(page.errors)


@pytest.mark.live
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: ./check --browser installs it")
def test_the_page_follows_a_recording_to_its_end(tmp_path: Path, runtime: Path) -> None:
    folder = tmp_path / "rec"
    seen: dict[int, list[Any]] = {}  # what was said of each op while it was recorded
    starts: set[int] = set()
    counts: list[int] = []
    begun_ns = time.monotonic_ns()
    with recording(folder) as recorder, viewed(folder) as address, Browser() as browser:
        page = browser.open(
            address,
            ready="document.documentElement?.dataset.ready === '1' || document.querySelector('meta[http-equiv]')",
        )
        patience = time.monotonic() + 3 * PATIENCE
        while len(set(counts)) < 4 or len(seen) <= 100:  # it goes on until it is ended below
            assert recorder.poll() is None
            assert time.monotonic() < patience, (counts[-9:], len(seen), page.errors, page.ask(STATE))
            until_ns, ops, shown, _, start_ns, ago_ns, anew = state_of(page)
            assert begun_ns < int(start_ns) + until_ns + ago_ns <= time.monotonic_ns()  # when the head was made
            region = asked(address, f"region?t0=0&t1={ALL}")
            starts.add(int(start_ns))
            assert region["all"]["ops"] == region["ops"] <= region["marked"]
            if state_of(page)[-1] != anew:  # an event came late: all ops are read once more, and have other numbers
                seen, counts = {}, []
                continue
            counts.append(ops)
            seen |= {row[0]: row[:4] for row in region["list"]}
            time.sleep(0.2)
        assert counts == sorted(counts) and shown > 0
        recorder.send_signal(signal.SIGINT)
        recorder.wait()
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
