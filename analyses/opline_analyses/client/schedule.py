# SPDX-License-Identifier: MIT
"""What ops would have taken since they were due, where the client has a schedule: corrects coordinated omission.

Takes a run, the temporary tables `chosen` and `counted` of ops/stages.py and a schedule; gives percentiles
as recorded and corrected. A schedule is one op each ``every_ns`` per thread that begins ops, and is known only where
the client says so (`demo-bench --rate`, fio's `rate_iops` and `rate`) or the user does. fio has one for each direction.
Nothing is guessed from the latencies.

Since due: the n-th op of a thread was due at s + n * every_ns, where s is as late as it can be without an op that
begins before it is due. Its latency counts from there. That is what a client with a schedule makes its users wait
(Gil Tene's wrk2 counts so). It takes a client that catches up after a stall; one that never does has no such schedule.

HdrHistogram (recordValueWithExpectedInterval) knows no begins: for a latency L beyond the interval it adds L - i,
L - 2 i, ... down to i. It is right where one op at a time is in flight, and leaves out the backlog after a stall.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opline.shapes import read_json
from opline.store.manifest import RECORDING
from opline.values import Value
from opline_analyses.base.result_table import ResultTable, identifier, text, time
from opline_analyses.base.text import duration, table_digits
from opline_analyses.client.client_files import find_report
from opline_analyses.client.fio_rate import options_in, rates_of
from opline_analyses.runs.columns import queried
from opline_analyses.runs.selection import directions_of, nearest_classes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from opline_analyses.base.result_table import Part
    from opline_analyses.client.client_report import ClientReport
    from opline_analyses.runs.run import Run

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
LAST = 0.1  # of a thread's ops: one of them, at least, begins in time if the client has caught up
FEW = 0.1  # of the ops of the thread with the most
MOST = 50_000_000  # latencies that the correction may make


class Schedule(Value):
    """One op is due each ``every_ns`` on each thread that begins ops. ``source``: who says so. ``of_each``: of the ops
    of each direction by itself one each so many ns; then ``every_ns`` is the shortest.
    """

    every_ns: float
    source: str
    of_each: Mapping[str, float] = {}


class Corrected(Value):
    """Percentiles in ns by name. ``due``: None where the client never catches up; ``hdr``: None where more than one op
    of a thread is in flight. ``late_ns``: the latest begin; ``behind_ns``: how late the last ops begin.
    """

    schedule: Schedule
    threads: int
    recorded: dict[str, int]
    due: dict[str, int] | None
    hdr: dict[str, int] | None
    late_ns: int
    behind_ns: int


def _percentiles(values: Numbers) -> dict[str, int]:
    """By nearest rank, as everywhere."""
    ordered = np.sort(values)
    return {name: int(ordered[max(0, -int(-q * len(ordered) // 1) - 1)]) for name, q in QUANTILES}


def _of_rates(rates: Mapping[str, float], source: str) -> Schedule | None:
    """Of the ops a second that are due of each direction."""
    of_each = {name: 1e9 / rate for name, rate in rates.items()}
    return Schedule(min(of_each.values()), source, of_each) if of_each else None


def _of_command(argv: list[str]) -> Schedule | None:
    """fio's --rate_iops=N or --rate=N, the same for all of its jobs."""
    rates, said = rates_of(options_in(argv))
    return _of_rates(rates, f"--{said}")


def known_schedule(run: Run, client: ClientReport | None) -> Schedule | None:
    """What the client's report or the recorded command says; None where neither says anything."""
    if client is not None and client.rate:
        return Schedule(1e9 / client.rate, f"{client.tool}: {client.rate:g} ops a second are due")
    if client is not None and client.rates:
        return _of_rates(client.rates, client.rates_source)
    for place in run.places():
        if (file := place / "recording.json").is_file():
            return _of_command(_argv(file))
    return None


def _argv(file: Path) -> list[str]:
    command = read_json(file, RECORDING).get("command") or {}
    return [word for word in command.get("argv") or [] if isinstance(word, str)]


def _hdr(latency: Numbers, every: float) -> Numbers:
    number = np.maximum(np.floor(latency / every).astype(np.int64) - 1, 0)  # L - every, ..., not below every
    if number.sum() > MOST:
        return np.zeros(0, np.int64)
    which = np.repeat(np.arange(len(latency)), number)
    step = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number) + 1
    return np.concatenate((latency, (latency[which] - step * every).astype(np.int64)))


def corrected(run: Run, schedule: Schedule, classes: Sequence[str] = ()) -> Corrected | None:
    """Of the ops in `counted`; None without any. The schedule is of all in `chosen`, those that are not counted, too;
    ``classes``: only of these.
    """
    of_each = _classes_of(run, schedule, classes)
    if of_each:
        schedule = Schedule(
            min(schedule.of_each[name] for name in of_each), schedule.source,
            {name: schedule.of_each[name] for name in of_each},
        )  # fmt: skip
        parts = [_part(run, schedule.of_each[name], of_it) for name, of_it in of_each.items()]
    else:
        parts = [_part(run, schedule.every_ns, classes)]
    parts = [part for part in parts if part.told.any()]
    if not parts:
        return None
    late, behind = max(part.late_ns for part in parts), max(part.behind_ns for part in parts)
    caught_up = all(part.behind_ns <= max(part.every_ns, LAST * part.late_ns) for part in parts)
    hdr = [_hdr(part.latency[part.told], part.every_ns) if part.single else np.zeros(0, np.int64) for part in parts]
    return Corrected(
        schedule, max(part.threads for part in parts),
        _percentiles(np.concatenate([part.latency[part.told] for part in parts])),
        _percentiles(np.concatenate([part.since[part.told] for part in parts])) if caught_up else None,
        _percentiles(np.concatenate(hdr)) if all(len(each) for each in hdr) else None, late, behind,
    )  # fmt: skip


