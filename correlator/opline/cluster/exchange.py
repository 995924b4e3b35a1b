# SPDX-License-Identifier: MIT
"""Which messages went from which host to which: every ordered pair of hosts, each message to one receiver at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opline.cluster.pairing import Pairs, nothing, pair
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opline.cluster.hosts import Messages
    from opline.cluster.pings import PingExchange
    from opline.cluster.streams import StreamExchange


class Counts(Value):
    """Of two hosts' messages: those with a partner, those without, and those that two hosts could have received."""

    paired: int
    unpaired: int
    ambiguous: int


class Exchange:
    """``between`` has the pairs by (sender, receiver); ``own`` those that stayed on their host."""

    def __init__(self, messages: Mapping[str, Messages]) -> None:
        self.messages = messages
        self.own: dict[str, Pairs] = {}
        self.between: dict[tuple[str, str], Pairs] = {}
        self._ambiguous: dict[tuple[str, str], int] = {}
        hosts = list(messages)
        free_sends: dict[str, np.ndarray] = {}
        free_receives: dict[str, np.ndarray] = {}
        for host in hosts:
            found = messages[host]
            own = pair(found.sends, found.receives, same_clock=True)
            late = found.receives.ts_ns[own.receive] >= found.sends.ts_ns[own.send]
            self.own[host] = own = Pairs(own.send[late], own.receive[late])
            free_sends[host] = np.setdiff1d(np.arange(len(found.sends)), own.send)
            free_receives[host] = np.setdiff1d(np.arange(len(found.receives)), own.receive)
        for a in hosts:
            for b in hosts:
                if a != b:
                    self.between[a, b] = self._pair(a, b, free_sends[a], free_receives[b])
        self._leave_out_ambiguous(hosts)

    def _pair(self, a: str, b: str, sends: np.ndarray, receives: np.ndarray) -> Pairs:
        found = pair(self.messages[a].sends.only(sends), self.messages[b].receives.only(receives))
        return Pairs(sends[found.send], receives[found.receive])

    def _leave_out_ambiguous(self, hosts: Sequence[str]) -> None:
        """A send that two hosts could have received, and a receive that two could have sent, is nobody's."""
        self._ambiguous = dict.fromkeys(self.between, 0)
        for which in (0, 1):
            for host in hosts:
                keys = [k for k in self.between if k[which] == host]
                taken = [self.between[k].send if which == 0 else self.between[k].receive for k in keys]
                index, count = np.unique(np.concatenate(taken), return_counts=True) if taken else (nothing(), nothing())
                twice = index[count > 1]
                for key, mine in zip(keys, taken, strict=True):
                    good = ~np.isin(mine, twice)
                    found = self.between[key]
                    self.between[key] = Pairs(found.send[good], found.receive[good])
                    self._ambiguous[key] += int((~good).sum())

    def counts(self, a: str, b: str) -> Counts:
        """Of both directions between two hosts."""
        paired = ambiguous = unpaired = 0
        for sender, receiver in ((a, b), (b, a)):
            found = self.between[sender, receiver]
            paired += len(found)
            ambiguous += self._ambiguous[sender, receiver]
            unpaired += self._lonely(sender, receiver)
        return Counts(paired, unpaired, ambiguous)

    def _lonely(self, sender: str, receiver: str) -> int:
        """Sends and receives without any partner that are, by their identities, between these two: lost events, or
        messages at the edges of a recording.
        """
        sent, received = self.messages[sender].sends, self.messages[receiver].receives
        paired = self.between[sender, receiver]
        if not len(paired):
            return 0
        sends = np.setdiff1d(np.arange(len(sent)), self._with_partner(sender, 0))
        receives = np.setdiff1d(np.arange(len(received)), self._with_partner(receiver, 1))
        to_others = [k for k in self.between if k[0] == sender and k[1] != receiver and len(self.between[k])]
        by_others = [k for k in self.between if k[1] == receiver and k[0] != sender and len(self.between[k])]
        # with several partners an end without one is counted where its identity is known
        if to_others:
            sends = sends[np.isin(sent.identity[sends], received.identity)]
        if by_others:
            receives = receives[np.isin(received.identity[receives], sent.identity)]
        return len(sends) + len(receives)

    def _with_partner(self, host: str, which: int) -> np.ndarray:
        out = [self.own[host].send if which == 0 else self.own[host].receive]
        for key, found in self.between.items():
            if key[which] == host:
                out.append(found.send if which == 0 else found.receive)
        return np.concatenate(out)

    def times(self, a: str, b: str) -> tuple[np.ndarray, np.ndarray]:
        """(sent, received) of the messages from a to b, each on its own host's clock."""
        found = self.between[a, b]
        return self.messages[a].sends.ts_ns[found.send], self.messages[b].receives.ts_ns[found.receive]


class Exchanges(Value):
    """What says how two clocks are against each other: the messages of the op model, TCP streams, and pings."""

    model: Exchange
    streams: StreamExchange
    pings: PingExchange

    def times(self, a: str, b: str) -> tuple[np.ndarray, np.ndarray]:
        """(sent, received) of all from a to b, each on its own host's clock."""
        tcp = self.streams[a, b]
        found = (self.model.times(a, b), (tcp.sent_ns, tcp.received_ns), self.pings.times(a, b))
        return np.concatenate([sent for sent, _ in found]), np.concatenate([received for _, received in found])

    def count(self, a: str, b: str) -> int:
        """How many from a to b have both ends."""
        return len(self.model.between[a, b]) + self.streams[a, b].paired + self.pings.count(a, b)

    def span(self, host: str) -> tuple[int, int]:
        """The first and last message of a host: the bounds of this time are what a cluster is described by."""
        found = self.model.messages[host]
        ends = [e.ts_ns[[0, -1]] for e in (found.sends, found.receives) if len(e)]
        ends += [np.array(of) for of in (self.streams.streams[host].span(), self.pings.span(host)) if of]
        return (int(min(e[0] for e in ends)), int(max(e[1] for e in ends))) if ends else (0, 0)
