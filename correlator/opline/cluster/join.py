# SPDX-License-Identifier: MIT
"""`opline join`: recordings of several hosts become a cluster, a run of all of them on one host's clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from opline.cluster.document import document_of
from opline.cluster.exchange import Exchange, Exchanges
from opline.cluster.hops import message_table, write_hops
from opline.cluster.hosts import Missing, Part, check_different, messages_of, missing, part_of
from opline.cluster.network import Link, Network
from opline.cluster.pair_clock import ContradictionError, ExactClock, PairClock
from opline.cluster.pings import PingExchange, has_pings
from opline.cluster.readings import read_readings
from opline.cluster.streams import StreamExchange, streams_of
from opline.correlation import Source, correlate_source, digest
from opline.disks import all_disks
from opline.errors import OplineError, TraceError, UsageError
from opline.losses import Gap
from opline.model import load_model
from opline.model.compile import message_parts, message_routes, quorums
from opline.population import recorded_commands, recorded_processes
from opline.readers.native import NativeReader, Unsupported
from opline.scratch import new_folder
from opline.store.run import BLOCKS_MODEL
from opline.talk import talk
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from opline.cluster.network import HostMap
    from opline.model import Model
    from opline.readers.native import HostClock

CLUSTER = "cluster.json"
MOST_HOSTS = 255  # as kMostHosts of native/src/identity/hosts.hpp
FEWEST = 1  # messages in each direction
BOUND_PERIOD_NS = 100_000_000


class Options(Value):
    """What the command line asks for; None: the default."""

    model: str | None = None
    reference: str | None = None
    limit_ppm: float | None = None


def join(out: Path, arguments: Sequence[str], options: Options) -> dict[str, Any]:
    """Joins the recordings into the cluster ``out``, which must not exist; gives what ``cluster.json`` has. Raises
    OplineError; then nothing is left.
    """
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out} exists: remove it, or choose another name.")
    if len(arguments) < 2:
        raise UsageError("A cluster has two hosts at least: give their recordings, one after the other.")
    if len(arguments) > MOST_HOSTS:
        raise UsageError(f"A cluster has {MOST_HOSTS} hosts at most: join fewer recordings.")
    hosts = [part_of(argument) for argument in arguments]
    check_different(hosts)
    parts = [host for host in hosts if isinstance(host, Part)]
    if not parts:
        raise OplineError(f"No recording can be read. {next(h.why for h in hosts if isinstance(h, Missing))}.")
    model = _model_of(parts, options.model)
    try:
        with new_folder(out, 0o700) as beside:
            document = _build(beside, hosts, model, options)
            beside.chmod(0o755)
    except OSError as error:
        raise OplineError(f"Cannot write the cluster {out}: {error.strerror or error}.") from error
    return document


def _model_of(parts: Sequence[Part], wanted: str | None) -> Model:
    """The model of all recordings. Raises OplineError."""
    named = {part.model for part in parts if part.model} if wanted is None else {wanted}
    found = {digest(model): (model, name) for name in sorted(named) for model in [load_model(name)]}
    others = any(part.tcp or has_pings(part) for part in parts)
    if not found and not others:
        raise UsageError("The recordings have no op model: name one with --model.")
    if not found:
        return load_model(BLOCKS_MODEL)
    if len(found) > 1:
        names = ", ".join(name for _, name in found.values())
        raise UsageError(f"The recordings have several op models ({names}): name one with --model.")
    ((model, _),) = found.values()
    unaligned = not others and all(part.tcp is False for part in parts)
    if unaligned and not any(rule.message for rule in model.rules):
        raise OplineError(
            f"The model {model.name} says of no point that it sends or receives a message: hosts are aligned by "
            "messages. docs/model.md has the word `message`; `opline record --tcp` and `opline ping` need none."
        )
    return model


def _build(folder: Path, hosts: list[Part | Missing], model: Model, options: Options) -> dict[str, Any]:
    names = [host.name for host in hosts]
    if options.reference is not None and options.reference not in names:
        raise UsageError(f"--reference {options.reference}: there is no such host. There are: {', '.join(names)}.")
    manifests, messages, streams = {}, {}, {}
    routes, inner = message_routes(model), message_parts(model)
    (folder / "runs").mkdir()
    for place, part in enumerate(hosts):
        if isinstance(part, Missing):
            continue
        run = folder / "runs" / f"host={part.name}"
        try:
            manifests[part.name] = correlate_source(part.source, model, run)
        except TraceError as error:
            hosts[place] = missing(part.name, part.path, error)
            continue
        messages[part.name], streams[part.name] = messages_of(run, routes, inner), streams_of(run)
    parts = [host for host in hosts if isinstance(host, Part)]
    absent = [host for host in hosts if isinstance(host, Missing)]
    reference = options.reference or next((part.name for part in parts), "")
    if (lacking := next((host for host in absent if host.name == reference or not parts), None)) is not None:
        raise OplineError(f"{lacking.name}, whose clock all times are to have, is missing: {lacking.why}.")
    names = [part.name for part in parts]
    streamed = StreamExchange(streams, {part.name: part.clock[0] for part in parts})
    exchange = Exchanges(Exchange(messages), streamed, PingExchange(parts))
    for line in exchange.pings.without:
        talk(f"{line}.")
    spans = {name: exchange.span(name) for name in names}
    deviations = {part.name: _deviation(part, spans[part.name]) for part in parts}
    links = _links(exchange, parts, options.limit_ppm, deviations)
    network = Network(names, links, reference, {name: _span(manifests[name]) for name in names})
    if network.apart and len(network.hosts) < 2:
        raise OplineError(f"{_why_apart(exchange, network, network.apart[0])}.")
    without = [f"{host.name} is missing: {host.why}" for host in absent]
    known = _absent(absent, network, {name: _span(manifests[name]) for name in names})
    for line in without:
        talk(f"{line}.")
    for host in network.apart:
        without.append(_why_apart(exchange, network, host))
        talk(f"{without[-1]}. Its ops stay in runs/host={host}.")
    _check_limits(network)
    correlate_source(_source(parts, network, without, known), model, folder)
    hops = write_hops(message_table(exchange.model, network), folder, folder / "hops.parquet", quorums(model))
    _write_clock(network, folder / "clock.parquet")
    document = document_of(hosts, model, network, exchange, manifests, spans) | {"hop_count": hops}
    (folder / CLUSTER).write_text(json.dumps(document, indent=1) + "\n")
    return document


def _span(manifest: Mapping[str, Any]) -> tuple[int, int]:
    """The first and last event of a host, on its own clock: the map is known in between."""
    first, last = (manifest["core"].get(name) for name in ("first_ns", "last_ns"))
    return int(first or 0), int(last or first or 0)


def _deviation(part: Part, span: tuple[int, int]) -> float | None:
    """How far the clock of the trace deviated from a steady rate, if its recorder read the host's clocks, and the trace
    has the host's own clock (its identity is the boot's).
    """
    recorded = (part.source.recording or {}).get("host") or {}
    if not part.clock[0] or recorded.get("boot_id") != part.clock[0]:
        return None
    found = read_readings(Path(part.source.path).parent)
    return None if found is None else found.deviation_ppm(*span)


def _links(
    exchange: Exchanges, parts: Sequence[Part], limit_ppm: float | None, deviations: Mapping[str, float | None]
) -> list[Link]:
    """The pairs of hosts with messages in both directions, and those whose clocks differ by a constant that is known.
    Raises OplineError for a pair whose messages contradict.
    """
    links = []
    for i, part in enumerate(parts):
        for other in parts[i + 1 :]:
            a, b = part.name, other.name
            forward, backward = exchange.times(a, b), exchange.times(b, a)
            if (exact_ns := part.exactly_behind(other)) is not None:
                exact = ExactClock(exact_ns, len(forward[0]) + len(backward[0]))
                links.append(Link(a, b, forward, backward, exact))
                continue
            if min(len(forward[0]), len(backward[0])) < FEWEST:
                continue
            try:
                of_both = (deviations[a], deviations[b])
                deviation = None if None in of_both else sum(d or 0.0 for d in of_both)
                clock = PairClock(forward, backward, limit_ppm, deviation)
            except ContradictionError as error:
                raise OplineError(
                    f"The messages between {a} and {b} contradict each other: more than 0.1 % of them arrive before "
                    "they were sent, whatever the clocks. Does the model stamp a send before the call that sends?"
                ) from error
            links.append(Link(a, b, forward, backward, clock))
    return links


def _why_apart(exchange: Exchanges, network: Network, host: str) -> str:
    others = [h for h in network.hosts if h != host]
    toward = sum(exchange.count(other, host) for other in others)
    back = sum(exchange.count(host, other) for other in others)
    who = " and ".join(others[:3])
    if toward or back:
        return f"{host} is not aligned: messages go one way only between {who} and {host} ({toward} there, {back} back)"
    return f"{host} is not aligned: no message between {who} and {host}"


def _check_limits(network: Network) -> None:
    """One line for each thing that was found about a clock."""
    for link in network.links:
        for raised in link.clock.raised():
            begin, end = (f"{(ns - link.clock.origin_ns) / 1e9:.1f}" for ns in (raised.begin_ns, raised.end_ns))
            talk(f"{link.a} and {link.b}: the limit of the rate is {raised.limit_ppm:g} ppm from {begin} s to {end} s.")
        for step in link.clock.steps:
            begin = f"{(step.begin_ns - link.clock.origin_ns) / 1e9:.6f}"
            within = f"{(step.end_ns - step.begin_ns) / 1e6:.3f} ms"
            talk(f"{link.b}'s clock steps by {step.size_ns / 1e6:+.3f} ms at {begin} s (within {within}).")
        if link.clock.left_out:
            talk(f"{link.a} and {link.b}: {link.clock.left_out} messages contradict others and are left out.")


def _source(parts: Sequence[Part], network: Network, without: Sequence[str], absent: dict[str, Any]) -> Source:
    """All traces of the aligned hosts, with their maps; ``without``: why each other host is not in the run; ``absent``:
    see _absent. Raises OplineError.
    """
    traces: list[str] = []
    hosts: list[HostClock] = []
    gaps = [Gap("hosts_missing", why) for why in without]
    access = parts[0].source.access
    for part in parts:
        if part.name not in network.maps:
            continue
        clock = network.maps[part.name]
        knots = list(zip(clock.own_ns.tolist(), clock.reference_ns.tolist(), strict=True))
        traces += part.source.traces
        hosts += [(part.name, knots)] * len(part.source.traces)
        gaps += [_moved(gap, part.name, clock) for gap in part.source.gaps]
        mine, group = part.source.access
        access = (access[0] & mine, access[1] if access[1] == group else None)
    for host in network.maps:
        gaps += _steps(network, host)
    try:
        front = NativeReader(traces, hosts)
    except Unsupported as error:
        raise OplineError(f"Only the native reader joins traces, and it does not read this: {error}.") from error
    aligned = [part for part in parts if part.name in network.maps]
    maps = {path: found for part in aligned for path, found in part.source.maps.items()}
    why = "traces of several hosts are read with the maps of their clocks"
    of_cluster = {"clock_bounds": _bounds(network)} | _host_facts(aligned) | absent
    disks = {part.name: (part.source.recording or {}).get("devices", []) for part in aligned}
    return Source(parts[0].source.path, traces, front, why, maps, None, gaps, access, of_cluster, disks=disks)


def _absent(missing: Sequence[Missing], network: Network, spans: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """For the core's plan: the only host that is not in the run, and the time in which all others are recorded. A wait
    in that time for a host without a recording is a wait for this one. Of several hosts it would be a guess.
    """
    if len(missing) != 1 or network.apart:
        return {}
    times = [network.maps[host].at(np.array(span)).tolist() for host, span in spans.items()]
    begin_ns, end_ns = max(first for first, _ in times), min(last for _, last in times)
    return {"absent": {"host": missing[0].name, "begin_ns": begin_ns, "end_ns": end_ns}}


def _host_facts(parts: Sequence[Part]) -> dict[str, Any]:
    """For the core's plan, what each host's own plan says: its disks, files and stacks, and the processes that its
    recording is about. If a recording does not tell these processes, every process counts.
    """
    processes = [recorded_processes(part.source.recording) for part in parts]
    hosts = [
        {
            "name": part.name,
            "population": mine if all(processes) else [],
            "commands": recorded_commands(part.source.recording),
            "devices": all_disks(part.source.recording),
            "stacks": list(part.source.stacks),
        }
        for part, mine in zip(parts, processes, strict=True)
    ]
    files = [m.plan() | {"host": part.name} for part in parts for found in part.source.maps.values() for m in found]
    return {"hosts": hosts, "files": files}


def _bounds(network: Network) -> list[tuple[int, int]]:
    """From each time on, the greatest bound between two hosts, in periods of 100 ms; that of a step is in no period."""
    worst: dict[int, list[int]] = {}
    for clock in network.maps.values():
        period, bounds = (of[clock.steady] for of in (clock.reference_ns // BOUND_PERIOD_NS, clock.bound_ns))
        first = np.flatnonzero(np.diff(period, prepend=-1))
        for number, bound in zip(period[first], np.maximum.reduceat(bounds, first) if len(first) else (), strict=True):
            worst.setdefault(int(number), []).append(int(bound))
    return [(number * BOUND_PERIOD_NS, sum(sorted(bounds)[-2:])) for number, bounds in sorted(worst.items())]


def _moved(gap: Gap, host: str, clock: HostMap) -> Gap:
    """On the clock of the reference, with the name of the host."""

    def at(ns: int | None) -> int | None:
        return None if ns is None else int(clock.at(np.array([ns]))[0])

    return Gap(gap.loss, f"{host}: {gap.why}", at(gap.from_ns), at(gap.to_ns), gap.count)


def _steps(network: Network, host: str) -> list[Gap]:
    """Where a clock stepped, nothing is known of it: ops across are tainted."""
    clock = network.maps[host]
    edges = np.flatnonzero(np.diff(clock.segment)) if len(clock) else np.empty(0, np.int64)
    why = f"the clock of {host} was set, or the host stood still"
    return [Gap("clock_stepped", why, int(clock.reference_ns[k]), int(clock.reference_ns[k + 1])) for k in edges]


def _write_clock(network: Network, out: Path) -> None:
    parts: list[dict[str, np.ndarray]] = [
        {
            "host": np.full(len(clock), host, dtype=object),
            "ts_ns": clock.own_ns,
            "reference_ns": clock.reference_ns,
            "offset_ns": clock.own_ns - clock.reference_ns,
            **{name: getattr(clock, name) for name in ("low_ns", "high_ns", "bound_ns", "segment")},
        }
        for host, clock in network.maps.items()
    ]
    with duckdb.connect() as con:
        con.register("clock", {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
        con.table("clock").write_parquet(str(out), compression="zstd")
