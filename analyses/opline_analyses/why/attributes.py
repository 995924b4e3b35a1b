# SPDX-License-Identifier: MIT
"""What is recorded of each op that is no part of its latency: what may separate slow ops from the others.

Takes a run with the temporary table `tested` (separators.py); gives attributes over those ops in the order of their
begin. An attribute is a number per op, its code; each condition is a range of codes: one value of a class, a thread, a
device; more or less than a limit of a size or a queue. Nothing here is a time of the op's own, or grows while it waits:
such things always separate, and explain nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opline.store.arrays import gathered
from opline.store.schema import ATTRIBUTES
from opline_analyses.base.text import device_name, duration
from opline_analyses.client.loop import closed_loop
from opline_analyses.runs.cgroups import names
from opline_analyses.runs.columns import give, named, queried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from opline.store.arrays import Codes
    from opline_analyses.runs.run import Run

    Numbers = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]

NEIGHBOUR = "neighbour met"
MOST_THREADS = 64  # those with the most points
MOST_CGROUPS = 16  # those with the most requests
MOST_VALUES = 4096  # of one attribute: the rarer ones are no conditions
QUANTILES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)  # limits of a number


class Condition(NamedTuple):
    """Codes from ``low`` to ``high`` (inclusive). ``text`` is what such ops do: `begin on CPU 1`."""

    text: str
    low: int
    high: int


class Attribute(NamedTuple):
    """``codes``: one per op; -1 where it is not known. ``size``: codes are below it."""

    name: str
    codes: np.ndarray[Any, np.dtype[np.int32]]
    size: int
    conditions: list[Condition]


def valued(name: str, text: str, codes: np.ndarray[Any, np.dtype[np.int32]], values: list[str]) -> Attribute:
    """Of an attribute with names: a condition per value, `{}` in ``text`` is its name."""
    return Attribute(name, codes, len(values), [Condition(text.format(v), i, i) for i, v in enumerate(values)])


def numeric(
    name: str, more: str, less: str | None, numbers: Numbers, known: np.ndarray[Any, np.dtype[np.bool_]]
) -> Attribute:
    """Of a number: more than each limit, and up to it where ``less`` has words for that."""
    if not known.any():
        return Attribute(name, np.full(len(numbers), -1, np.int32), 0, [])
    limits = np.unique(np.quantile(numbers[known], QUANTILES, method="lower"))
    limits = limits[limits < numbers[known].max()]
    codes = np.where(known, np.searchsorted(limits, numbers, "left"), -1).astype(np.int32)
    conditions = [Condition(more.format(int(v)), i + 1, len(limits)) for i, v in enumerate(limits)]
    if less is not None:
        conditions += [Condition(less.format(int(v)), 0, i) for i, v in enumerate(limits)]
    return Attribute(name, codes, len(limits) + 1, conditions)


def _named(name: str, text: str, column: Codes) -> Attribute:
    codes, values = column
    if len(values) > MOST_VALUES:  # the most frequent ones keep a code
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        kept = np.argsort(-counts, kind="stable")[:MOST_VALUES]
        again = np.full(len(values) + 1, -1, np.int32)
        again[kept] = np.arange(len(kept))
        codes, values = again[codes], [values[i] for i in kept]
    return valued(name, text, codes, values)


def _threads(run: Run, ids: Numbers) -> Iterator[Attribute]:
    found = queried(
        run, "SELECT op_id, tid FROM transitions SEMI JOIN tested USING (op_id) WHERE tid IS NOT NULL AND NOT late"
    )
    tids, last, places, number = np.unique(found["tid"], return_index=True, return_inverse=True, return_counts=True)
    if len(tids) < 2:
        return
    give(run, "asked", op_id=np.unique(found["op_id"][last]))
    names = dict(
        run.rows("SELECT tid, arg_max(comm, ts_ns) FROM transitions SEMI JOIN asked USING (op_id) GROUP BY tid")
    )
    kept = np.argsort(-number, kind="stable")[:MOST_THREADS]
    row = np.full(len(tids), -1, np.int64)
    row[kept] = np.arange(len(kept))
    passed = np.zeros((len(kept), len(ids)), np.int8)
    mine = row[places] >= 0
    passed[row[places[mine]], np.searchsorted(ids, found["op_id"][mine])] = 1
    for i, tid in enumerate(tids[kept].tolist()):
        codes = passed[i].astype(np.int32)
        yield Attribute("thread", codes, 2, [Condition(f"pass thread {names.get(tid) or '?'}:{tid}", 1, 1)])


def _met(times: Numbers, devs: Numbers, found: dict[str, Any], which: np.ndarray[Any, Any]) -> Numbers:
    """How many of those requests were between D and C on the same device at each of the times."""
    number = np.zeros(len(times), np.int64)
    for dev in np.unique(devs):
        mine, theirs = devs == dev, which & (found["dev"] == dev)
        issued, done = np.sort(found["d"][theirs]), np.sort(found["c"][theirs])
        number[mine] = np.searchsorted(issued, times[mine], "left") - np.searchsorted(done, times[mine], "right")
    return number


def _cgroups(run: Run) -> list[str]:
    """The cgroups that have requests, in the order of their codes in the temporary table `cgroups`."""
    run.con.execute(
        f"""CREATE OR REPLACE TEMP TABLE cgroups AS
            SELECT cgroup, row_number() OVER (ORDER BY count(*) DESC, cgroup) - 1 AS code
            FROM (SELECT cgroup::VARCHAR AS cgroup FROM all_requests WHERE cgroup IS NOT NULL) GROUP BY cgroup
            ORDER BY code LIMIT {MOST_CGROUPS}"""
    )
    return list(names(run, [path for (path,) in run.rows("SELECT cgroup FROM cgroups ORDER BY code")]).values())


def _requests(run: Run, ids: Numbers) -> Iterator[Attribute]:
    cgroups = _cgroups(run)
    first, classes, of_class = named(
        run,
        """WITH f AS (SELECT op_id, min(request_id) AS request_id FROM links SEMI JOIN tested USING (op_id)
                     GROUP BY op_id)
           SELECT f.op_id, r.queue_ns AS q, r.dev::BIGINT AS dev, coalesce(o.class, '') AS class,
                  coalesce(g.code, -1)::BIGINT AS cgroup
           FROM f JOIN requests r USING (request_id) JOIN ops o ON o.op_id = f.op_id
           LEFT JOIN cgroups g ON g.cgroup = coalesce(o.cgroup, r.cgroup)::VARCHAR
           WHERE r.queue_ns IS NOT NULL ORDER BY f.op_id""",
        "class",
    )
    if not len(first["op_id"]):
        return
    rows = np.searchsorted(ids, first["op_id"])
    known = np.zeros(len(ids), bool)
    known[rows] = True

    def spread(values: Numbers) -> Numbers:
        whole = np.full(len(ids), -1, np.int64)
        whole[rows] = values
        return whole

    names = run.device_names()
    devs = np.unique(first["dev"])
    codes = spread(np.searchsorted(devs, first["dev"])).astype(np.int32)
    yield valued("device", "are on device {}", codes, [device_name(names, int(d)) for d in devs])
    at, slow_classes, slow_class = named(
        run,
        """WITH s AS (SELECT l.request_id, min(coalesce(o.class, '')) AS class
                     FROM links l SEMI JOIN (SELECT op_id FROM sides WHERE slow) USING (op_id) JOIN ops o USING (op_id)
                     GROUP BY l.request_id)
           SELECT r.dev::BIGINT AS dev, r.first_issue_ns AS d, r.complete_ns AS c, s.class,
                  r.op_id IS NULL AND r.op_count = 0 AS nobodys, r.kind = 'write' AS is_write,
                  r.kind = 'read' AS is_read, (r.kind = 'flush' OR r.rwbs LIKE 'F%') AS is_flush,
                  coalesce(g.code, -1)::BIGINT AS cgroup
           FROM all_requests r LEFT JOIN s USING (request_id) LEFT JOIN cgroups g ON g.cgroup = r.cgroup::VARCHAR
           WHERE r.first_issue_ns IS NOT NULL AND r.complete_ns IS NOT NULL""",
        "class",
    )

    def others(which: Flags) -> Numbers:
        """How many of these are met, without those of slow ops of the same class: what holds those up holds both up."""
        numbers = _met(first["q"], first["dev"], at, which)
        for code, name in enumerate(slow_classes.tolist()):
            mine = of_class == np.flatnonzero(classes == name).max(initial=-2)
            numbers[mine] -= _met(first["q"][mine], first["dev"][mine], at, which & (slow_class == code))
        return numbers

    every = np.ones(len(at["d"]), bool)
    for name, what, which in (
        ("queue depth met", "requests", every),
        ("writes met", "write requests", np.asarray(at["is_write"], bool)),
        ("reads met", "read requests", np.asarray(at["is_read"], bool)),
        ("flushes met", "flushes", np.asarray(at["is_flush"], bool)),
        ("background met", "requests of no op", np.asarray(at["nobodys"], bool)),
    ):
        if which.any():
            numbers = spread(others(which))
            # Not how few: an op that was held up for long finds the device idle.
            yield numeric(name, f"meet more than {{}} {what} at the device", None, numbers, known)
    for code, name in enumerate(cgroups):  # of neighbours: an op's own cgroup is no reason
        elsewhere = spread(np.asarray(first["cgroup"] != code, np.int64)) == 1
        if elsewhere.any():
            numbers = spread(others(at["cgroup"] == code))
            what = f"requests of cgroup {name}".replace("{", "{{").replace("}", "}}")
            yield numeric(NEIGHBOUR, f"meet more than {{}} {what} at the device", None, numbers, elsewhere)


def _batches(run: Run, ids: Numbers) -> Iterator[Attribute]:
    # Not how many are in it: a batch grows while its members wait.
    # A batch's shared points have the same times for all members, so the sums are in the order in which they joined.
    found = queried(
        run,
        """WITH j AS (SELECT op_id, batch_id, sum(ts_ns) AS t FROM transitions WHERE batch_id IS NOT NULL GROUP BY ALL),
                p AS (SELECT op_id, row_number() OVER (PARTITION BY batch_id ORDER BY t, op_id) AS place FROM j)
           SELECT op_id, min(place) AS place FROM p SEMI JOIN tested USING (op_id) GROUP BY op_id ORDER BY op_id""",
    )
    if not len(found["op_id"]):
        return
    rows = np.searchsorted(ids, found["op_id"])
    numbers = np.full(len(ids), -1, np.int64)
    numbers[rows] = found["place"]
    more, less = "come after place {} of their batch", "come at place {} of their batch or before"
    yield numeric("place in the batch", more, less, numbers, numbers >= 0)


def _arrivals(run: Run, ids: Numbers, begins: Numbers) -> Iterator[Attribute]:
    # Not how many are in flight: a stall makes them many. In a closed loop an op's begin is another one's end.
    if closed_loop(run) is not None:
        return
    (usual,) = run.row("SELECT quantile_disc(latency_ns, 0.5) FROM ranked")
    every = np.sort(queried(run, "SELECT begin_ns FROM ops")["begin_ns"])
    numbers = np.searchsorted(every, begins, "left") - np.searchsorted(every, begins - usual, "left")
    more = f"begin with more than {{}} others begun in the {duration(usual)} before"
    yield numeric("arrivals", more, None, numbers, np.ones(len(ids), bool))


def _of_cgroups(run: Run, column: Codes) -> Attribute:
    codes, paths = column
    called = list(names(run, paths).values())
    return valued("cgroup", "are begun in cgroup {}", codes, called)


def attributes(run: Run) -> list[Attribute]:
    """All that is recorded, of the ops in `tested`, in the order of op_id."""
    declared = "".join(f", {a.column}::VARCHAR AS {a.column}" for a in ATTRIBUTES)
    ops = gathered(
        run.con.sql(
            f"""SELECT op_id, begin_ns, coalesce(length_bytes, -1)::BIGINT AS length, class, object, comm,
                      begin_tid::VARCHAR AS begin_tid, cgroup::VARCHAR AS cgroup{declared}
               FROM ops SEMI JOIN tested USING (op_id) ORDER BY op_id"""
        )
    )
    ids, begins, lengths = (ops.array(c) for c in ("op_id", "begin_ns", "length"))
    found = [
        _named("class", "are of class {}", ops.codes("class")),
        _named("object", "work on object {}", ops.codes("object")),
        _named("program", "are begun by threads called {}", ops.codes("comm")),
        _of_cgroups(run, ops.codes("cgroup")),
        _named("first thread", "are begun by thread {}", ops.codes("begin_tid")),
        numeric("size", "are longer than {} bytes", "are at most {} bytes long", lengths, lengths >= 0),
    ]  # fmt: skip
    found += [_named(a.kind, a.phrase, ops.codes(a.column)) for a in ATTRIBUTES]
    found += _arrivals(run, ids, begins)
    makers: tuple[Callable[[Run, Numbers], Iterator[Attribute]], ...] = (_threads, _requests, _batches)
    for make in makers:
        found += make(run, ids)
    return found
