# SPDX-License-Identifier: MIT
"""Traces that grow while they are read: whole packets only, in the order of their times, and in the end what the reader
of whole traces gives.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from tests.lib.recorded import RunOf, model_of

from opline import _core
from opline.capture.lttng import session
from opline.following import LAG_NS, SWITCH_NS
from opline.readers.trace import find_traces
from opline.store.schema import TABLES
from opline.store.segments import Segments

LONG_AGO_NS = 100_000_000  # what a collector sends on is older than its packet
FOREVER = (1 << 62) - 1


class Growing:
    """A trace that comes in pieces, which end anywhere."""

    def __init__(self, trace: Path, folder: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._from, self._to = trace, folder
        shutil.copytree(trace, folder, ignore=lambda _, names: [n for n in names if n.endswith(".idx")])
        self.traces = find_traces(folder)
        self.files = [f for t in self.traces for f in Path(t).iterdir() if f.is_file() and f.name != "metadata"]
        self.packets = {file: self._packets(file) for file in self.files}
        for file in self.files:
            file.write_bytes(b"")

    def _packets(self, file: Path) -> list[tuple[int, int]]:
        """End and begin (ns) of each, by LTTng's index."""
        bytes_ = (self._from / file.relative_to(self._to)).parent.joinpath("index", f"{file.name}.idx").read_bytes()
        size = struct.unpack(">I", bytes_[12:16])[0]
        records = [struct.unpack(">QQQQ", bytes_[at : at + 32]) for at in range(16, len(bytes_), size)]
        return [(offset + bits // 8, begin) for offset, bits, _, begin in records]

    def grow(self, whole: bool = False) -> int:
        """What happened before this time is there now."""
        until = FOREVER
        for file in self.files:
            content = (self._from / file.relative_to(self._to)).read_bytes()
            there = file.stat().st_size
            more = len(content) if whole else min(len(content), there + self._random.randrange(1 << 17))
            with file.open("ab") as out:
                out.write(content[there:more])
            until = min([until, *(begin for end, begin in self.packets[file] if end > more)])
        return until if until == FOREVER else until - LONG_AGO_NS


def same_rows(ours: list[Path], theirs: Path) -> bool:
    """Whether the files have the rows of another one, each as often, in any order."""
    wanted = f"SELECT * FROM read_parquet('{theirs}')"
    found = " UNION ALL ".join(f"SELECT * FROM read_parquet('{file}')" for file in ours) or f"{wanted} LIMIT 0"
    both = (f"({found}) EXCEPT ALL ({wanted})", f"({wanted}) EXCEPT ALL ({found})")
    return all(duckdb.execute(f"SELECT count(*) FROM ({one})").fetchall() == [(0,)] for one in both)


@pytest.mark.parametrize(
    ("name", "seed", "packets"),
    [("demo-qd4", 1, 1), ("app-sync-qd4-nvme", 2, 9), ("app-uring-qd16-nvme", 3, 9), ("ctf-deb12-shim-qd1", 4, 9)],
)
def test_in_the_end_it_is_what_the_reader_of_whole_traces_gives(
    name: str, seed: int, packets: int, trace: Callable[[str], Path], run_of: RunOf, tmp_path: Path
) -> None:
    growing = Growing(trace(name), tmp_path / "trace", seed)
    (tmp_path / "rows").mkdir()
    segments = Segments(tmp_path / "rows")
    follower = _core.Follower(growing.traces)
    core = _core.Core(model_of(name).plan_json())
    follower.open(core)
    steps = settled = 0
    until = 0
    while until < FOREVER:
        until = growing.grow(whole=steps > 2000)
        assert follower.grow()
        while follower.run(until, 1000):
            pass
        segments.add(core)
        steps += 1
        settled = settled or (steps if segments.files["ops"] else 0)
        for file in segments.files["ops"][-1:]:  # nothing of later
            ends = pq.read_table(file)["end_ns"].drop_null().to_pylist()
            assert max(ends, default=0) < until
    assert 0 < settled < steps or packets == 1  # of each stream: then nothing is there before all is
    core.finish()
    segments.add(core)
    run = run_of(name)
    for table in TABLES:
        if table.name != "losses":  # of the reader, too
            assert same_rows(segments.files[table.name], run.path / f"{table.name}.parquet"), table.name
    assert all(len(files) < 40 for files in segments.files.values())


def test_what_comes_too_late_is_said(trace: Callable[[str], Path], tmp_path: Path) -> None:
    growing = Growing(trace("demo-qd4"), tmp_path / "trace", 4)
    follower = _core.Follower(growing.traces)
    follower.open(_core.Core(model_of("demo-qd4").plan_json()))
    growing.grow()
    assert follower.grow()
    assert not follower.run(FOREVER - 1, 1 << 30)  # more than is there in whole
    growing.grow(whole=True)
    assert not follower.grow()


def test_other_metadata_is_another_beginning(trace: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(trace("demo-qd4"), tmp_path / "trace")
    follower = _core.Follower(find_traces(tmp_path / "trace"))
    with pytest.raises(ValueError, match="not open"):
        follower.grow()
    follower.open(_core.Core(model_of("demo-qd4").plan_json()))
    assert follower.grow()
    metadata = next(tmp_path.rglob("metadata"))
    metadata.write_bytes(metadata.read_bytes() + metadata.read_bytes()[-4096:])
    assert not follower.grow()


def test_no_packet_is_read_twice_or_guessed(trace: Callable[[str], Path], tmp_path: Path) -> None:
    """What is no packet ends its stream, and is a gap."""
    growing = Growing(trace("demo-qd4"), tmp_path / "trace", 5)
    growing.grow(whole=True)
    file = max(growing.files, key=lambda f: f.stat().st_size)
    with file.open("ab") as out:
        out.write(b"\x01" * 4096)
    core = _core.Core(model_of("demo-qd4").plan_json())
    follower = _core.Follower(growing.traces)
    follower.open(core)
    assert follower.grow()
    assert not follower.run(FOREVER, 1 << 30)
    seen = core.events_seen()
    for _ in range(3):
        assert follower.grow()
        assert not follower.run(FOREVER, 1 << 30)
    assert core.events_seen() == seen > 1000


def test_it_waits_as_long_as_the_recorder_makes_it() -> None:
    assert session.SWITCH_TIMER_US * 1000 == SWITCH_NS < LAG_NS
