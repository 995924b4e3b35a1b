# SPDX-License-Identifier: MIT
"""Maps of files: both formats, what is wrong with one, and where they are looked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opline.errors import OplineError
from opline.readers.extents import Extent, read_extents
from opline.readers.trace import find_extents

FILEFRAG = """\
Filesystem type is: ef53
File size of /mnt/t/a file is 67108864 (131072 blocks of 512 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..  114687:     671744..    786431: 114688:            
   1:   114688..  122879:     802816..    811007:   8192:     786432: unwritten
   2:   122880..  131071:          0..      8191:   8192:     811008: last,unknown_loc,delalloc,eof
/mnt/t/a file: 3 extents found
File size of b is 20 (1 block of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       0:          7..         7:      1:             last,eof
b: 1 extent found
"""  # noqa: W291

FILE = {
    "path": "/mnt/t/data", "dev": "8:1", "inode": 12, "size_bytes": 4096, "disk": "259:300", "start_sector": 2048,
    "changed": True, "extents": [{"logical_sector": 0, "physical_sector": 8, "sectors": 8, "flags": ["last"]}],
}  # fmt: skip


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "map"
    path.write_text(text)
    return path


def test_filefrag(tmp_path: Path) -> None:
    a, b = read_extents(written(tmp_path, FILEFRAG))
    assert (a.path, a.size_bytes, a.disk, a.changed) == ("/mnt/t/a file", 67108864, None, False)
    assert a.extents == (Extent(0, 671744, 114688), Extent(114688, 802816, 8192))  # what has no place yet maps nothing
    assert b.extents == (Extent(0, 56, 8),)  # in its own unit of 4096 bytes


def test_json(tmp_path: Path) -> None:
    (found,) = read_extents(written(tmp_path, json.dumps({"version": 1, "files": [FILE]})))
    assert found.plan() == {
        "path": "/mnt/t/data", "disk": 259 << 20 | 300, "start_sector": 2048, "changed": True, "extents": [[0, 8, 8]],
        "dev": 8 << 20 | 1, "inode": 12, "generation": 0,
    }  # fmt: skip


def test_neighbours_become_one(tmp_path: Path) -> None:
    pieces = [
        {"logical_sector": 8, "physical_sector": 16, "sectors": 8, "flags": []},
        {"logical_sector": 0, "physical_sector": 8, "sectors": 8, "flags": ["unwritten"]},
        {"logical_sector": 16, "physical_sector": 32, "sectors": 8, "flags": []},
    ]
    (found,) = read_extents(written(tmp_path, json.dumps({"version": 1, "files": [FILE | {"extents": pieces}]})))
    assert found.extents == (Extent(0, 8, 16), Extent(16, 32, 8))


def one_with(**changes: object) -> str:
    return json.dumps({"version": 1, "files": [FILE | changes]})


OVERLAP: list[dict[str, object]] = [
    {"logical_sector": at, "physical_sector": 64 + at, "sectors": 8, "flags": []} for at in (0, 4)
]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "neither extents.json nor"),
        ("what is this\n", "neither extents.json nor"),
        ("   0:        0..      7:    8..   15:      8:   last\n", "before any line `File size of"),
        ("File size of a is 5 (9 blocks of 100 bytes)\n", "no whole sectors"),
        ("File size of a is 512 (1 block of 512 bytes)\n   0:  0..  7:  8..  15:  9:  last\n", "contradict"),
        ("File size of a is 512 (1 block of 512 bytes)\n   0:  1f..  7f: 8..\n", "not a line of `filefrag -v`"),
        ("{", "not JSON"),
        ('{"version": 2, "files": []}', "version 1"),
        (one_with(disk="sda"), "no device number"),
        (one_with(disk="8:1048576"), "out of range"),
        (one_with(dev=None), "names no file"),
        (one_with(inode=None), "names no file"),
        (one_with(inode=1 << 64), "out of range"),
        (one_with(inode=-1), "out of range"),
        (one_with(start_sector=-1), "out of range"),
        (one_with(size_bytes=1 << 70), "out of range"),
        (one_with(extents=[{}]), "files[0]: no 'logical_sector'"),
        (one_with(extents=OVERLAP), "overlap at sector 4"),
        (one_with(extents=[{"logical_sector": 0, "physical_sector": 8, "sectors": 0}]), "makes no sense"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(OplineError) as caught:
        read_extents(written(tmp_path, text))
    assert says in caught.value.message
    assert "\n" not in caught.value.message


def test_where_they_lie(tmp_path: Path) -> None:
    trace = tmp_path / "run" / "trace"
    trace.mkdir(parents=True)
    (tmp_path / "run" / "extents.json").write_text("{}")
    assert find_extents(trace) == []  # somebody else's: this is no recording
    (tmp_path / "run" / "recording.json").write_text("{}")
    (tmp_path / "run" / "trace.filefrag").write_text("")
    assert find_extents(trace) == [str(tmp_path / "run" / name) for name in ("trace.filefrag", "extents.json")]
