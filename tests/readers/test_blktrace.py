# SPDX-License-Identifier: MIT
"""blktrace's binary files: a kernel's own against btt's figures of them, and recorded traces written in that format."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lib.blktrace_files import files
from tests.lib.perf_text import text_of
from tests.lib.recorded import RunOf
from tests.readers.test_text_input import BIOS, REQUESTS, rows

from opline.correlation import correlate
from opline.model import load_model
from opline_analyses.cli import main

REAL = "blktrace-loop-6.18"


def test_btts_own_figures(trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    """Every interval's least, mean, most and number, to the nanosecond, of files that a kernel wrote."""
    folder = trace(REAL)
    theirs = re.findall(
        r"^([A-Z0-9]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\d+)$", (folder / "btt.txt").read_text(), re.M
    )
    assert len(theirs) == 6
    for path in (folder, folder / "loop0", folder / "loop0.blktrace.1"):
        assert main(["btt", str(path)]) == 0
        ours = re.findall(r"^([A-Z0-9]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\d+)$", capfd.readouterr().out, re.M)
        assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("name", ["app-libaio-qd8-dmcrypt", "app-sync-2m-nvme-split", "app-libaio-requeue-vdc"])
def test_the_traces_own_requests(
    run_of: RunOf, trace: Callable[[str], Path], opline: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    """Splits, remaps, requeues and flushes among them; the files of all CPUs are one trace, in either byte order."""
    expected = [rows(run_of(name).path, "requests", REQUESTS), rows(run_of(name).path, "bios", BIOS)]
    text = list(text_of(opline("events", trace(name)).stdout.splitlines(), "perf"))
    files(text, tmp_path, "sda", ">" if name.endswith("split") else "<")
    manifest = correlate(tmp_path, load_model("generic"), tmp_path / "run", progress=False)
    assert manifest["reader"] == "blktrace" and "damaged_streams" not in manifest["losses"]
    assert [rows(tmp_path / "run", "requests", REQUESTS), rows(tmp_path / "run", "bios", BIOS)] == expected


def test_what_is_missing_is_counted(
    trace: Callable[[str], Path], opline: Callable[..., Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A gap in the numbers of a CPU, a file that is cut off, another version, and none at all."""
    text = list(text_of(opline("events", trace("app-sync-2m-nvme-split")).stdout.splitlines(), "perf"))
    records = files(text, tmp_path, "sda")
    (tmp_path / "sda.blktrace.0").write_bytes(b"".join(records[:40] + records[43:])[:-7])
    assert main(["losses", str(tmp_path / "sda"), "--json"]) == 0
    out, err = capfd.readouterr()
    lost = {entry["loss"]: entry["count"] for entry in json.loads(out)["losses"]}
    assert lost["discarded_events"] == sum(
        1 for r in records[40:43] if not struct.unpack_from("<I", r, 32)[0] >> 26 & 1
    )
    assert lost["damaged_streams"] == 1 and "cut off or damaged" in err
    for content, said in (
        (struct.pack("<II", 0x65617406, 1) + bytes(40), "version 6 of blktrace's format"),
        (struct.pack("<IIQQIIIIIHH", 0x65617407, 0, 1, 0, 0, 1 << 26, 1, 0, 0, 0, 0), "no event of a request"),
        (b"\x00\x01", "is of no format that opline knows"),
    ):
        (tmp_path / "other").write_bytes(content)
        assert main(["hist", str(tmp_path / "other")]) == 1
        err = capfd.readouterr().err
        assert said in err and len(err.splitlines()) == 1


def test_numbers_that_no_request_has_end_a_file(
    trace: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A sector beyond what 64 bits of bytes hold, a time beyond 63 bits: what is before is read, and it is said."""
    data = (trace(REAL) / "loop0.blktrace.1").read_bytes()
    for at, name in ((8, "time"), (16, "sector")):
        changed = bytearray(data)
        changed[480 + at : 480 + at + 8] = b"\xff" * 8
        file = tmp_path / name
        file.write_bytes(changed)
        assert main(["requests", str(file)]) == 0
        assert "is cut off or damaged" in capfd.readouterr().err


def test_its_events_are_shown(
    run_of: RunOf, trace: Callable[[str], Path], opline: Callable[..., Any], tmp_path: Path
) -> None:
    """The same as of the text that the files were made of; where no note tells a thread's name, there is none."""
    lines = list(text_of(opline("events", trace("app-libaio-qd8-dmcrypt")).stdout.splitlines(), "perf"))
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    files(lines, tmp_path, "sda")

    def shown(what: Path, *words: str) -> list[Any]:
        found = [json.loads(line) for line in opline("events", what, "--json", *words).stdout.splitlines()]
        for event in found:
            event["channel"], event["fields"] = "", dict(sorted(event["fields"].items()))
            event["fields"].pop("error", None)  # of a bio it is no error number here
        return sorted(found, key=lambda event: (event["ts_ns"], event["cpu"], str(event)))

    ours, theirs = shown(tmp_path / "sda"), shown(tmp_path / "text.txt")
    assert len(ours) > 1000 and ours == theirs
    issued = [event for event in ours if event["event"] == "block_rq_issue"]
    assert shown(tmp_path / "sda", "--limit", "3", "--names", "*issue") == issued[:3]
    (nameless,) = shown(trace(REAL), "--limit", "1")
    assert nameless["comm"] is None and "comm" not in nameless["fields"]


CORPUS = Path(__file__).parents[1] / "corpus" / "blktrace-cpu-gone" / "whole"


@pytest.mark.parametrize("name", ["sdb", "sdb.blktrace.0", ""])
@pytest.mark.parametrize("left", ["gone", "empty"])
def test_the_first_cpus_file_may_be_gone_or_empty(
    name: str, left: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A CPU without an event has an empty file; one that is gone is a loss."""
    for file in CORPUS.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "sdb.blktrace.0").unlink()
    if left == "empty":
        (tmp_path / "sdb.blktrace.0").touch()
    assert main(["hist", str(tmp_path / name)]) == 0
    said = capfd.readouterr()
    assert "100 I/Os, D2C mean 100 us" in said.out
    assert ("there is no such file" in said.err) == (left == "gone")
    assert main(["hist", str(tmp_path / "sdb.blktrace.3")]) == 2


def test_a_folder_of_compressed_files_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sdb.blktrace.0.gz").write_bytes(b"\x1f\x8b")
    assert main(["hist", str(tmp_path)]) == 1
    assert "unpack what is compressed" in capfd.readouterr().err
