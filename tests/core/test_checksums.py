# SPDX-License-Identifier: MIT
"""Checksums of a run's tables: other readers check them, no flipped bit changes an output in silence, and
``opline losses --verify`` says where the damage is.
"""

from __future__ import annotations

import json
import random
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from tests.lib.recorded import RunOf

from opline.store.checksums import pages
from opline.store.schema import TABLES
from opline_analyses.cli import main

NAME = "app-sync-2m-nvme-split"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def sound(run_of: RunOf) -> Path:
    """A run that nobody has damaged."""
    return run_of(NAME).path


@pytest.fixture
def run(sound: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(sound, tmp_path / "run"))


def flip(file: Path, bit: int) -> None:
    data = bytearray(file.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)


def test_the_manifest_has_size_and_checksum_of_every_file(sound: Path) -> None:
    noted = json.loads((sound / "manifest.json").read_text())["checksums"]
    assert set(noted) == {f"{t.name}.parquet" for t in TABLES}
    for name, entry in noted.items():
        data = (sound / name).read_bytes()
        assert entry == {"bytes": len(data), "crc32": f"{zlib.crc32(data):08x}"}


def test_other_readers_find_the_pages_checksums_right_and_wrong(run: Path) -> None:
    for table in TABLES:
        file = run / f"{table.name}.parquet"
        found = pq.ParquetFile(file, page_checksum_verification=True).read()
        (count,) = duckdb.execute(f"SELECT count(*) FROM read_parquet('{file}')").fetchall()[0]
        assert count == found.num_rows
        assert found.num_rows == 0 or all(p.fault is None for p in pages(file))
    file = run / "stages.parquet"
    first = next(iter(pages(file)))
    flip(file, 8 * (first.offset + 40))  # in the first page's body: its header has no more than 40 bytes
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(file, page_checksum_verification=True).read()


def test_a_sound_run_is_said_to_be_sound(sound: Path, capsys: Capture) -> None:
    assert main(["losses", str(sound), "--verify"]) == 0
    assert f"{len(TABLES)} tables" in (out := capsys.readouterr().out) and "none is damaged" in out
    assert main(["losses", str(sound), "--verify", "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)["tables"]
    assert [t["file"] for t in checked] == [f"{t.name}.parquet" for t in TABLES]
    assert not any(t["faults"] for t in checked) and all(t["pages"] for t in checked if t["file"] == "ops.parquet")


def test_damage_is_found_where_it_is(run: Path, capsys: Capture) -> None:
    file = run / "stages.parquet"
    page = next(p for p in pages(file) if p.column == "duration_ns")
    flip(file, 8 * (page.offset + 60))
    assert main(["losses", str(run), "--verify"]) == 1
    said = capsys.readouterr()
    where = f"row group 0, column duration_ns, page at byte {page.offset}: its checksum is wrong"
    assert where in said.out and "1 is damaged" in said.out
    assert said.err.startswith(f"opline: 1 of {len(TABLES)} tables of ") and said.err.count("\n") == 1


@pytest.mark.parametrize("of_file", [0.0, 1.0])
def test_damage_beside_the_pages_is_found(of_file: float, run: Path, capsys: Capture) -> None:
    file = run / "ops.parquet"
    flip(file, round(of_file * (8 * file.stat().st_size - 1)))
    assert main(["losses", str(run), "--verify"]) == 1
    assert "ops.parquet\n  its CRC-32 is " in capsys.readouterr().out


def test_a_file_that_is_cut_off_is_found(run: Path, capsys: Capture) -> None:
    file = run / "ops.parquet"
    file.write_bytes(file.read_bytes()[:-1000])
    assert main(["losses", str(run), "--verify"]) == 1
    assert "bytes and was written with" in capsys.readouterr().out


COMMANDS = (
    ["csv"],
    ["stages"],
    ["sql", "SELECT count(*), sum(duration_ns) FROM stages"],
)


def test_no_flipped_bit_changes_an_output_in_silence(sound: Path, tmp_path: Path, capsys: Capture) -> None:
    """Fifty bits of all tables, one at a time: the same output, or none and one line that says why."""

    def answers(folder: Path) -> list[tuple[int, str, str]]:
        out = []
        for command in COMMANDS:
            status = main([command[0], str(folder), *command[1:]])
            said = capsys.readouterr()
            out.append((status, said.out, said.err))
        return out

    copy = Path(shutil.copytree(sound, tmp_path / "run"))
    right = answers(copy)
    assert all(status == 0 for status, _, _ in right)
    chance = random.Random(50)
    files = sorted(copy.glob("*.parquet"))
    bits = [8 * f.stat().st_size for f in files]
    refused = 0
    for _ in range(50):
        (file,) = chance.choices(files, bits)
        bit = chance.randrange(8 * file.stat().st_size)
        flip(file, bit)
        for expected, (status, out, err) in zip(right, answers(copy), strict=True):
            if status == 0:
                assert (status, out, err) == expected
            else:
                assert status == 1 and out == "" and err.count("\n") == 1, err
                assert "is damaged" in err or "Cannot read" in err, err
                refused += 1
        flip(file, bit)
    assert refused > 50


def test_a_run_without_checksums_is_read_and_not_called_sound(run: Path, capsys: Capture) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["checksums"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert main(["stages", str(run)]) == 0
    capsys.readouterr()
    assert main(["losses", str(run), "--verify"]) == 1
    assert "the manifest has no checksum of it" in capsys.readouterr().out


def test_damage_that_only_a_query_meets_is_one_line(run: Path, capsys: Capture) -> None:
    """Of a run without checksums."""
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["checksums"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    file = run / "stages.parquet"
    data = bytearray(file.read_bytes())
    page = next(p for p in pages(file) if p.column == "duration_ns")
    data[page.offset : page.offset + 400] = bytes(400)
    file.write_bytes(data)
    for command in (["csv", str(run)], ["sql", str(run), "SELECT sum(duration_ns) FROM stages"]):
        assert main(command) == 1
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1 and "internal error" not in said.err


def test_a_table_that_an_older_opline_did_not_have_is_empty(run: Path, capsys: Capture) -> None:
    """Its manifest knows no such file; one that it knows, and that is gone, is damage."""
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "batches.parquet").unlink()
    assert main(["sql", str(run), "SELECT count(*) AS n FROM batches", "--csv"]) == 1
    assert "has no batches.parquet: it is damaged" in capsys.readouterr().err
    del manifest["checksums"]["batches.parquet"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert main(["sql", str(run), "SELECT count(*) AS n FROM batches", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ["n", "0"]
    assert main(["losses", str(run), "--verify"]) == 0


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_bytes(b"PAR1 not really")])
def test_a_damaged_table_stops_the_commands_that_read_it_alone(
    damage: Callable[[Path], object], run: Path, capsys: Capture
) -> None:
    damage(run / "stages.parquet")
    for stops, command in (
        (False, ["losses", str(run)]),
        (False, ["what", str(run)]),
        (False, ["btt", str(run)]),
        (False, ["sql", str(run), "SELECT count(*) FROM ops"]),
        (True, ["sql", str(run), "SELECT count(*) FROM ops WHERE op_id IN (FROM stages SELECT op_id)"]),
        (True, ["stages", str(run)]),
        (True, ["csv", str(run)]),
    ):
        assert main(command) == stops, command
        said = capsys.readouterr()
        if stops:
            assert said.out == "" and "stages.parquet" in said.err.splitlines()[-1], command
            assert len([line for line in said.err.splitlines() if "stages.parquet" in line]) == 1, command
