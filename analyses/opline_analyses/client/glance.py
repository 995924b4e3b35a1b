# SPDX-License-Identifier: MIT
"""The first look at a new recording: the ops beside the client's figures, the widest stage, the losses, and the next
commands.

Takes a recording's directory; gives a few lines. The core counts while reading the trace; no run is made.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opline.correlation import recording_of, stage_statistics
from opline.errors import OplineError
from opline.population import population_in
from opline.talk import shown
from opline.values import Value
from opline_analyses.base.text import count_of, duration, pasted, percent
from opline_analyses.client.client_files import find_report
from opline_analyses.client.clients_ops import clients_ops
from opline_analyses.client.defaults import outside_count, outside_of
from opline_analyses.ops.stages import stage_table, table_of
from opline_analyses.runs import ledger
from opline_analyses.runs.not_yours import line_of, names_in
from opline_analyses.runs.run import open_run
from opline_analyses.runs.selection import BIO, NEAR, Selection, matching_classes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from opline.model import Model
    from opline_analyses.client.client_report import ClientReport
    from opline_analyses.ops.stages import StageTable

MOST_EVENTS = 5_000_000  # beyond, reading the trace takes longer than anybody waits for a summary
# classes of the model `syscalls` whose ops are one call each
_CALLS = frozenset({"read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev"})
_REAL_SHARE = 0.05  # of the mean latency
_P99 = ("latency_ns.p99",)


def next_lines(directory: Path, modelled: bool, block: bool) -> Iterator[str]:
    """The next commands: none prints more than a screen or two. ``modelled``: the recording has counted ops; ``block``:
    the recording has block events.
    """
    at = pasted(directory)
    if not modelled:
        yield f"next:  opline hist {at}" if block else f"next:  opline events {at} --limit 20"
        return
    yield f"next:  opline why {at}"
    yield f"       opline stages {at}"
    yield f"       opline ops {at} --slowest 3"


class Glance(Value):
    """The result of a recording with a model, in lines; ``ops``: the commands about ops have something to show."""

    lines: list[str]
    ops: bool


def glance(directory: Path, model: Model, event_count: int | None) -> Glance:
    """The ops of a recording, the ops left out, and the losses."""
    if event_count is None or event_count > MOST_EVENTS:
        return Glance(["the trace is long: opline stages counts its ops"], True)
    try:
        wish = outside_of(recording_of(directory))
        found, losses = stage_statistics(directory / "trace", model, progress=False, without=wish)
    except OplineError as error:
        return Glance([error.lines[0]], True)
    try:
        lines = list(_of_ops(directory, model, found))
        ops = True
    except OplineError as error:
        lines, ops = [error.lines[0]], False
    population = population_in(found)
    if population is not None and (line := line_of(population, names_in(recording_of(directory)))):
        lines.append(line)
    if lost := ledger.line(ledger.entries_of(losses), found["ops"], f"`opline losses {pasted(directory)}`"):
        lines.append(lost)
    return Glance(lines, ops)


def _of_ops(directory: Path, model: Model, found: dict[str, Any]) -> Iterator[str]:
    without, client = found["without"], find_report(directory)
    counted = _counted(directory, model, found, without, client)
    yield _ops(counted, client, found["takes_unseen"])
    of_calls = [name for name in found["classes"] if not name.startswith(without)]
    yield from _own_cost(directory, counted.table, counted.classes or of_calls)
    yield from _widest(counted.table)


class _Counted(Value):
    """The stages of the ops that the summary is about; their classes, empty where all are meant; ops of others; why the
    client's figures are not those of these ops, empty where they may be compared.
    """

    table: StageTable
    classes: list[str]
    others: int
    why_not: str = ""


def _counted(
    directory: Path, model: Model, found: dict[str, Any], without: tuple[str, ...], client: ClientReport | None
) -> _Counted:
    whole = table_of(found, found["incomplete"], found["tainted"], directory)
    others = outside_count(found["classes"], without)
    if client is None:
        return _Counted(whole, [], others)
    counts = client.counts()
    near = None if client.ramp_seconds else matching_classes(found["classes"], counts)
    if counts and near is None:  # or those in the client's time
        with open_run(directory, tables=("ops", "stages", "deferred")) as run:
            meant = clients_ops(run, Selection(), client)
            if meant is not None:
                n, ops = run.row(
                    f"SELECT count(*) FILTER ({meant.which.where}), count(*) FROM ops o", meant.which.parameters
                )
                return _Counted(stage_table(run, meant.which, False), meant.classes, ops - n)
    if why_not := _not_alike(found["classes"], client):
        return _Counted(whole, [], others, why_not)
    if not near or len(near) == len(found["classes"]):
        return _Counted(whole, [], others)
    mine, _ = stage_statistics(directory / "trace", model, classes=near, progress=False)
    rest = sum(n for name, n in found["classes"].items() if name not in near)
    return _Counted(table_of(mine, mine["incomplete"], mine["tainted"], directory), near, rest)


def _not_alike(classes: dict[str, int], client: ClientReport) -> str:
    """The reason why the client's figures are not of the recorded ops; empty if comparable."""
    theirs = " and ".join(count_of(n, name) for name, n in client.counts().items())
    count = theirs or ("" if client.count is None else count_of(client.count, "op"))
    said = f"{client.tool}'s own figures (mean {duration(client.mean_ns)}{f' of {count}' if count else ''})"
    if client.ramp_seconds:
        return f"{said} begin after a ramp of {client.ramp_seconds:g} s"
    if client.count is None or (theirs and matching_classes(classes, client.counts()) is not None):
        return ""
    near = abs(sum(classes.values()) - client.count) <= NEAR * client.count
    bios = any(name.startswith(BIO) for name in classes)  # of the whole machine
    return "" if near and not bios else f"{said} are of other ops"


