# SPDX-License-Identifier: MIT
"""`opline top` and `opline live` with a model: the numbers are those of the run that the recording makes, and nothing
of a recording that nobody wants to keep stays behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.lib.build_run import small_run
from tests.lib.recorded import Rows, RunOf

from opline.capture.sources.livesource import lacking
from opline.store.arrow import arrow_schema
from opline.store.schema import BY_NAME
from opline_analyses.cli import main, parser_for, parser_of
from opline_analyses.commands.live import EXAMPLES, Chosen
from opline_analyses.intervals.intervals import Cell, Grid
from opline_analyses.live.due import Due
from opline_analyses.live.hist import Hist
from opline_analyses.live.listed import Log, Outliers, tell_never_due
from opline_analyses.live.ops_now import OpsNow, OpsTally, class_lines, op_lines, p99, slow_lines, stage_lines
from opline_analyses.live.recorded import TABLES
from opline_analyses.live.snapshot import Snapshot
from opline_analyses.live.stream import Stream
from opline_analyses.live.top import Screen
from opline_analyses.runs.run import open_run

STORE = Path(__file__).parents[2] / "examples/demo-store/run"
OPLINE = Path(sys.executable).with_name("opline")
STEP_NS = 100_000_000


def tables_of(path: Path) -> dict[str, Any]:
    return {name: pq.read_table(path / f"{name}.parquet").cast(arrow_schema(BY_NAME[name])) for name in TABLES}


class Recorded:
    """The tables of a run, as a recording would have given them: in pieces, and anew when it is told to."""

    def __init__(self, path: Path) -> None:
        with open_run(path) as run:
            self.first_ns, self._last_ns = run.core("first_ns"), run.core("last_ns")
        self._whole = tables_of(path)
        self.until_ns: int | None = self.first_ns
        self._before = 0
        self.processes: dict[int, int] = {}

    def _between(self, first_ns: int, until_ns: int) -> dict[str, Any]:
        ends = {
            name: table["begin_ns"].to_numpy() + table["duration_ns"].to_numpy()
            if name == "stages"
            else table["complete_ns" if name == "requests" else "end_ns"].fill_null(self._last_ns).to_numpy()
            for name, table in self._whole.items()
        }
        op_ends = dict(zip(self._whole["ops"]["op_id"].to_pylist(), ends["ops"].tolist(), strict=True))
        ends["stages"] = [op_ends[op] for op in self._whole["stages"]["op_id"].to_pylist()]  # they settle with their op
        return {
            name: Rows(table.filter([first_ns <= end < until_ns for end in ends[name]]))
            for name, table in self._whole.items()
        }

    def settled(self) -> dict[str, Any]:
        assert self.until_ns is not None
        first, self._before = self._before, self.until_ns
        return self._between(first, self.until_ns)

    def again(self) -> None:
        self._before = 0

    def under_way(self) -> dict[str, Any]:
        return {name: Rows(table.slice(0, 0)) for name, table in self._whole.items()}

    def losses(self) -> dict[str, int]:
        return {}

    def finish(self) -> None:
        self.until_ns = self._last_ns + 1


def test_an_interval_has_the_ops_that_ended_in_it_and_all_their_stages(run_of: RunOf) -> None:
    path = run_of("demo-qd4").path
    with open_run(path) as run:
        zero_ns = run.core("first_ns")
        ops = run.rows(
            f"""SELECT (end_ns - {zero_ns}) // {STEP_NS}, class, count(*), sum(latency_ns), max(latency_ns),
                quantile_disc(latency_ns, 0.99::DECIMAL(4,2)) FROM ops WHERE complete AND NOT tainted GROUP BY ALL"""
        )
        stages = run.rows(
            f"""SELECT (o.end_ns - {zero_ns}) // {STEP_NS}, o.class, s.stage, sum(s.duration_ns)::BIGINT
                FROM stages s JOIN ops o USING (op_id) WHERE complete AND NOT tainted GROUP BY ALL"""
        )
    snapshot = Snapshot(zero_ns, dict)
    tally = OpsTally(parser_of("top").parse_intermixed_args([]), snapshot, Grid(zero_ns, STEP_NS))
    given: dict[str, Any] = {name: Rows(table) for name, table in tables_of(path).items()}
    snapshot.show(given, {})
    tally.take(snapshot)
    intervals = range(max(index for index, *_ in ops) + 1)
    found = {index: tally.close(index) for index in intervals}
    assert {(i, c, now.classes[c][0].count, now.classes[c][0].total, now.classes[c][0].most)
            for i, now in found.items() for c in now.classes} == {row[:5] for row in ops}  # fmt: skip
    assert {(i, *place, cell.total) for i, now in found.items() for place, cell in now.stages.items()} == set(stages)
    for index, name, *_, quantile in ops:
        assert quantile <= found[index].classes[name][1] <= quantile * 1.008
    slow = [op for now in found.values() for op in now.slowest]
    assert slow and all(sum(ns for *_, ns in op["stages"]) <= op["latency_ns"] for op in slow)
    assert tally.late == 0


def test_rows_that_come_anew_are_counted_once(run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    """A recording of which some came late is read once more from its begin: intervals that were shown stay."""
    path = run_of("demo-qd4").path
    args = parser_for(Chosen("hist")).parse_intermixed_args(["0.1", "--of", "ops", "--per", "class", "--json"])
    source, out = Recorded(path), list[bytes]()
    stream = Stream(lambda *now: Hist(args, *now), out.append, source, dict)
    stream.begin()
    assert stream.view is not None and source.until_ns is not None
    for step in range(1, 8):
        source.until_ns += step * 30_000_000
        if step in (3, 6):
            source.again()
            stream.view.again()
        stream.look()
    stream.end()
    ours = [i for piece in out for line in piece.splitlines() for i in json.loads(line)["intervals"]]
    capfd.readouterr()
    assert main(["hist", str(path), "0.1", "--of", "ops", "--per", "class", "--json"]) == 0
    theirs = json.loads(capfd.readouterr().out)["intervals"]
    assert [i for i in ours if i["groups"]] == [i for i in theirs if i["groups"]]


def rows_of(pieces: list[bytes]) -> list[dict[str, Any]]:
    """Objects, one a line; an op's number is the core's own."""
    return [json.loads(line) | {"id": 0, "op_id": 0} for piece in pieces for line in piece.splitlines()]


def look_at_steps(source: Recorded, stream: Stream, anew: Sequence[int]) -> None:
    """A look now and then while the ops go on; at some of them all rows come anew."""
    stream.begin()
    assert stream.view is not None and source.until_ns is not None
    source.until_ns += 550_000_000
    for step in range(1, 8):
        source.until_ns += 40_000_000
        if step in anew:
            source.again()
            stream.view.again()
        stream.look()
    stream.end()


@pytest.mark.parametrize("of", ["ops", "stages", "requests"])
@pytest.mark.parametrize("anew", [(), (3, 6), (7,)])
def test_a_log_has_each_row_once_and_in_order_also_anew(
    run_of: RunOf, capfd: pytest.CaptureFixture[str], of: str, anew: tuple[int, ...]
) -> None:
    path = run_of("demo-qd4").path
    args = parser_for(Chosen("log")).parse_intermixed_args(["--of", of, "--json"])
    source, out = Recorded(path), list[bytes]()
    stream = Stream(lambda *now: Log(args, *now), out.append, source, dict)
    look_at_steps(source, stream, anew)
    ours = rows_of(out)
    assert len(out) > 3, "while it goes on"
    assert stream.view is not None
    capfd.readouterr()
    assert main(["log", str(path), "--of", of, "--json"]) == 0
    theirs = rows_of([capfd.readouterr().out.encode()])
    assert sorted(ours, key=json.dumps) == sorted(theirs, key=json.dumps)
    if of == "stages":  # they come with their op
        ends = {row["op_id"]: row["end_ns"] for row in run_of("demo-qd4").rows("ops")}
        shown = [json.loads(line) for piece in out for line in piece.splitlines()]
        order = [(ends[row["op_id"]], row["end_ns"]) for row in shown]
        assert order == sorted(order) and "in the order of their ops' ends" in " ".join(EXAMPLES.split())
    else:
        assert [row["end_ns"] for row in ours] == [row["end_ns"] for row in theirs]
    assert stream.view.counted == len(theirs)


def test_rows_that_came_too_late_are_said(capfd: pytest.CaptureFixture[str]) -> None:
    """Rows that are there only when all come anew, among those that were shown: they are not shown, and not silent."""
    due = Due()
    due.add([(n, {"id": n, "end_ns": n}) for n in (1, 3, 7)])
    assert [row["id"] for row in due.take(5)] == [1, 3]
    due.again()
    due.add([(n, {"id": n, "end_ns": n}) for n in (1, 2, 3, 6, 7)])
    assert [row["id"] for row in due.take()] == [6, 7]
    tell_never_due(due, "op")
    assert "1 op came too late to be shown" in capfd.readouterr().err
    due.again()
    due.add([(1, {"id": 1, "end_ns": 1})])
    assert due.never_due == 0


@pytest.mark.parametrize("anew", [False, True])
def test_slow_ops_are_told_once_with_statistics_per_class(
    run_of: RunOf, capfd: pytest.CaptureFixture[str], anew: bool
) -> None:
    path = run_of("demo-qd4").path
    words = ["0.1", "900", "--of", "ops", "--limit", "99999", "--json"]
    args = parser_for(Chosen("outliers")).parse_intermixed_args(words)
    source, out = Recorded(path), list[bytes]()
    stream = Stream(lambda *now: Outliers(args, *now), out.append, source, dict)
    look_at_steps(source, stream, (3, 6) if anew else ())
    said = rows_of(out)
    capfd.readouterr()
    assert main(["outliers", str(path), *words, "--sort", "time"]) == 0
    document = json.loads(capfd.readouterr().out)
    slow = [row for row in said if "latency_ns" in row]
    assert len(slow) > 10
    assert [row["latency_ns"] for row in slow] == [row["latency_ns"] for row in document["outliers"]]
    assert all(row["latency_ns"] // 1000 > 900 and row["class"] in ("read", "write") for row in slow)
    ours = [row["classes"] for row in said if row.get("classes")]
    assert ours == [i["classes"] for i in document["intervals"] if i["classes"]]
    assert sum(document["outliers_by_class"].values()) == len(slow)


def now() -> OpsNow:
    slow = {"class": "write", "comm": "a\x1b[2J", "tid": 7, "bytes": 512, "latency_ns": 9_000_000}
    slow["stages"] = [("queue", "wait", 1_000_000), ("D2C", "device", 7_500_000)]
    return OpsNow(
        {"write": (Cell(10, 20_000_000, 5, 9_000_000), 9_000_000), "read": (Cell(40, 4_000_000, 5, 200_000), 200_000)},
        {("write", "queue"): Cell(10, 4_000_000), ("write", "D2C"): Cell(10, 15_000_000),
         ("read", "D2C"): Cell(40, 4_000_000)},
        [slow],
    )  # fmt: skip


def test_stages_are_those_of_the_classes_that_are_meant() -> None:
    every = "\n".join(stage_lines(now(), lambda name: True, 9))
    assert every.split() == ["stage", "share%", "per", "op", "D2C", "79.2", "380", "us", "queue", "16.7", "80", "us",
                             "(no", "stage)", "4.2", "20", "us"]  # fmt: skip
    assert [line.split()[0] for line in stage_lines(now(), lambda name: name == "read", 9)] == ["stage", "D2C"]
    assert "2 more stages" in "\n".join(stage_lines(now(), lambda name: True, 2))
    ordered = [line.split()[0] for line in class_lines(now(), 2.0, "latency", lambda name: True, 9)]
    assert ordered == ["op", "write", "read"]
    assert [line.split()[:2] for line in class_lines(now(), 2.0, "ios", lambda name: True, 9)][1] == ["read", "20"]


def test_a_slow_op_opens_with_its_stages() -> None:
    screen = Screen(ops=now(), says="0.8 s behind")
    assert "1 write" in "\n".join(slow_lines(now().slowest, 3)) and "D2C 83%" in "\n".join(slow_lines(now().slowest, 3))
    assert screen.press("1") is False
    text = "\n".join(screen.lines(80, 24))
    assert "0.8 s behind" in text and "a\\x1b[2J:7, 512 bytes: 9 ms" in text and "\x1b" not in text
    assert [line.split()[0] for line in text.splitlines()[4:7]] == ["queue", "D2C", "(no"], text
    assert "2 more stages" in "\n".join(op_lines(now().slowest[0], 4))
    for size in ((80, 24), (40, 8), (3, 2)):
        lines = screen.lines(*size)
        assert len(lines) == size[1] and all(len(line) <= size[0] for line in lines)
    screen.press("\x1b")
    assert "op class" in "\n".join(screen.lines(80, 24))


def test_the_percentile_is_a_value_that_was_there() -> None:
    assert p99({3: Cell(98, 0, 1, 30), 4: Cell(1, 0, 1, 40), 9: Cell(1, 0, 1, 90)}) == 40
    assert p99({3: Cell(1, 0, 1, 30)}) == 30


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["live", "hist", "--of", "ops"], "with --model also ops"),
        (["live", "hist", "--keep", "x"], "about the recording that --model makes"),
        (["live", "hist", "--by", "process"], "--by process: of a run"),
        (["live", "iostat", "--by", "object"], "--by object: of a run"),
        (["live", "log", "--of", "bios", "--model", "demo", "--", "true"], "--of bios: not with --model"),
        (["live", "hist", "--model", "demo"], "--model needs -- COMMAND, or -p PID"),
    ],
)
def test_what_makes_no_sense_is_said(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    err = capfd.readouterr().err
    assert said in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("of", ["ops", "stages"])
def test_iostat_counts_block_io_live_too(of: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Reads and writes are its columns: ops are refused in the same words, before anything is recorded."""
    run = str(small_run(tmp_path / "run"))
    live = ["live", "iostat", "1", "--of", of]
    said = []
    for words in (["iostat", run, "--of", of], [*live, "--model", "syscalls", "--", "true"], live):
        assert main(words) == 2
        said.append(capfd.readouterr().err)
    assert len(set(said)) == 1, said
    assert f"--of {of}: iostat counts block I/O; `opline hist --of {of}` counts {of}." in said[0]


