# SPDX-License-Identifier: MIT
"""Which send goes with which receive, before the two hosts' clocks are known: a coarse offset by vote, then the
nearest receive of the same identity.
"""

from __future__ import annotations

import numpy as np

from opline.values import Value

BIN_NS = 1_000_000  # of the vote
VOTERS = 400  # sends of one vote
VOTES = 8  # so many votes over the recording; the best one wins
CANDIDATES = 2_000_000  # differences in one vote
BLOCK_NS = 5_000_000_000  # the offset is followed from block to block: clocks drift
RECYCLED_BY = 0.1  # of all ends
LONGEST_NS = 60_000_000_000  # of a message whose identity is used once


class Ends(Value):
    """One end of messages: an array each of identities (u64), times (i64, ns of that host) and points (small
    integers), ordered by time.
    """

    identity: np.ndarray
    ts_ns: np.ndarray
    point: np.ndarray

    def __len__(self) -> int:
        return len(self.ts_ns)

    def only(self, which: np.ndarray) -> Ends:
        """Some of them: a mask, or indices in their order."""
        return Ends(self.identity[which], self.ts_ns[which], self.point[which])


class Pairs(Value):
    """Indices of sends and of their receives."""

    send: np.ndarray
    receive: np.ndarray

    def __len__(self) -> int:
        return len(self.send)


def nothing() -> np.ndarray:
    """No index."""
    return np.empty(0, np.int64)


def coarse_offset(sends: Ends, receives: Ends) -> tuple[int, int] | None:
    """The most frequent difference (received − sent), in ns within 1 ms, and the time of the sends that say so; None:
    no identity is at both ends.
    """
    order = np.lexsort((receives.ts_ns, receives.identity))
    identity, ts_ns = receives.identity[order], receives.ts_ns[order]
    first = np.searchsorted(identity, sends.identity, "left")
    count = np.searchsorted(identity, sends.identity, "right") - first
    voters = np.flatnonzero(count)
    if not len(voters):
        return None
    best: tuple[int, int, int] | None = None
    for begin in np.unique(np.linspace(0, max(0, len(voters) - VOTERS), VOTES).astype(np.int64)):
        mine = voters[begin : begin + VOTERS]
        mine = mine[np.cumsum(count[mine]) <= max(CANDIDATES, int(count[mine[0]]))]
        at = np.repeat(first[mine] - np.r_[0, np.cumsum(count[mine])[:-1]], count[mine]) + np.arange(count[mine].sum())
        apart = ts_ns[at] - np.repeat(sends.ts_ns[mine], count[mine])
        bins, votes = np.unique(apart // BIN_NS, return_counts=True)
        most = int(votes.argmax())
        if best is None or votes[most] > best[0]:
            best = int(votes[most]), int(bins[most]) * BIN_NS + BIN_NS // 2, int(sends.ts_ns[mine[len(mine) // 2]])
    assert best is not None
    return best[1:]


def _recycled_after(ends: Ends) -> np.ndarray:
    """For each end the time to the nearest other use of its identity. Where numbers are recycled the nearest use may be
    lost: no longer than what a tenth of all ends keep to.
    """
    order = np.lexsort((ends.ts_ns, ends.identity))
    gap = np.diff(ends.ts_ns[order])
    gap[np.diff(ends.identity[order]) != 0] = 2 * LONGEST_NS
    nearest = np.minimum(np.r_[2 * LONGEST_NS, gap], np.r_[gap, 2 * LONGEST_NS])
    out = np.empty(len(ends), np.int64)
    out[order] = nearest
    return np.minimum(out, np.int64(np.quantile(out, RECYCLED_BY))) if len(out) else out


def _nearest(sends: Ends, receives: Ends, offset_ns: int, recycled_ns: np.ndarray) -> Pairs:
    """Each receive goes to at most one send, each send to the receive of its identity that is nearest to its time and
    the offset.
    """
    n = len(sends)
    identity = np.r_[sends.identity, receives.identity]
    expected = np.r_[sends.ts_ns + offset_ns, receives.ts_ns]
    order = np.lexsort((expected, identity))
    is_receive = order >= n
    places = np.arange(len(order))
    before = np.maximum.accumulate(np.where(is_receive, places, -1))
    behind = np.minimum.accumulate(np.where(is_receive, places, len(order))[::-1])[::-1]
    at = np.flatnonzero(~is_receive)
    best = np.full(len(at), -1, np.int64)
    distance = recycled_ns[order[at]] // 2 + 1
    for neighbour in (before[at], behind[at]):
        inside = (neighbour >= 0) & (neighbour < len(order))
        there = np.where(inside, neighbour, 0)
        apart = np.abs(expected[order[there]] - expected[order[at]])
        fits = inside & (identity[order[there]] == identity[order[at]]) & (apart < distance)
        best = np.where(fits, there, best)
        distance = np.where(fits, apart, distance)
    paired = best >= 0
    send, receive, distance = order[at[paired]], order[best[paired]] - n, distance[paired]
    rank = np.lexsort((distance, receive))
    one_each = rank[np.r_[True, np.diff(receive[rank]) != 0]] if len(rank) else rank
    by_time = one_each[np.argsort(send[one_each], kind="stable")]
    return Pairs(send[by_time], receive[by_time])


def _followed(sends: Ends, receives: Ends, offset_ns: int, from_ns: int, recycled_ns: np.ndarray) -> Pairs:
    """Block by block, away from where the offset was voted: each block begins with the offset that the one before had
    at its end.
    """
    blocks = (sends.ts_ns - from_ns) // BLOCK_NS
    parts: list[Pairs] = []
    for step in (1, -1):
        numbers = np.unique(blocks[blocks >= 0] if step > 0 else blocks[blocks < 0])[::step]
        offset = offset_ns
        for number in numbers:
            mine = np.flatnonzero(blocks == number) if len(numbers) > 1 else np.flatnonzero((blocks >= 0) == (step > 0))
            reach = LONGEST_NS + BLOCK_NS
            low, high = np.searchsorted(receives.ts_ns, sends.ts_ns[mine[[0, -1]]] + offset + [-reach, reach])
            found = _nearest(sends.only(mine), receives.only(np.arange(low, high)), offset, recycled_ns[mine])
            if not len(found):
                continue
            part = Pairs(mine[found.send], found.receive + low)
            parts.append(part)
            apart = receives.ts_ns[part.receive] - sends.ts_ns[part.send]
            edge = np.argsort(sends.ts_ns[part.send], kind="stable")[::-step][: max(20, len(part) // 10)]
            offset = int(np.median(apart[edge]))
    if not parts:
        return Pairs(nothing(), nothing())
    send, receive = np.concatenate([p.send for p in parts]), np.concatenate([p.receive for p in parts])
    _, first = np.unique(receive, return_index=True)  # two blocks may have taken one at their edge
    first = first[np.argsort(send[first], kind="stable")]
    return Pairs(send[first], receive[first])


def pair(sends: Ends, receives: Ends, same_clock: bool = False) -> Pairs:
    """The messages from one host to another. ``same_clock``: both ends are on one host."""
    if same_clock:
        voted: tuple[int, int] | None = (0, int(sends.ts_ns[0])) if len(sends) and len(receives) else None
    else:
        voted = coarse_offset(sends, receives)
    if voted is None:
        return Pairs(nothing(), nothing())
    offset_ns, from_ns = voted
    return _followed(sends, receives, offset_ns, from_ns, _recycled_after(sends))
