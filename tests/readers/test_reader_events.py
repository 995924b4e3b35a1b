# SPDX-License-Identifier: MIT
"""`opline events` against babeltrace2 itself: the same events, no more and no less, in the order of the raw clock.

Also the plug-in in graphs that are not ours, and what it refuses.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from tests.lib.recorded import LAB

import opline
from opline.model import load_model
from opline.readers.trace import find_traces
from opline_analyses.cli import main

PLUGINS = Path(opline.__path__[0])
LINE = re.compile(r"^\[(\d+)\] \(\S+\) (\S+ )?(\S+): \{ cpu_id = (\d+) \}")
OURS = re.compile(r"^(\d+) (\S+) (\S+) cpu (\d+) (\S+): \{")


def babeltrace2(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["babeltrace2", *args], text=True, capture_output=True, check=False)


def printed(capfd: pytest.CaptureFixture[str], *args: str | Path) -> list[str]:
    capfd.readouterr()
    assert main(["events", *map(str, args)]) == 0
    return capfd.readouterr().out.splitlines()


@pytest.mark.parametrize("name", ["app-sync-qd4-nvme", "app-uring-qd16-nvme"])
def test_the_events_are_babeltrace2s(
    name: str, trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    theirs = babeltrace2("--clock-cycles", str(trace(name))).stdout.splitlines()
    native, bt2 = (printed(capfd, trace(name), "--reader", reader) for reader in ("native", "bt2"))
    assert native == bt2
    assert len(bt2) == len(theirs)
    want, have = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for line in theirs:
        match = LINE.match(line)
        assert match, line
        cycles, _host, event, cpu = match.groups()
        want[str(int(cycles)), event, cpu] += 1
    for line in bt2:
        match = OURS.match(line)
        assert match, line
        cycles, _host, _channel, cpu, event = match.groups()
        have[cycles, event, cpu] += 1
    assert have == want


def test_as_many_events_as_babeltrace2_prints(trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    path = trace("ctf-mem-qd1")
    count = subprocess.run(["bash", "-c", f"babeltrace2 {path} | wc -l"], text=True, capture_output=True, check=True)
    native, bt2 = (printed(capfd, path, "--reader", reader) for reader in ("native", "bt2"))
    assert native == bt2
    assert len(bt2) == int(count.stdout) == 373_139


def test_the_order_is_the_raw_clocks(trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    """babeltrace2's muxer sorts by offset-adjusted time: 149 events come before one that is older."""
    path = trace("app-sync-qd4-nvme")
    muxed = babeltrace2("--clock-cycles", str(path)).stdout.splitlines()
    theirs = [int(line[1 : line.index("]")]) for line in muxed]
    assert sum(a > b for a, b in pairwise(theirs)) == 149
    ours = [int(line.split(" ", 1)[0]) for line in printed(capfd, path)]
    assert all(a <= b for a, b in pairwise(ours))


def test_what_is_shown(trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    path = trace("app-sync-qd4-nvme")
    everything = printed(capfd, path)
    first = int(everything[0].split(" ", 1)[0])
    block = printed(capfd, path, "--names", "block_rq_*")
    assert block == [line for line in everything if " block_rq_" in line.split(": {")[0]]
    assert printed(capfd, path, "--limit", "23") == everything[:23]
    window = printed(capfd, path, "--since", "1.5", "--until", "1.6")
    assert window
    for line in window:
        assert 1_500_000_000 <= int(line.split(" ", 1)[0]) - first < 1_600_000_000
    begin, end = window[0].split(" ", 1)[0], window[-1].split(" ", 1)[0]
    absolute = [begin.zfill(12), str(int(end) + 1).zfill(12)]  # shorter ones are seconds
    assert printed(capfd, path, "--since", absolute[0], "--until", absolute[1]) == window
    fields = next(line for line in everything if " lab:client_submit: " in line)
    assert re.search(r'\{ vpid = \d+, vtid = \d+, .*procname = "\w+" \}, \{ oid = "obj\.\d+", op_id = 0,', fields)


def test_a_reader_of_the_pipe_that_leaves(trace: Callable[[str], Path]) -> None:
    command = (
        f"{sys.executable} -m opline_analyses events {trace('app-sync-qd4-nvme')} | head -n 2; exit ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", command], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 2)


def test_a_full_disk_is_said(trace: Callable[[str], Path]) -> None:
    command = [sys.executable, "-m", "opline_analyses", "events", str(trace("app-sync-qd4-nvme"))]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "opline: Cannot write the events: No space left on device.\n"


@pytest.fixture(scope="module")
def plan() -> str:
    """The model as a string literal of babeltrace2's --params."""
    return json.dumps(load_model(str(LAB)).plan_json())


def sink(plan: str, out: Path) -> list[str]:
    return ["--component=ops:sink.opline.ops", f'--params=plan={plan},path="{out}"']


def test_the_plug_in_in_a_graph_of_ones_own(plan: str, trace: Callable[[str], Path], tmp_path: Path) -> None:
    """Composed by hand, port by port, and behind babeltrace2's muxer: a transition list for each of the 3000 ops."""
    folders = find_traces(trace("app-sync-qd4-nvme"))
    sources = [
        word
        for i, folder in enumerate(folders)
        for word in (f"--component=s{i}:source.ctf.fs", f'--params=inputs=["{folder}"]')
    ]
    connected = [f"--connect=s{i}:ops" for i in range(len(folders))]
    plugins = f"--plugin-path={PLUGINS}"
    by_hand = babeltrace2(plugins, "run", *sources, *sink(plan, tmp_path / "a"), *connected)
    assert (by_hand.returncode, by_hand.stderr) == (0, "")
    lists = (tmp_path / "a").read_text()
    assert len(re.findall(r"^op \d+ \S+ \S+ latency_ns=\d+$", lists, re.MULTILINE)) == 3000
    muxed = babeltrace2(plugins, *sink(plan, tmp_path / "b"), str(trace("app-sync-qd4-nvme")))
    assert (muxed.returncode, muxed.stderr) == (0, "")
    assert len(re.findall(r"^op ", (tmp_path / "b").read_text(), re.MULTILINE)) == 3000


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ("", "parameter plan is wanted"),
        ('plan="{"', "parse error"),
        ('core=+4096,cookie="another"', "another build"),
        ("core=+4096", "another build"),
        ('plan="{}",tolerant=3', "tolerant is to be a boolean"),
    ],
)
def test_what_the_plug_in_refuses(params: str, said: str, trace: Callable[[str], Path]) -> None:
    options = ["--component=ops:sink.opline.ops", *([f"--params={params}"] if params else [])]
    done = babeltrace2(f"--plugin-path={PLUGINS}", *options, str(trace("app-sync-qd4-nvme")))
    assert done.returncode != 0
    assert said in done.stderr


def test_a_clock_that_does_not_count_nanoseconds(
    trace: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """2 GHz instead of 1: every time is half of what it was."""
    path = shutil.copytree(trace("app-sync-qd4-nvme"), tmp_path / "trace")
    for metadata in path.rglob("metadata"):
        content = metadata.read_bytes()
        assert content.count(b"freq = 1000000000;") == 1
        metadata.write_bytes(content.replace(b"freq = 1000000000;", b"freq = 2000000000;"))
    before = [int(line.split(" ", 1)[0]) for line in printed(capfd, trace("app-sync-qd4-nvme"), "--limit", "1009")]
    for reader in ("native", "bt2"):
        after = [int(line.split(" ", 1)[0]) for line in printed(capfd, path, "--reader", reader, "--limit", "1009")]
        assert after == [ns // 2 for ns in before]
