# SPDX-License-Identifier: MIT
"""What mail programs, terminals and logs put around a text is taken off: each format is read as without it."""

from __future__ import annotations

import csv
import io
import json
import quopri
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from opline.readers.carriage import Carriage
from opline_analyses.cli import main

Captured = pytest.CaptureFixture[str]
REQUESTS = [(f"793.{100000 + 300 * n}", f"793.{100050 + 300 * n}") for n in range(6)]
IOSNOOP = "STARTs          ENDs            COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n"
BT = "{{ cpu_id = 0 }}, {{ dev = 8388608, sector = 8, nr_sector = 8, rwbs = 1 }}\n"
TEXTS = {
    "perf": "".join(
        f"    fio  10 [001]   {issue}: block:block_rq_issue: 8,0 W 4096 () {8 + n} + 8 [fio]\n"
        f"    fio  10 [001]   {complete}: block:block_rq_complete: 8,0 W () {8 + n} + 8 [0]\n"
        for n, (issue, complete) in enumerate(REQUESTS)
    ),
    "babeltrace": "".join(
        f"[{issue}000] (+?.?????????) node block_rq_issue: {BT.format()}"
        f"[{complete}000] (+0.000050000) node block_rq_complete: {BT.format()}"
        for issue, complete in REQUESTS
    ),
    "blkparse": "".join(
        f"  8,0    1  {n:7d} {issue:>9}000    10  D   W {8 + n} + 8 [fio]\n"
        f"  8,0    1  {n:7d} {complete:>9}000     0  C   W {8 + n} + 8 [0]\n"
        for n, (issue, complete) in enumerate(REQUESTS)
    ),
    "biosnoop": "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)\n"
    + "".join(f"{end:<11} {'fio':<14} 10      sda       W 8          4096      0.05\n" for _, end in REQUESTS),
    "iosnoop": IOSNOOP
    + "".join(f"{begin:<15} {end:<15} fio  10  W    202,1    8   4096   0.05\n" for begin, end in REQUESTS),
    "biolatency": "     usecs               : count     distribution\n"
    "         0 -> 1          : 0        |                                        |\n"
    "         2 -> 3          : 6        |****************************************|\n",
    "bpftrace": "Attaching 2 probes...\n\n@usecs: \n[4, 8)                 6 |@@@@@@@@@@@@@@@@@@@@@@@|\n\n",
    "SystemTap": "value |-------------------------------------------------- count\n    4 |@@@@@@  6\n    8 |  0\n",
    "ext4slower": "ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE\n"
    + "1000000,fio,7,R,4096,8192,50,data\n" * 6,
    "pgbench": "".join(f"0 {n} 50 0 1716887520 {n}\n" for n in range(6)),
    "fio's log": "".join(f"{n}, 50000, 0, 4096\n" for n in range(6)),
    "two columns": "".join(f"{n}.5 50\n" for n in range(6)),
}


def before(text: str, what: Callable[[int], str]) -> bytes:
    return "".join(what(n) + line for n, line in enumerate(text.splitlines(keepends=True))).encode()


CARRIED: dict[str, Callable[[str], bytes]] = {
    "as it is": str.encode,
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16, big-endian": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "the mark of UTF-8": lambda text: text.encode("utf-8-sig"),
    "ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "quoted-printable": lambda text: quopri.encodestring(text.encode()),
    "quoted-printable, ends of Windows": lambda text: quopri.encodestring(text.encode()).replace(b"\n", b"\r\n"),
    "quoted-printable of a quotation": lambda text: quopri.encodestring(before(text, lambda _: "> ")),
    "indented": lambda text: before(text, lambda _: "    "),
    "quoted": lambda text: before(text, lambda _: "> "),
    "quoted twice": lambda text: before(text, lambda _: ">> "),
    "quoted below a line": lambda text: b"user:\n" + before(text, lambda _: "> ") * 3,
    "journald": lambda text: before(text, lambda n: f"Nov 29 14:00:0{n % 10} node tracer[4321]: "),
    "syslog": lambda text: before(text, lambda _: "2026-11-29T14:00:01.123456+01:00 node sh: "),
    "docker": lambda text: before(text, lambda n: f"2026-11-29T14:00:01.{123456789 + n}Z "),
    "containerd": lambda text: before(text, lambda _: "2026-11-29T14:00:01.123456789Z stdout F "),
    "ts": lambda text: before(text, lambda _: "Nov  9 14:00:01 "),
    "colours": lambda text: re.sub(r"(\w+)", "\x1b[1m\\1\x1b[0m", text).encode(),
    "a page's blanks": lambda text: text.replace("  ", " \u00a0").encode(),
}


