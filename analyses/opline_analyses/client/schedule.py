# SPDX-License-Identifier: MIT
"""What ops would have taken since they were due, where the client has a schedule: corrects coordinated omission.

Takes a run, the temporary tables `chosen` and `counted` of ops/stages.py and a schedule; gives percentiles
as recorded and corrected. A schedule is one op each ``every_ns`` per thread that begins ops, and is known only where
the client says so (`demo-bench --rate`, `fio --rate_iops`) or the user does. Nothing is guessed from the latencies.

Since due: the n-th op of a thread was due at s + n * every_ns, where s is as late as it can be without an op that
begins before it is due. Its latency counts from there. That is what a client with a schedule makes its users wait
(Gil Tene's wrk2 counts so). It takes a client that catches up after a stall; one that never does has no such schedule.

HdrHistogram (recordValueWithExpectedInterval) knows no begins: for a latency L beyond the interval it adds L - i,
L - 2 i, ... down to i. It is right where one op at a time is in flight, and leaves out the backlog after a stall.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from opline.shapes import read_json
from opline.store.manifest import RECORDING
from opline.values import Value
from opline_analyses.base.result_table import ResultTable, identifier, text, time
from opline_analyses.base.text import duration, table_digits
from opline_analyses.client.client_files import find_report
from opline_analyses.runs.columns import queried
from opline_analyses.runs.selection import nearest_classes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from opline_analyses.base.result_table import Part
    from opline_analyses.client.client import ClientReport
    from opline_analyses.runs.run import Run

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
LAST = 0.1  # of a thread's ops: one of them, at least, begins in time if the client has caught up
FEW = 0.1  # of the ops of the thread with the most
MOST = 50_000_000  # latencies that the correction may make


class Schedule(Value):
    """One op is due each ``every_ns`` on each thread that begins ops. ``source``: who says so."""

    every_ns: float
    source: str


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


def _of_command(argv: list[str]) -> Schedule | None:
    """fio's --rate_iops=N, the same for all of its jobs."""
    rates = {found[1] for word in argv if (found := re.fullmatch(r"--?rate_iops=(\d+)", word))}
    if len(rates) == 1 and float(rate := rates.pop()):
        return Schedule(1e9 / float(rate), f"--rate_iops={rate}")
    return None


def known_schedule(run: Run, client: ClientReport | None) -> Schedule | None:
    """What the client's report or the recorded command says; None where neither says anything."""
    if client is not None and client.rate:
        return Schedule(1e9 / client.rate, f"{client.tool}: {client.rate:g} ops a second are due")
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
    ops = queried(
        run,
        f"""SELECT begin_tid, begin_ns, coalesce(end_ns, begin_ns) AS end_ns,
                   op_id IN (SELECT op_id FROM counted) AS told
            FROM ops SEMI JOIN chosen USING (op_id)
            {"WHERE class IN (" + ", ".join("?" * len(classes)) + ")" if classes else ""}
            ORDER BY begin_tid, begin_ns""",
        classes,
    )
    begin, end, told = ops["begin_ns"], ops["end_ns"], ops["told"]
    if not told.any():
        return None
    _, first, number = np.unique(ops["begin_tid"], return_index=True, return_counts=True)
    steady = number > FEW * number.max()  # a thread that begins a few ops has no schedule
    since, late, behind, single = [], 0, 0, True
    for low, high, has_one in zip(first, first + number, steady, strict=True):
        b, e = begin[low:high], end[low:high]
        if not has_one:
            since.append(e - b)
            continue
        lateness = b - b[0] - np.arange(len(b)) * schedule.every_ns
        lateness -= lateness.min()
        late = max(late, int(lateness.max()))
        behind = max(behind, int(lateness[-max(1, int(LAST * len(b))) :].min()))
        single &= bool((b[1:] >= np.maximum.accumulate(e)[:-1]).all())
        since.append((e - b + lateness).astype(np.int64))
    caught_up = behind <= max(schedule.every_ns, LAST * late)
    latency = (end - begin)[told]
    hdr = _hdr(latency, schedule.every_ns) if single else np.zeros(0, np.int64)
    due = _percentiles(np.concatenate(since)[told]) if caught_up else None
    return Corrected(
        schedule, int(steady.sum()), _percentiles(latency), due,
        _percentiles(hdr) if len(hdr) else None, late, behind,
    )  # fmt: skip


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


def loop_lines(loop: int | None, found: Corrected | None) -> Iterator[Part]:
    """What the latencies do not show: corrected where a schedule is known, said where there is none."""
    if found is None:
        if loop is not None:
            yield f"closed loop of {loop}: a slow op delays the next one's begin, which no latency shows"
        return
    yield (
        f"schedule: one op each {duration(found.schedule.every_ns)}"
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
