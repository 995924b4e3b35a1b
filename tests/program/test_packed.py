# SPDX-License-Identifier: MIT
"""A run as one file: every command answers as of the folder, a damaged or hostile file is one line, and an anonymous
file has none of the names.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.lib.recorded import RunOf

from opline.paths import PACKED_FIRST
from opline.store.arrays import Batch, Numbers
from opline.store.packed import members
from opline.store.schema import BY_NAME, TABLES
from opline_analyses.cli import main
from opline_analyses.export import anonymous
from opline_analyses.export.anonymous import ADDRESSES, NAMES, WORDS

ASKED = (
    "stages", "why --all", "ops", "requests", "btt", "iostat", "hist", "log", "csv", "graph", "losses --verify",
    "sql ! SELECT * FROM transitions ORDER BY op_id, seq", "export ! --to chrome -o /dev/stdout",
)  # fmt: skip


def _said(command: str, run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit status and output; the run's name is in it as RUN."""
    argv = command.split()
    argv = [str(run) if word == "!" else word for word in argv] if "!" in argv else [argv[0], str(run), *argv[1:]]
    if argv[0] == "sql":
        argv = [*argv[:2], " ".join(argv[2:])]
    status = main(argv)
    return status, capsys.readouterr().out.replace(str(run), "RUN")