def _classes_of(run: Run, schedule: Schedule, classes: Sequence[str]) -> dict[str, list[str]]:
    """The classes of ops of each direction that has a schedule of its own, and ops."""
    known = [name for (name,) in run.rows("SELECT DISTINCT class FROM ops SEMI JOIN chosen USING (op_id)") if name]
    wanted = sorted(name for name in known if not classes or name in classes)
    found = {
        direction: [name for name in wanted if direction in directions_of(name, [*schedule.of_each])]
        for direction in schedule.of_each
    }
    return {direction: names for direction, names in found.items() if names}


class _Part(Value):
    """The ops of one schedule: latencies as recorded and since due, and which of them count."""

    every_ns: float
    threads: int
    latency: Numbers
    since: Numbers
    told: np.ndarray[Any, np.dtype[np.bool_]]
    late_ns: int
    behind_ns: int
    single: bool  # one op of a thread is in flight


def _part(run: Run, every_ns: float, classes: Sequence[str]) -> _Part:
    """Of the ops of these classes, all without any."""
    ops = queried(
        run,
        f"""SELECT begin_tid, begin_ns, coalesce(end_ns, begin_ns) AS end_ns,
                   op_id IN (SELECT op_id FROM counted) AS told
            FROM ops SEMI JOIN chosen USING (op_id)
            {"WHERE class IN (" + ", ".join("?" * len(classes)) + ")" if classes else ""}
            ORDER BY begin_tid, begin_ns""",
        classes,
    )
    begin, end = ops["begin_ns"], ops["end_ns"]
    _, first, number = np.unique(ops["begin_tid"], return_index=True, return_counts=True)
    steady = number > FEW * number.max(initial=0)  # a thread that begins a few ops has no schedule
    since, late, behind, single = [np.zeros(0, np.int64)], 0, 0, True
    for low, high, has_one in zip(first, first + number, steady, strict=True):
        b, e = begin[low:high], end[low:high]
        if not has_one:
            since.append(e - b)
            continue
        lateness = b - b[0] - np.arange(len(b)) * every_ns
        lateness -= lateness.min()
        late = max(late, int(lateness.max()))
        behind = max(behind, int(lateness[-max(1, int(LAST * len(b))) :].min()))
        single &= bool((b[1:] >= np.maximum.accumulate(e)[:-1]).all())
        since.append((e - b + lateness).astype(np.int64))
    return _Part(
        every_ns, int(steady.sum()), end - begin, np.concatenate(since), ops["told"].astype(bool), late, behind, single
    )


def corrected_latencies(run: Run, every_ns: int | None, client: ClientReport | None = None) -> Corrected | None:
    """By the schedule that the user gives, or the client; None where nobody does. ``client``: found beside the run."""
    if every_ns is not None:
        return corrected(run, Schedule(float(every_ns), "--every"))
    client = client or next(filter(None, map(find_report, run.places())), None)
    schedule = known_schedule(run, client)
    if schedule is None:
        return None
    rows = run.rows(
        "SELECT class, count(*) FROM ops SEMI JOIN chosen USING (op_id) WHERE class IS NOT NULL GROUP BY ALL"
    )
    return corrected(run, schedule, nearest_classes(dict(rows), client.counts()) if client else ())


def _each(schedule: Schedule) -> str:
    """What is due: one op each 5 ms; one read each 5 ms and one write each 2.5 ms."""
    if len(schedule.of_each) < 2:
        return f"one op each {duration(schedule.every_ns)}"
    return " and ".join(f"one {name} each {duration(every_ns)}" for name, every_ns in schedule.of_each.items())


def loop_lines(loop: int | None, found: Corrected | None) -> Iterator[Part]:
    """What the latencies do not show: corrected where a schedule is known, said where there is none."""
    if found is None:
        if loop is not None:
            yield f"Closed loop ({loop} in flight): the latencies leave out the delay of later ops."
        return
    yield (
        f"schedule: {_each(found.schedule)}"
        + (f" on each of {found.threads} threads" if found.threads > 1 else "")
        + f" ({found.schedule.source}); the latest begins {duration(found.late_ns)} late"
    )
    if found.due is None:
        yield f"  it never caught up: the last ops begin {duration(found.behind_ns)} late, so no latency since due"
    columns = {"recorded": found.recorded, "since due": found.due, "as HdrHistogram": found.hdr}
    shown = {name: values for name, values in columns.items() if values is not None}
    digits = table_digits(max(v for values in shown.values() for v in values.values()))
    rows = [[name, *(values[name] for values in shown.values())] for name, _ in QUANTILES]
    times = [time(f"{identifier(name)}_ns", name, digits) for name in shown]
    yield ResultTable([text("quantile", "latency (us)"), *times], rows)


def document(found: Corrected | None) -> dict[str, Any] | None:
    """As plain JSON types."""
    return None if found is None else {**vars(found), "schedule": vars(found.schedule)}
