# SPDX-License-Identifier: MIT
"""60 KB of one repeated piece, given to every command that reads text: one line or a result, in little time."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.client_logs import bench_run, with_unknown

from opline_analyses.cli import main

BYTES = 60_000
MOST_S = 10.0  # CPU time: linear readers take about 0.1 s; quadratic ones took 5 to 96 s where the machine is fast
PIECES = {
    "newlines": "\n", "tabs": "\t", "blanks": " ", "commas": ",", "digits": "0", "letters": "a", "words": "a ",
    "lines": "a\n", "braces": "{", "lines of braces": "{\n", "objects": '{"a":', "lists": "[", "brackets": "(",
    "quotes": '"', "backslashes": "\\", "bars": "| ", "colons": "a:", "numbers": "0 ", "arrows": "0 -> ",
    "NULs": "\0", "escapes": "\x1b[", "waits": "WAIT #1: nam='a' ela= 1 ", "jobs": "a: (g=0): bs=(R) 1-1 ",
    "means": "lat (usec): avg= ", "names": "a=", "begins": "<begin record>\n", "bars of numbers": "1 |@\n",
    "types": "{'val_type'", "CSV": "begin_ns,end_ns,", "fields": "a = 1, ",
    "babeltrace": "[00:00:00.000000000] (+0.000000000) ",
    "ftrace": "a-1 [000] 1.000000: block_rq_issue: ", "sections": "[point.a]\n", "extents": "0: 0.. 0: ",
    "files": "File size of a is 1 (1 block of 512 bytes)\n", "metadata": "/* CTF 1.8 */ env {\na = \"",
}  # fmt: skip
COMMANDS = {
    "hist": ["hist"], "heatmap": ["heatmap", "-o", "TO.svg"], "stages": ["stages"], "iostat": ["iostat"],
    "client": ["coverage", "RUN", "--client"], "client log": ["coverage", "RUN", "--client-log"],
    "model": ["model", "lint"], "extents": ["stages", "TRACE", "--extents"],
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_unknown(bench_run()).write(tmp_path_factory.mktemp("repeated") / "run")


@pytest.mark.parametrize("command", COMMANDS)
def test_time_is_linear(
    command: str, run: Path, trace: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"RUN": str(run), "TRACE": str(trace("demo-qd4")), "TO.svg": str(tmp_path / "to.svg")}
    words = [places.get(word, word) for word in COMMANDS[command]]
    for name, piece in PIECES.items():
        file = tmp_path / "text"
        file.write_text(piece * (BYTES // len(piece)))
        begin = time.process_time()
        status = main([*words, str(file)])
        spent = time.process_time() - begin
        said = capsys.readouterr().err
        assert spent < MOST_S, f"{command} of {name}"
        assert status in (0, 1, 2, 3), f"{command} of {name}: {said}"
        assert "internal error" not in said, f"{command} of {name}: {said}"


def test_a_packed_log_of_tabs_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ops.csv.gz"
    file.write_bytes(gzip.compress(b"\t" * BYTES))
    assert main(["coverage", str(run), "--client-log", str(file)]) == 1
    assert f"{file}: a client's log has at most 1000 columns" in capsys.readouterr().err
