# SPDX-License-Identifier: MIT
"""`opline top`: what its screen shows is what a recording's views say, keys do what they are said to do, and a real
terminal is as it was afterwards.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import struct
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest
from tests.lib.io_runs import ZERO_NS
from tests.live.test_live import MARK, NUMBERS, record, sign

from opline.capture.sources.livesource import lacking
from opline_analyses.block.iostat import Row
from opline_analyses.cli import main, parser_of
from opline_analyses.intervals.intervals import Cell
from opline_analyses.live.top import Screen

SECOND = 10**9


def rows(*devices: tuple[str, int, int]) -> list[Row]:
    """A name, reads and writes in one second; a read takes 100 us, a write 1 ms."""
    found = []
    for name, reads, writes in devices:
        both = Cell(reads, reads * 100_000, 1, 2, reads * 4096), Cell(writes, writes * 1_000_000, 1, 2, writes * 512)
        found.append(Row(0, SECOND, name, *both, Cell(), Cell(), SECOND, 0, 0))
    return found


def screen() -> Screen:
    threads = {
        "fio:7": Cell(900, 900_000, 5, 2000, 900 * 4096),
        "dd\x1b[2J:9": Cell(3, 9_000_000, 5, 8_000_000, 3 << 20),
    }
    slow = {"comm": "dd", "tid": 9, "latency_ns": 8_000_000, "rwbs": "WS", "dev": 8 << 20, "sector": 4096, "bytes": 512}
    return Screen(rows(("sdb", 10, 0), ("sda", 3, 900)), threads, [slow | {"kind": "write"}], {8 << 20: "sda"}, 12.0)


def order(found: Screen, names: tuple[str, ...]) -> list[str]:
    lines = found.lines(100, 24)
    return [word for line in lines for word in line.split()[:1] if word in names]


def test_keys_sort_filter_choose_and_quit() -> None:
    found = screen()
    assert order(found, ("sda", "sdb", "fio:7")) == ["sda", "sdb", "fio:7"]
    assert not found.press("i") and order(found, ("sda", "sdb")) == ["sdb", "sda"], "by reads"
    found.press("i")
    assert found.kind == "writes" and order(found, ("sda", "sdb")) == ["sda", "sdb"]
    for _ in range(3):
        found.press("s")
    assert found.sort == "name" and order(found, ("sda", "sdb")) == ["sda", "sdb"]
    for key in "/sdbq\x7f\n":
        assert not found.press(key), "q is a letter of the filter"
    assert found.pattern == "sdb" and order(found, ("sda", "sdb", "fio:7", "dd:9")) == ["sdb"]
    for key in "/x\x1b":
        found.press(key)
    assert found.pattern == "" and not found.press("f") and found.frozen and found.press("q")


def test_it_fits_and_obeys_no_name() -> None:
    for width, height in ((100, 24), (40, 12), (10, 3), (1, 1)):
        lines = screen().lines(width, height)
        assert len(lines) == height and all(len(line) <= width for line in lines)
    text = "\n".join(screen().lines(120, 30))
    assert "\x1b" not in text and "dd\\x1b[2J:9" in text and "8 ms" in text


def test_a_slow_io_opens_with_its_steps() -> None:
    """What was not seen is left out; the numbers are the differences; a number without an I/O opens nothing."""
    found = screen()
    steps = {"queue_ns": 1_000_000, "first_issue_ns": 3_000_000, "issue_ns": 5_000_000, "complete_ns": 11_000_000}
    found.slowest = [found.slowest[0] | steps | {"issue_comm": "kworker", "issue_tid": 4, "in_flight": 3, "error": 5}]
    for key, opened in (("2", False), ("1", True), ("\x1b", False), ("1", True)):
        assert not found.press(key) and (found.opened is not None) is opened
    text = "\n".join(found.lines(80, 24))
    assert re.findall(r"^([QGIDC]) [a-z ]*[a-z](?: +([\d.]+ [mu]s)|  )", text, re.MULTILINE) == [
        ("Q", ""), ("D", "2 ms"), ("D", "2 ms"), ("C", "6 ms"),
    ]  # fmt: skip
    assert "kworker:4" in text and "3 others at the device" in text and "error 5" in text and "\x1b" not in text
    assert "Esc closes it" in text and "fio:7" not in text
    found.slowest = []
    assert "kworker:4" in "\n".join(found.lines(80, 24)), "it stays, though the screen goes on"


def test_off_a_terminal_it_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["top"]) == 2
    err = capfd.readouterr().err
    assert "top needs a terminal: `opline live iostat -x`" in err and len(err.splitlines()) == 1
    with pytest.raises(SystemExit):
        parser_of("top").parse_intermixed_args(["--sort", "mood"])


PROGRAM = """
import sys, time
sys.path.insert(0, {root!r})
from tests.live.test_top import events
from opline_analyses.cli import parser_of
from opline_analyses.live.terminal import restore
from opline_analyses.live.top import Top
from opline_analyses.live.watch import RingStream
args = parser_of("top").parse_intermixed_args(["1"])
stream = RingStream(lambda *now: Top(args, *now), lambda piece: None, lambda: {{8 << 20: "sda"}})
for data in events():
    stream.feed(data)
    stream.look()