@pytest.fixture
def packed(tmp_path: Path, run_of: RunOf, capsys: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    """A run's folder, which is gone where the file is read on another machine, and the file."""
    folder = run_of("demo-kernel").path
    assert main(["pack", str(folder), "-o", str(tmp_path / "mail.opline")]) == 0
    capsys.readouterr()
    return folder, tmp_path / "mail.opline"


@pytest.mark.parametrize("command", ASKED)
def test_every_command_answers_as_of_the_folder(
    command: str, packed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = packed
    expected = _said(command, folder, capsys)
    assert expected[0] == 0
    assert expected[1]
    found = _said(command, file, capsys)
    if command.startswith("losses"):  # an anonymous file's pages are others
        assert "none is damaged" in found[1]
    assert found == expected


def test_equal_runs_are_equal_files_and_nothing_stays_behind(packed: tuple[Path, Path], tmp_path: Path) -> None:
    folder, file = packed
    assert main(["pack", str(folder), "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == [PACKED_FIRST, *members(folder)]
        assert {f"{t.name}.parquet" for t in TABLES} < set(archive.namelist())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again", "mail.opline"]


def test_an_anonymous_file_has_none_of_the_names(
    packed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = packed
    file = tmp_path / "anonymous.opline"
    assert main(["pack", str(folder), "--anonymous", "-o", str(file)]) == 0
    capsys.readouterr()
    columns = [(t.name, c.name) for t in TABLES for c in t.columns if c.type in ("dict", "text") and c.name in NAMES]
    whole = {table: f"all_{table}" for table in ("ops", "requests", "bios")}
    asked = " UNION ALL ".join(
        f"SELECT DISTINCT '{column}' AS of, \"{column}\"::VARCHAR AS name FROM {whole.get(table, table)}"
        for table, column in columns
    )
    rows = {}
    for run in (folder, file):
        assert main(["sql", str(run), f"SELECT * FROM ({asked}) WHERE name IS NOT NULL", "--csv"]) == 0
        rows[run] = list(csv.DictReader(io.StringIO(capsys.readouterr().out, newline="")))
    names = {row["name"] for row in rows[folder] if row["name"]}
    assert len(names) > 20
    assert Counter(row["of"] for row in rows[file]) == Counter(row["of"] for row in rows[folder])
    for row in rows[file]:
        stem = NAMES[row["of"]]
        assert re.fullmatch(rf"{stem}-\d+( → {stem}-\d+)*", row["name"]) or not row["name"]
    content = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        content += b"".join(archive.read(name) for name in archive.namelist())
    assert not [name for name in names if len(name) > 3 and name.encode() in content]
    assert str(folder).encode() not in content
    # the numbers are the same ones
    for command in ("stages", "btt", "iostat", "hist"):
        assert _said(command, file, capsys) == _said(command, folder, capsys)
    assert "none is damaged" in _said("losses --verify", file, capsys)[1]


def test_addresses_of_locks_are_numbered() -> None:
    names = anonymous.Pseudonyms()
    lock = next(c for c in BY_NAME["waits"].columns if c.name == "lock")
    for addresses, numbers in (([2**63 + 5, 0, 2**63 + 5, 7], [1, None, 1, 2]), ([0], [None]), ([7, 9], [2, 3])):
        rows = Batch(len(addresses), {"lock": Numbers(np.array(addresses, np.uint64), np.array(addresses) == 0)})
        found = anonymous._column(rows, lock, names)
        assert isinstance(found, Numbers) and found.absent is not None
        assert [None if none else n for n, none in zip(found.values, found.absent, strict=True)] == numbers
    integers = [c for t in TABLES for c in t.columns if c.type in ("u64", "i64")]
    assert {c.name for c in integers if "ddress" in c.meaning} == ADDRESSES


def test_every_column_of_texts_is_of_names_or_of_words() -> None:
    texts = {c.name for t in TABLES for c in t.columns if c.type in ("dict", "text")}
    assert texts == NAMES.keys() | WORDS
    assert not NAMES.keys() & WORDS


@pytest.mark.parametrize("at", [31, 60, 5_000, -300, -1])
def test_a_cut_off_file_is_one_line(
    at: int, packed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.opline"
    cut.write_bytes(packed[1].read_bytes()[:at])
    assert main(["stages", str(cut)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "cut.opline" in said.err


def test_a_changed_byte_is_said(packed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(packed[1]) as archive:
        entry = archive.getinfo("stages.parquet")
        at = entry.header_offset + 30 + len(entry.filename) + entry.file_size // 2
    data = bytearray(packed[1].read_bytes())
    data[at] ^= 0x10
    changed = tmp_path / "changed.opline"
    changed.write_bytes(data)
    assert main(["stages", str(changed)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "damaged" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    "name", ["../../outside", "/outside", "runs/host=../../x.parquet", "trace/metadata", "a\nb.parquet"]
)
def test_a_member_that_is_no_file_of_a_run_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(PACKED_FIRST, '{"schema": "opline-pack", "version": 1}')
        archive.writestr(name, "x")
    file = tmp_path / "hostile.opline"
    file.write_bytes(held.getvalue())
    assert main(["stages", str(file)]) == 1
    said = capsys.readouterr().err
    assert "no file of a run" in said
    assert said.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hostile.opline"]


def test_a_compressed_member_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It could become larger than any disk."""
    file = tmp_path / "bomb.opline"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(PACKED_FIRST, '{"schema": "opline-pack", "version": 1}')
        archive.writestr("ops.parquet", bytes(1 << 24), zipfile.ZIP_DEFLATED)
    assert main(["stages", str(file)]) == 1
    assert "compressed" in capsys.readouterr().err


def test_what_needs_the_trace_says_so(packed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["events", str(packed[1])], ["stages", str(packed[1]), "--model", "generic"]):
        assert main(argv) in (1, 2)
        assert "packed run" in capsys.readouterr().err


def test_what_names_it(packed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    status, said = _said("what", packed[1], capsys)
    assert status == 0
    assert said.startswith("RUN: a packed run\n")
    for line in said.splitlines():
        if line.lstrip().startswith("try"):
            argv = line.replace("RUN", str(packed[1])).split()[2:]
            assert main([*argv, *(["--op", "0"] if argv[0] == "interference" else [])]) == 0, line
            capsys.readouterr()


def test_a_full_disk_leaves_no_half(packed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    assert main(["pack", str(packed[0]), "-o", "/dev/full"]) == 1
    assert "Cannot write /dev/full" in capsys.readouterr().err


def test_a_run_without_a_table_is_not_packed(
    packed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(packed[0], broken)
    (broken / "stages.parquet").write_bytes(b"PAR1")
    assert main(["pack", str(broken), "-o", str(tmp_path / "never")]) == 1
    assert "stages.parquet" in capsys.readouterr().err
    assert not (tmp_path / "never").exists()