def needs_capture() -> None:
    if why := lacking():
        pytest.skip(why)


@pytest.mark.live
def test_live_ops_are_those_of_the_recording_and_of_the_benchmark(tmp_path: Path, runtime: Path) -> None:
    """Interval by interval, while it runs; in the end every op that the benchmark says it made."""
    needs_capture()
    kept = tmp_path / "kept"
    argv = [OPLINE, "live", "hist", "0.5", "--of", "ops", "--per", "class", "--json", "--model", "demo", "--keep", kept]
    done = subprocess.run(
        [str(a) for a in [*argv, "--", STORE, "--seconds", "4", "--rate", "200", "--qd", "4"]],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    ours = [i for line in done.stdout.splitlines() for i in json.loads(line)["intervals"]]
    theirs = json.loads(
        subprocess.run(
            [str(a) for a in (OPLINE, "hist", kept, "0.5", "--of", "ops", "--per", "class", "--json")],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
    )["intervals"]
    assert [i for i in ours if i["groups"]] == [i for i in theirs if i["groups"]]
    (made,) = (int(line.split()[-1]) for line in done.stderr.splitlines() if line.startswith("Total writes made"))
    counted = sum(group["count"] for i in ours for group in i["groups"])
    # a busy machine loses events: ops are tainted
    told = re.search(r"of \d+ ops (?:is|are) not counted: (.*)\.", done.stderr)
    assert counted + sum(map(int, re.findall(r"(\d+) (?:over|incomp)", told[1] if told else ""))) == made
    assert f"opline: {counted} ops counted; recorded: " in done.stderr


@pytest.mark.live
def test_live_log_of_ops_is_that_of_the_recording(tmp_path: Path, runtime: Path) -> None:
    needs_capture()
    words = ["--of", "ops", "--json"]
    argv = [OPLINE, "live", "log", *words, "--model", "demo", "--keep", tmp_path / "kept"]
    done = subprocess.run(
        [str(a) for a in [*argv, "--", STORE, "--seconds", "2", "--rate", "200", "--qd", "4"]],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    theirs = subprocess.run(
        [str(a) for a in (OPLINE, "log", tmp_path / "kept", *words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert rows_of([done.stdout.encode()]) == rows_of([theirs.stdout.encode()]) != []


@pytest.mark.live
def test_top_shows_ops_while_they_happen_and_leaves_nothing(runtime: Path, tmp_path: Path) -> None:
    """The command goes on until all has been seen."""
    needs_capture()
    seen = tmp_path / "seen"
    again = f"until [ -e {seen} ]; do {STORE} --seconds 1 --rate 200 --qd 4; done"
    before = set(Path(tempfile.gettempdir()).glob("opline-top-*"))
    words = ["top", "0.5", "--model", "demo", "--", "sh", "-c", again]
    child, terminal = pty.fork()
    if child == 0:
        argv = [sys.executable, "-m", "opline_analyses", *(str(word) for word in words)]
        os.execve(sys.executable, argv, os.environ | {"TERM": "xterm"})
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    text = b""

    def until(wanted: bytes) -> None:
        nonlocal text
        deadline = time.monotonic() + 60
        while wanted not in text and time.monotonic() < deadline and select.select([terminal], [], [], 60)[0]:
            with contextlib.suppress(OSError):
                text += os.read(terminal, 1 << 16)
        assert wanted in text, text[-3000:]

    until(b"s behind")
    until(b"op class")
    until(b"request in socket")
    os.write(terminal, b"1")
    until(b"took  share%")
    os.write(terminal, b"\x1b")
    seen.touch()
    until(b"Total writes made")
    with contextlib.suppress(OSError):
        while more := os.read(terminal, 1 << 16):
            text += more
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert b"Traceback" not in text
    assert set(Path(tempfile.gettempdir()).glob("opline-top-*")) <= before
