# SPDX-License-Identifier: MIT
"""The engine: whatever rows come, in whatever batches, each is in one cell, and cells have what their rows have."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opline.errors import UsageError
from opline_analyses.base.quantities import Limits, decimals_of, duration_ns, limits, seconds, size_bytes
from opline_analyses.intervals.buckets import Buckets, Fine, Linear, Listed, PowerOfTwo, Within, bit_lengths
from opline_analyses.intervals.intervals import Batch, Grid, Occupancy, Tally

KINDS: list[Buckets] = [
    PowerOfTwo(1000), PowerOfTwo(1), Fine(1, 2), Fine(1, 4), Fine(1000, 2), Linear(700), Listed((5, 100, 4096)),
]  # fmt: skip
ROW = st.tuples(st.integers(0, 10_000), st.integers(0, 1 << 50), st.integers(0, 1 << 20), st.integers(0, 2))


def batch(rows: list[tuple[int, int, int, int]]) -> Batch:
    """Rows of (end, value, size, group), each of which began a value before its end."""
    at, values, sizes, groups = (np.array([r[i] for r in rows], np.int64) for i in range(4))
    return Batch(at, values, sizes, groups, ["a", "b", "c"], at - values)


@given(st.lists(st.integers(0, (1 << 62) - 1), min_size=1))
def test_bit_lengths_are_those_of_integers(values: list[int]) -> None:
    assert bit_lengths(np.array(values, np.int64)).tolist() == [v.bit_length() for v in values]


@pytest.mark.parametrize("buckets", KINDS, ids=repr)
@given(values=st.lists(st.integers(0, 1 << 50), min_size=1))
def test_a_value_lies_between_its_buckets_edges(buckets: Buckets, values: list[int]) -> None:
    for value, index in zip(values, buckets.index(np.array(values, np.int64)).tolist(), strict=True):
        low, high = buckets.edges(index)
        assert low <= value < high
        assert high == (1 << 63) - 1 or buckets.edges(index + 1)[0] == high


def test_c2_7_a_bucket_holds_its_own_value_and_what_is_below_twice_that() -> None:
    found = PowerOfTwo(1).index(np.array([4095, 4096, 8191, 8192]))
    assert [PowerOfTwo(1).edges(i)[0] for i in found.tolist()] == [2048, 4096, 4096, 8192]


def test_what_is_outside_of_a_range_has_buckets_of_its_own() -> None:
    assert Within(Linear(10, 100), 0, 3).index(np.array([0, 99, 100, 139, 140, 1 << 40])).tolist() == [
        -1,
        -1,
        0,
        3,
        4,
        4,
    ]


@given(rows=st.lists(ROW), cut=st.integers(1, 5), step=st.integers(1, 3000))
def test_each_row_is_in_one_cell(rows: list[tuple[int, int, int, int]], cut: int, step: int) -> None:
    tally = Tally(Grid(-100, step), PowerOfTwo(8))
    for at in range(0, len(rows), cut):
        tally.add(batch(rows[at : at + cut]))
    expected = defaultdict(list)
    for at_ns, value, size, group in rows:
        expected[(at_ns + 100) // step, "abc"[group], (value // 8).bit_length()].append((value, size))
    found = {(i, *place): cell for i, cells in tally.intervals() for place, cell in cells.items()}
    assert found.keys() == expected.keys()
    for place, mine in expected.items():
        values = [v for v, _ in mine]
        cell = found[place]
        assert (cell.count, cell.total, cell.least, cell.most) == (len(mine), sum(values), min(values), max(values))
        assert cell.size == sum(size for _, size in mine)
    assert sum(c.count for c in found.values()) == tally.rows == len(rows)


def test_idle_intervals_are_there() -> None:
    tally = Tally(Grid(0, 10))
    tally.add(batch([(5, 1, 0, 0), (45, 1, 0, 0)]))
    assert [(i, len(cells)) for i, cells in tally.intervals(-1, 5)] == [
        (-1, 0), (0, 1), (1, 0), (2, 0), (3, 0), (4, 1), (5, 0)
    ]  # fmt: skip


@given(rows=st.lists(ROW, max_size=30), step=st.integers(100, 3000))
def test_rows_that_go_on_coming_are_counted_once_too(rows: list[tuple[int, int, int, int]], step: int) -> None:
    """C4.10: fed in the order of their ends, intervals that are taken as time passes are those of all at once."""
    rows = sorted(rows)
    at_once, bit_by_bit = Tally(Grid(0, step)), Tally(Grid(0, step))
    at_once.add(batch(rows))
    taken = []
    for row in rows:
        taken += bit_by_bit.take(row[0])
        bit_by_bit.add(batch([row]))
    taken += bit_by_bit.take(20_000)
    assert bit_by_bit.late == 0
    assert [t for t in taken if t[1]] == [t for t in at_once.intervals() if t[1]]
    assert [i for i, _ in taken] == list(range(taken[0][0], taken[-1][0] + 1)) if taken else True


def test_a_row_that_comes_too_late_is_counted_all_the_same() -> None:
    tally = Tally(Grid(0, 10))
    tally.add(batch([(5, 1, 0, 0)]))
    assert [i for i, _ in tally.take(20)] == [0, 1]
    tally.add(batch([(7, 1, 0, 0), (25, 1, 0, 0)]))
    assert tally.late == 1
    assert [(i, sum(c.count for c in cells.values())) for i, cells in tally.intervals()] == [(2, 2)]


@given(
    spans=st.lists(st.tuples(st.integers(-30, 130), st.integers(0, 60)), max_size=12),
    step=st.integers(1, 40),
)
def test_presence_is_what_counting_at_every_instant_gives(spans: list[tuple[int, int]], step: int) -> None:
    presence = Occupancy(Grid(0, step))
    for at in range(0, len(spans), 3):
        presence.add(batch([(b + length, length, 0, 0) for b, length in spans[at : at + 3]]))
    last = 100 // step
    at_time = Counter(t for b, length in spans for t in range(b, b + length))
    area, busy = presence.area_and_busy_ns("a", 0, last)
    for i in range(last + 1):
        there = [at_time[t] for t in range(i * step, (i + 1) * step)]
        assert (area[i], busy[i]) == (sum(there), sum(1 for n in there if n))


@given(
    spans=st.lists(st.tuples(st.integers(0, 130), st.integers(0, 60)), max_size=12),
    step=st.integers(1, 200),
    looks=st.lists(st.integers(0, 200), max_size=6),
)
def test_presence_is_the_same_where_only_sums_are_kept_of_what_was(
    spans: list[tuple[int, int]], step: int, looks: list[int]
) -> None:
    """Rows are added when they have ended; of what is known only sums are kept, and rows that are still there."""
    whole, bit_by_bit = Occupancy(Grid(0, step)), Occupancy(Grid(0, step))
    if spans:
        whole.add(batch([(b + length, length, 0, 0) for b, length in spans]))
    added: set[int] = set()
    for at in [*sorted(looks), 1000]:
        ended = {n for n, (b, length) in enumerate(spans) if b + length <= at} - added
        if ended:
            bit_by_bit.add(batch([(sum(spans[n]), spans[n][1], 0, 0) for n in sorted(ended)]))
        added |= ended
        there = [(at, at - b, 0, 0) for n, (b, _) in enumerate(spans) if n not in added and b <= at]
        bit_by_bit.sum_until(at, [batch(there)] if there else [])
        assert bit_by_bit.held == 0
    last = 200 // step
    assert bit_by_bit.area_and_busy_ns("a", 0, last) == whole.area_and_busy_ns("a", 0, last)


@pytest.mark.parametrize(
    ("text", "ns"), [("10ms", 10**7), ("1.5s", 1_500_000_000), ("0.1", 10**8), ("3us", 3000), ("2min", 120 * 10**9)]
)
def test_durations(text: str, ns: int) -> None:
    assert duration_ns(text, "--x") == ns


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), ("8k", 8192), ("8KB", 8192), ("1MiB", 1 << 20), ("16s", 8192), ("4b", 4)]
)
def test_sizes(text: str, size: int) -> None:
    assert size_bytes(text, "--size") == size


@pytest.mark.parametrize("text", ["", "ms", "1.5", "-3", "5 parsecs", "1e3"])
def test_what_is_no_size_is_said(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--size .*: not a size"):
        size_bytes(text, "--size")


def test_limits() -> None:
    assert limits(">5ms", "--latency", duration_ns) == Limits(5_000_001, None)
    assert limits("<=5ms", "--latency", duration_ns) == Limits(None, 5_000_000)
    assert limits("8k", "--size", size_bytes) == Limits(8192, 8192)
    assert limits("4k..64k", "--size", size_bytes) == Limits(4096, 65536)
    with pytest.raises(UsageError, match="above"):
        limits("5ms..1ms", "--latency", duration_ns)


def test_c6_2_times_have_the_decimals_that_the_interval_needs() -> None:
    assert [decimals_of(d) for d in (15 * 10**9, 10**9, 10**8, 10**7, 250_000_000, 1)] == [0, 0, 1, 2, 2, 9]
    assert seconds(153_600_000_000, 1) == "153.6"
    assert seconds(-1_500_000_000, 2) == "-1.50"