while not stream.view.done:
    time.sleep(0.02)
    stream.look()
stream.end()
restore()
print("left as it was", flush=True)
"""


def events() -> list[bytes]:
    """40 writes of 1 ms in the first two seconds, and a third second that has begun, so that these two are over."""
    found = [sign(MARK, ZERO_NS)]
    for n in range(40):
        at = ZERO_NS + n * 40_000_000
        fields = {"rq": 100 + n, "sector": 8 * n, "nr_sector": 8, "bytes": 4096, "dev": 8 << 20, "rwbs": 1, "tid": 77}
        for name, when in (
            ("block_getrq", at),
            ("block_rq_issue", at + 1000),
            ("block_rq_complete", at + 1_001_000 + n),
        ):
            found.append(record(NUMBERS[name], when, comm="writer", **fields))
    return [b"".join([*found, sign(MARK, ZERO_NS + SECOND - 1)]), sign(MARK, ZERO_NS + 5 * SECOND // 2)]


def test_on_a_real_terminal(tmp_path: Path) -> None:
    """The devices' rates, the thread and its I/Os appear; q ends it, and echo and the cursor are back."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(root=str(Path(__file__).resolve().parents[2])))
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, [sys.executable, str(program)], os.environ | {"TERM": "xterm"})
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    before = termios.tcgetattr(terminal)[3]
    text = b""

    def until(wanted: bytes) -> None:
        nonlocal text
        while wanted not in text and select.select([terminal], [], [], 20)[0]:
            try:
                text += os.read(terminal, 1 << 16)
            except OSError:
                break
        assert wanted in text, text[-2000:]

    until(b"opline top  1.0 s")
    until(b"writer:77")
    assert b"sda" in text and b"f freeze" in text
    assert not termios.tcgetattr(terminal)[3] & termios.ECHO
    os.write(terminal, b"s")
    until(b"sort: bytes")
    os.write(terminal, b"1")
    until(b"G request allocated")
    until(b"D issued to the driver")
    until(b"C completed")
    os.write(terminal, b"\x1bf")
    until(b"FROZEN")
    os.write(terminal, b"q")
    until(b"left as it was")
    assert termios.tcgetattr(terminal)[3] == before
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.live
def test_a_command_is_run_and_what_it_wrote_comes_afterwards() -> None:
    if why := lacking():
        pytest.skip(why)
    program = [sys.executable, "-m", "opline_analyses", "top", "0.2", "--", "sh", "-c", "echo written; sleep 2; exit 7"]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, program, os.environ | {"TERM": "xterm"})
    text = b""
    with contextlib.suppress(OSError):  # it has ended
        while select.select([terminal], [], [], 60)[0] and (more := os.read(terminal, 1 << 16)):
            text += more
    if b"BPF is not permitted" in text:
        pytest.skip("BPF is not permitted")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert text.rstrip().endswith(b"written") and text.count(b"written") == 1, "not into the screen"