def answer(path: Path, capfd: Captured) -> str:
    capfd.readouterr()
    status = main(["hist", str(path)])
    said = capfd.readouterr()
    assert status == 0, said.err
    return said.out


@pytest.mark.parametrize("how", CARRIED)
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_as_without_it(text: str, how: str, tmp_path: Path, capfd: Captured) -> None:
    (tmp_path / "plain.txt").write_text(TEXTS[text] * (3 if "below" in how else 1))
    (tmp_path / "carried.txt").write_bytes(CARRIED[how](TEXTS[text]))
    plain, carried = (answer(tmp_path / f"{name}.txt", capfd) for name in ("plain", "carried"))
    assert plain == carried and ("6 " in plain or "18 " in plain)


@pytest.mark.parametrize("how", ["UTF-16", "journald", "colours"])
@pytest.mark.parametrize("text", ["perf", "bpftrace", "babeltrace"])
def test_a_pipe_is_what_a_file_is(text: str, how: str, tmp_path: Path) -> None:
    data = CARRIED[how](TEXTS[text] * 40)
    (tmp_path / "a.txt").write_bytes(data)
    command = [sys.executable, "-m", "opline_analyses", "hist"]
    told = [
        subprocess.run([*command, name], input=data, capture_output=True, cwd=tmp_path, check=True).stdout
        for name in ("a.txt", "-")
    ]
    assert told[0] == told[1] and told[0]


@pytest.mark.parametrize(
    "data",
    [
        b"\x07at\x65" + bytes(60) + b"> a\n> b\n",
        b"> a\n\0> b\n", b"", b"\n\n", b"> a\n",
        b"> a\nb\n> c\n", b"2026-11-29T14:00:01 30 5\n" * 9, b"Nov 29 is a day\n" * 9, b"\xff\xfe", b"\xff\xfea",
    ],
)  # fmt: skip
def test_what_is_no_such_text_stays(data: bytes) -> None:
    carriage = Carriage(data)
    assert carriage.plain(data) == carriage.opened(io.BufferedReader(io.BytesIO(data))).read()
    if not data.startswith(b"\xff\xfe"):
        assert carriage.plain(data) == data


@pytest.mark.parametrize("how", CARRIED)
def test_the_begin_and_the_whole_are_the_same(how: str) -> None:
    data = CARRIED[how]("".join(f"{n} line \u00e9\U0001f600 {'x' * (n % 97)}\n" for n in range(5000)))
    carriage = Carriage(data)
    whole = carriage.opened(io.BufferedReader(io.BytesIO(data))).read()
    assert carriage.plain(data) == whole and len(whole) > 100_000


@pytest.mark.parametrize("width", [60, 72, 76, 80, 100])
@pytest.mark.parametrize("indent", ["", "    "])
def test_lines_of_babeltrace_that_a_mail_program_has_broken(
    width: int, indent: str, tmp_path: Path, capfd: Captured
) -> None:
    whole, broken = tmp_path / "whole.txt", tmp_path / "broken.txt"
    lines = TEXTS["babeltrace"].splitlines()
    whole.write_text("\n".join(lines) + "\n")
    rows = [
        row for line in lines for row in textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
    ]
    assert len(rows) > len(lines)
    broken.write_text("Hello,\n\n" + "\n".join(rows) + "\n\nregards\n")
    capfd.readouterr()
    shown = []
    for path in (whole, broken):
        assert main(["hist", str(path)]) == 0
        shown.append(capfd.readouterr().out)
    assert shown[0] == shown[1]


