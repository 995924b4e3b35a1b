# SPDX-License-Identifier: MIT
"""What a live view holds does not grow with what has happened, neither while it lags behind nor in a long interval."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from tests.live.test_live import MARK, NUMBERS, parsed, record, sign

from opline_analyses.commands.live import VIEWS
from opline_analyses.live import iostat
from opline_analyses.live.iostat import Iostat
from opline_analyses.live.snapshot import Snapshot
from opline_analyses.live.watch import MOST_EVENTS, READ_BYTES, RingStream

MS = 1_000_000
START_NS = 1_000_000_000_000
DEVICE = 8 << 20


def stream_of(view: str, *words: str) -> tuple[RingStream, list[bytes]]:
    module, name = VIEWS[view]
    kind = getattr(importlib.import_module(f"opline_analyses.live.{module}"), name)
    args, out = parsed(view, *words), list[bytes]()
    return RingStream(lambda *now: kind(args, *now), out.append, lambda: {DEVICE: "sda"}), out


def ios(first: int, count: int) -> bytes:
    """So many reads of 0.3 ms, one begins each 0.1 ms."""
    found = []
    for n in range(first, first + count):
        at = START_NS + n * MS // 10
        fields = {"rq": 7 + n % 100, "sector": 8 * n, "nr_sector": 8, "bytes": 4096, "dev": DEVICE, "rwbs": 4}
        for name, when in (
            ("block_getrq", at),
            ("block_rq_issue", at + 1000),
            ("block_rq_complete", at + 3 * MS // 10),
        ):
            found.append((when, record(NUMBERS[name], when, comm="reader", tid=9, **fields)))
    return b"".join(data for _, data in sorted(found, key=lambda pair: pair[0]))


def test_who_has_fallen_behind_catches_up_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """All comes at once, without a look: no look has more rows than fit, and none is missing."""
    rows: list[int] = []
    show = Snapshot.show

    def counted(self: Snapshot, tables: Any, processes: Any) -> None:
        rows.append(sum(count for count, *_ in tables["requests"].pieces))
        show(self, tables, processes)

    monkeypatch.setattr(Snapshot, "show", counted)
    stream, out = stream_of("hist", "1", "--json")
    count = 100_000
    data = sign(MARK, START_NS) + ios(0, count) + sign(MARK, START_NS + 60_000 * MS)
    for at in range(0, len(data), READ_BYTES):
        stream.feed(data[at : at + READ_BYTES])
    stream.end()
    assert max(rows) <= (MOST_EVENTS + READ_BYTES // 104) / 3
    assert len([n for n in rows if n]) > 4
    cells = [cell for line in out for i in json.loads(line)["intervals"] for g in i["groups"] for cell in [g["count"]]]
    assert sum(cells) == count


def test_a_long_interval_keeps_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """One interval over all: the numbers are those of rows that are all kept, and few are."""
    said: dict[int, list[Any]] = {}
    held: list[int] = []
    for most in (iostat.MOST_HELD, 500):
        monkeypatch.setattr(iostat, "MOST_HELD", most)
        stream, out = stream_of("iostat", "1h", "-x", "--json")
        stream.feed(sign(MARK, START_NS))
        for first in range(0, 6000, 400):
            stream.feed(ios(first, 400) + sign(MARK, START_NS + (first + 400) * MS // 10))
            stream.look()
            assert isinstance(stream.view, Iostat)
            held.append(max(part.held for part in stream.view._parts))
        stream.end()
        said[most] = [json.loads(line) for piece in out for line in piece.splitlines()]
    assert said[500] == said[max(said)]
    assert said[500][0]["read_count"] == 6000
    assert held[14] == 6000 and max(held[15:]) <= 1000
