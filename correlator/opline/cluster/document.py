# SPDX-License-Identifier: MIT
"""``cluster.json``: the hosts, and the pairs of hosts with what aligned them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opline import __version__
from opline.cluster.hosts import Missing
from opline.correlation import digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from opline.cluster.exchange import Exchanges
    from opline.cluster.hosts import Part
    from opline.cluster.network import Link, Network
    from opline.model import Model

SCHEMA_VERSION = 1


def document_of(
    hosts: Sequence[Part | Missing],
    model: Model,
    network: Network,
    exchange: Exchanges,
    manifests: Mapping[str, Mapping[str, Any]],
    spans: Mapping[str, tuple[int, int]],
) -> dict[str, Any]:
    """``spans``: the first and last message of each host that has been read, on its own clock."""
    return {
        "schema": "opline-cluster",
        "schema_version": SCHEMA_VERSION,
        "opline": __version__,
        "reference": network.reference,
        "model": {"name": model.name, "sha256": digest(model)},
        "hosts": [
            {"name": host.name, "path": str(Path(host.path).absolute()), "status": "missing", "why": host.why}
            if isinstance(host, Missing)
            else _host(host, network, manifests[host.name], spans[host.name])
            for host in hosts
        ],
        "pairs": [_pair(link, network, exchange) for link in network.links],
    }


def _host(part: Part, network: Network, manifest: Mapping[str, Any], span: tuple[int, int]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": part.name,
        "path": str(Path(part.path).absolute()),
        "run": f"runs/host={part.name}",
        "status": "aligned" if part.name in network.maps else "apart",
        "clock": part.clock[0],
        "event_count": manifest["core"]["events"],
        "interval_ns": span[1] - span[0],
    }
    if part.name == network.reference:
        return out | {"status": "reference", "offset_ns": 0, "rate_ppm": 0.0, "bound_p50_ns": 0, "bound_max_ns": 0}
    if part.name not in network.maps:
        return out
    clock = network.maps[part.name]
    first, last = np.searchsorted(clock.own_ns, span).tolist()
    first, last = min(first, len(clock) - 1), min(last, len(clock) - 1)
    middle = (first + last) // 2
    rise = int(clock.reference_ns[last] - clock.reference_ns[first])
    drift = int(clock.own_ns[last] - clock.own_ns[first]) - rise
    steady = clock.steady[first : last + 1]
    bound_ns = clock.bound_ns[first : last + 1][steady if steady.any() else slice(None)]
    mine = [link for link in network.links if part.name in (link.a, link.b)]
    return out | {
        "offset_ns": int(clock.own_ns[middle] - clock.reference_ns[middle]),
        "rate_ppm": drift / rise * 1e6 if rise else None,
        "bound_p50_ns": int(np.median(bound_ns)),
        "bound_max_ns": int(bound_ns.max()),
        "limit_ppm": max(link.clock.limit_ppm for link in mine),
        "steps": int(clock.segment[-1]),
    }


def _pair(link: Link, network: Network, exchange: Exchanges) -> dict[str, Any]:
    counts = exchange.model.counts(link.a, link.b)
    tcp = exchange.streams[link.a, link.b], exchange.streams[link.b, link.a]
    early = [int((e > 0).sum()) for e in network.early(link)] if link.a in network.maps else [0, 0]
    return {
        "hosts": [link.a, link.b],
        "paired": counts.paired,
        "unpaired": counts.unpaired,
        "ambiguous": counts.ambiguous,
        "tcp_paired": sum(of.paired for of in tcp),
        "tcp_unpaired": sum(of.unpaired for of in tcp),
        "pings": exchange.pings.count(link.a, link.b) + exchange.pings.count(link.b, link.a),
        "contradicting": link.clock.left_out,
        "arrived_early": sum(early),
        "limit_ppm": link.clock.limit_ppm,
        "raised": [vars(r) for r in link.clock.raised()],
        "steps": [vars(s) for s in link.clock.steps],
    }
