# SPDX-License-Identifier: MIT
"""The tables of a cluster's hosts and of pairs of hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.base.result_table import Column, ResultTable, label, of_items, text
from opline_analyses.base.text import duration, shortened
from opline_analyses.runs.cluster import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from opline_analyses.base.result_table import Part


def is_whole(cluster: Mapping[str, Any]) -> bool:
    """Whether all hosts are in the joined run."""
    return all(host["status"] not in ("apart", MISSING) for host in cluster["hosts"])


def _rate(ppm: float | None) -> str:
    return "" if ppm is None else f"{ppm:+.2f} ppm"


def _bound(ns: float | None) -> str:
    return "" if ns is None else duration(ns, 3)


def _limit(ppm: float | None) -> str:
    return "" if ppm is None else f"{ppm:g} ppm" if ppm else "exact"


def host_table(cluster: Mapping[str, Any]) -> ResultTable:
    """A row per host; None is absent."""
    offset = f"offset to {shortened(cluster['reference'], 12)}"
    columns = (
        label("host", "host"),
        text("status", "status"),
        Column("event_count"),
        Column("interval_ns", "interval", lambda ns: "" if ns is None else f"{ns / 1e9:.2f} s"),
        Column("offset_ns", offset, lambda ns: "" if ns is None else f"{ns / 1e9:+.9f} s"),
        Column("rate_ppm", "rate", _rate, "f64"),
        Column("bound_p50_ns", "bound p50", _bound),
        Column("bound_max_ns", "max", _bound),
        Column("limit_ppm", "limit", _limit, "f64"),
        Column("steps"),
    )
    rows = ((host["name"], *(host.get(c.name) for c in columns[1:])) for host in cluster["hosts"])
    return ResultTable(columns, rows, gap=" ", text=lambda t: _text(cluster, t), document=lambda _: cluster)


PAIRS = (
    label("hosts", "messages between", " and ".join),
    text("by", "by"),
    *(Column(name, name) for name in ("paired", "unpaired", "ambiguous", "contradicting")),
)


def _by(pairs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The evidence for each pair's alignment: a row for the op model's messages, for TCP, and for pings. Which evidence
    contradicts is unknown.
    """
    for pair in pairs:
        found = []
        if pair["paired"] or pair["unpaired"] or pair["ambiguous"]:
            found.append(("model", pair["paired"], pair["unpaired"], pair["ambiguous"]))
        of_tcp = (pair.get("tcp_paired", 0), pair.get("tcp_unpaired", 0))
        if any(of_tcp):
            found.append(("TCP", *of_tcp, None))
        if pings := pair.get("pings", 0):
            found.append(("pings", pings, None, None))
        for by, paired, unpaired, ambiguous in found or [("model", 0, 0, 0)]:
            yield {
                "hosts": pair["hosts"], "by": by, "paired": paired, "unpaired": unpaired, "ambiguous": ambiguous,
                "contradicting": pair["contradicting"] if len(found) < 2 else None,
            }  # fmt: skip


def _text(cluster: Mapping[str, Any], hosts: ResultTable) -> Iterator[Part]:
    """The hosts, the pairs, and the assumption behind every bound."""
    yield hosts.with_rows([row if row[1] == "aligned" else (*row[:4], *[None] * 6) for row in hosts.rows])
    for host in cluster["hosts"]:
        if host["status"] == MISSING:
            yield f"{host['name']} is missing: {host['why']}."
    if not cluster["pairs"]:
        return
    yield ""
    yield of_items(PAIRS, [*_by(cluster["pairs"])])
    yield ""
    yield "A time of two hosts is right within the bound, if no clock's rate changes by"
    yield "more than the limit."
    for pair in cluster["pairs"]:
        yield from _found(pair)


def _found(pair: Mapping[str, Any]) -> Iterator[str]:
    who = " and ".join(pair["hosts"])
    for raised in pair["raised"]:
        length = duration(raised["end_ns"] - raised["begin_ns"], 3)
        yield f"{who}: their messages need a limit of {raised['limit_ppm']:g} ppm for {length}."
    for step in pair["steps"]:
        within = duration(step["end_ns"] - step["begin_ns"], 3)
        yield f"{who}: the clock of {pair['hosts'][1]} steps by {duration(step['size_ns'], 4)} within {within}."
    if pair["arrived_early"]:
        yield f"{who}: {pair['arrived_early']} messages arrive before they were sent."