TRACE_CMD = (
    "             fio-24174 [001] 14507.799{n:03d}982: block_rq_{step}     7,5 WS {bytes}() {sector} + {many} {rest}\n"
)
BROKEN = {
    "perf": TEXTS["perf"],
    "blkparse": TEXTS["blkparse"].replace("[fio]", "[a longer name]"),
    "trace-cmd": "".join(
        TRACE_CMD.format(
            n=10 * n, step="issue:   ", bytes="8192 ", sector=237744 * n, many=16 * n, rest="0x2,0,4 [fio]"
        )
        + TRACE_CMD.format(
            n=10 * n + 7, step="complete:", bytes="", sector=237744 * n, many=16 * n, rest=f"none,0,0 [{-n}]"
        )
        for n in range(1, 40)
    ),
    "fields": "".join(
        f"    fio  10 [001]   793.{n:03d}{step:03d}: block:block_rq_{name}: dev=8388608 sector={n} "
        f"nr_sector=16 {rest}\n"
        for n in range(1, 40)
        for step, name, rest in (
            (0, "issue", "bytes=8192 rwbs=W comm=fio cmd="),
            (n, "complete", "error=0 rwbs=W cmd="),
        )
    ),
}


def mailed(line: str, width: int) -> list[str]:
    begin = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(line, width, initial_indent=begin, break_on_hyphens=False, break_long_words=False)


def folded(line: str, width: int) -> list[str]:
    return [line[at : at + width].rstrip() for at in range(0, len(line), width)]


@pytest.mark.parametrize("quoted", ["", "> ", "first"])
@pytest.mark.parametrize(
    ("how", "width"), [(mailed, 60), (mailed, 72), (mailed, 76), *((folded, n) for n in range(56, 96, 8))]
)
@pytest.mark.parametrize("text", BROKEN)
def test_an_event_on_several_lines_is_read_as_on_one(
    text: str, how: Callable[[str, int], list[str]], width: int, quoted: str, tmp_path: Path, capfd: Captured
) -> None:
    whole, broken = tmp_path / "whole.txt", tmp_path / "broken.txt"
    whole.write_text(BROKEN[text])
    rows = [
        (quoted if quoted != "first" else "> " if n == 0 else "") + row
        for line in BROKEN[text].splitlines()
        for n, row in enumerate(how(line, width))
    ]
    broken.write_text("Hello,\n\n" + "\n".join(rows) + "\n\nregards\n")
    capfd.readouterr()
    shown = []
    for path in (whole, broken):
        assert main(["requests", str(path), "--csv"]) == 0
        said = capfd.readouterr()
        # A name in brackets that is broken may have had a blank there.
        rows_of = [{**row, "comm": row["comm"].replace(" ", "")} for row in csv.DictReader(said.out.splitlines())]
        shown.append((rows_of, said.err.replace("broken.txt", "whole.txt")))
    assert shown[0] == shown[1] and len(shown[0][0]) > 5


def test_lines_that_are_cut_off_are_not_read_with_the_digits_that_are_left(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    lines = BROKEN["trace-cmd"].splitlines()
    cut = lines[20].index(" + ") + 5
    path.write_text("\n".join([*lines[:20], lines[20][:cut], lines[21][:-2], *lines[22:]]) + "\n")
    assert main(["losses", str(path), "--json"]) == 0
    losses = {one["loss"]: one["count"] for one in json.loads(capfd.readouterr().out)["losses"]}
    assert losses["unreadable_lines"] == 2


def test_an_event_without_its_end_is_one_that_cannot_be_read(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    line = TEXTS["babeltrace"].splitlines()[0]
    path.write_text(f"{TEXTS['babeltrace']}{line[:70]}\n{TEXTS['babeltrace']}{line[:60]}")
    capfd.readouterr()
    assert main(["losses", str(path), "--json"]) == 0
    losses = {one["loss"]: one["count"] for one in json.loads(capfd.readouterr().out)["losses"]}
    assert losses["unreadable_lines"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "a=1 b=2\n" * 3 + "block=20\n",
        "key=3D value=x\n" * 3,
        "=3D" * 40 + "\n",
        "x" * 200 + "=3D\n",
    ],
)
def test_what_is_no_quoted_printable_stays(text: str) -> None:
    data = text.encode()
    assert Carriage(data).opened(io.BufferedReader(io.BytesIO(data))).read() == data
