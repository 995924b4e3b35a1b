# SPDX-License-Identifier: MIT
"""Names are bytes: of files, threads, objects, devices. Every output has one text for each of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from opline.paths import name_bytes, stored
from opline.readers.extents import read_extents
from opline.talk import shown
from opline_analyses.cli import main

PROGRAM = str(Path(sys.executable).with_name("opline"))
NAMES = {
    "all bytes": bytes(range(1, 256)),
    "half a pair": b"/f/\xed\xa0\x80",
    "long": b"/f/" + b"x" * 4093,
    "long and not UTF-8": b"/f/" + b"\xff" * 4093,
    "newline": b"/f/a\nb",
    "escape": b"/f/\x1b[2J\x1b]0;title\x07",
    "plain": "/f/é".encode(),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_has_one_text(name: str) -> None:
    raw = NAMES[name]
    text = os.fsdecode(raw)
    assert name_bytes(text) == raw
    assert stored(text) == raw.decode("utf-8", "backslashreplace")
    assert shown(stored(text)) == shown(text) and shown(text).isprintable()
    shown(text).encode()


def test_half_a_pair_that_is_no_byte_has_the_bytes_of_its_code() -> None:
    assert name_bytes("a\ud800\udcff") == b"a\xed\xa0\x80\xff"
    assert stored("a\ud800\udcff") == "a\\xed\\xa0\\x80\\xff"


def extents(path: Path) -> Path:
    """An extents.json with all of the names, each of them a file somewhere."""
    files = [
        {
            "path": os.fsdecode(raw), "size_bytes": 4096, "disk": "8:0", "start_sector": 0,
            "extents": [{"logical_sector": 0, "physical_sector": 8 * n, "sectors": 8}],
        }
        for n, raw in enumerate(NAMES.values())
    ]  # fmt: skip
    files.append(files[0] | {"path": "\ud800"})
    path.write_text(json.dumps({"version": 1, "files": files}))
    return path


@pytest.mark.parametrize("words", [["stages"], ["ops", "--json"], ["csv"], ["report", "-o", "TO.html"]])
def test_maps_of_files_may_have_any_names(
    words: list[str], trace: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [str(tmp_path / word) if word == "TO.html" else word for word in words]
    found = main([words[0], str(trace("demo-qd4")), *words[1:], "--extents", str(extents(tmp_path / "extents.json"))])
    assert found == 0, capfd.readouterr().err


def test_filefrags_text_may_have_any_name(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"File size of /f/\xff is 4096 (1 block of 4096 bytes)\n   0:        0..       0:  5..  5:  1:\n")
    (found,) = read_extents(text)
    assert found.plan()["path"] == list(b"/f/\xff")


def test_a_trace_may_lie_in_a_folder_of_any_name(trace: Callable[[str], Path], tmp_path: Path) -> None:
    place = os.fsencode(tmp_path) + b"/\xff\n\x1b[2J"
    Path(os.fsdecode(place)).symlink_to(trace("demo-qd4"))
    for words in (["stages"], ["ops", "--json"], ["losses"]):
        done = subprocess.run([PROGRAM, words[0], place, *words[1:]], capture_output=True, timeout=60)
        assert done.returncode == 0 and b"\x1b" not in done.stdout + done.stderr, done.stderr


def test_csv_on_a_terminal_is_escaped(tmp_path: Path) -> None:
    """A thread whose name is an order to the terminal; a file gets it exactly."""
    text = tmp_path / "trace.txt"
    events = (f"\x1b[2Jx 7 [001] 9.00000{n}: block:block_rq_{e}: 8,0 R 0 () 8 + 8 [x]\n" for n, e in
              ((1, "issue"), (2, "complete")))  # fmt: skip
    text.write_text("".join(events).replace("complete: 8,0 R 0 ()", "complete: 8,0 R ()"))
    words = [PROGRAM, "events", str(text), "--csv"]
    plain = subprocess.run(words, capture_output=True, timeout=60, text=True)
    assert "\x1b[2Jx" in plain.stdout, plain.stderr
    ours, theirs = os.openpty()
    done = subprocess.run(words, stdout=theirs, timeout=60)
    os.close(theirs)
    seen = b""
    while part := _read(ours):
        seen += part
    os.close(ours)
    assert done.returncode == 0 and b"\x1b" not in seen and rb"\x1b[2Jx" in seen


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # of a terminal whose other end is closed
        return b""