def _ops(counted: _Counted, client: ClientReport | None, unseen: int) -> str:
    """``unseen``: ops that end at the completion, as no event tells when the application took the completion."""
    t = counted.table
    of = f"{' and '.join(map(shown, counted.classes))} " if counted.classes else ""
    text = f"{count_of(t.ops, f'{of}op')}: mean {duration(t.latency.mean_ns)}, p99 {duration(t.latency.p99_ns)}"
    if t.incomplete:
        text += f", {t.incomplete} incomplete"
    if client and not counted.why_not:
        p99 = next((client.numbers[name] for name in _P99 if name in client.numbers), None)
        count = "" if client.count is None else f"{count_of(client.count, 'op')}, "
        text += f"; {client.tool} says {count}mean {duration(client.mean_ns)}"
        text += "" if p99 is None else f", p99 {duration(p99)}"
        if not unseen and (outside_ns := client.outside_ns(t.latency.mean_ns)) is not None:
            text += f", {duration(outside_ns)} of the mean outside of these ops"
        if unseen:
            text += f", until it takes the completion (of {count_of(unseen, 'op')} no event shows when)"
    if counted.others:
        text += f"; {count_of(counted.others, 'other op')}"
    return text + (f"; {counted.why_not}" if counted.why_not else "")


def _own_cost(directory: Path, t: StageTable, classes: list[str]) -> Iterator[str]:
    """The recorder's own cost in each op that is a system call, if a real share of the latency."""
    cost_ns = ((recording_of(directory) or {}).get("collector") or {}).get("call_ns")
    if cost_ns and classes and set(classes) <= _CALLS and cost_ns >= _REAL_SHARE * t.latency.mean_ns:
        yield (
            f"recording itself takes at least {duration(cost_ns)} per call, partly outside of these ops: "
            "without it the calls are faster (`opline record --measure-overhead`)"
        )


def _widest(t: StageTable) -> Iterator[str]:
    widest = max(t.stages, key=lambda s: s.total_ns, default=None)
    if widest:
        share = percent(widest.total_ns, t.latency.total_ns)
        yield f"widest stage: {widest.stage}, {duration(widest.total_ns / t.ops)} of the mean ({share} %)"
