# SPDX-License-Identifier: MIT
"""The work of threads between two times: the points passed by each thread, in order of time.

Takes stages that end on a thread, as columns; gives the time of each kind of work of the thread inside of the stages. A
piece lies between two neighbouring points of a thread. A piece is work if both points are of one op. Between points of
the same moment no time passes: a search finds the last point of the moment.

A range of ops is read at a time, with the points of their threads from the last point before the first stage begins to
the first point after the last stage ends. `Slots` finds these two ends from one reading of all points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opline.store.arrays import gathered
from opline_analyses.runs.columns import queried

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]

SLOTS = 1024
_CODES = 2 * SLOTS + 2  # a slot's number is below 2 * SLOTS: a width is rounded down
_NEVER: int = np.iinfo(np.int64).max

OWN, UNSEEN, BETWEEN, BEHIND = range(4)  # kinds of pieces; from BEHIND on: another op's work, by its two points


class Waiting(NamedTuple):
    """Stages, a column each. ``place``: number of the asked stage; ``thread``: the thread's place in Slots.tids."""

    place: Ints
    op_id: Ints
    begin_ns: Ints
    end_ns: Ints
    thread: Ints

    def only(self, wanted: Any) -> Waiting:
        """The ``wanted`` stages (flags)."""
        return Waiting(*(column[wanted] for column in self))


class Slots:
    """The first and the last time of each thread's points in each of SLOTS slots of the run."""

    def __init__(self, run: Run) -> None:
        self._start, self._width = run.row(
            f"""SELECT coalesce(min(ts_ns), 0), coalesce(greatest(1, (max(ts_ns) - min(ts_ns)) // {SLOTS}), 1)
                FROM transitions"""
        )
        rows = queried(
            run,
            f"""SELECT tid, (ts_ns - {self._start}) // {self._width} AS slot, min(ts_ns) AS first_ns,
                       max(ts_ns) AS last_ns
                FROM transitions WHERE tid IS NOT NULL GROUP BY tid, slot ORDER BY tid, slot""",
        )
        self.tids, self._begins, threads = np.unique(rows["tid"], return_index=True, return_inverse=True)
        self._ends = np.append(self._begins[1:], len(rows["tid"]))
        self._first, self._last = rows["first_ns"], rows["last_ns"]
        self._codes = threads * _CODES + rows["slot"] + 1

    def threads(self, tids: Ints) -> Ints:
        """The place of each thread in ``tids``; -1: a thread without points."""
        if not len(self.tids):
            return np.full(len(tids), -1)
        found = np.minimum(np.searchsorted(self.tids, tids), len(self.tids) - 1)
        return np.where(self.tids[found] == tids, found, -1)

    def around(self, threads: Ints, begin_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints]:
        """Times of points of the threads, such that no point of a thread in an earlier slot lies between the first time
        and ``begin_ns``; the same behind ``end_ns``. For a thread without such a point: the thread's first or last
        point.
        """
        before = np.searchsorted(self._codes, self._code(threads, begin_ns)) - 1
        after = np.searchsorted(self._codes, self._code(threads, end_ns), "right")
        begins, ends = self._begins[threads], self._ends[threads]
        least = np.where(before >= begins, self._last[before], self._first[begins])
        most = np.where(after < ends, self._first[np.minimum(after, len(self._codes) - 1)], self._last[ends - 1])
        return least, most

    def _code(self, threads: Ints, times: Ints) -> Ints:
        code: Ints = threads * _CODES + np.clip((times - self._start) // self._width, -1, _CODES - 2) + 1
        return code


class Points:
    """The points around some stages, by thread and time; points of one time by op and number in the op."""

    def __init__(self, run: Run, slots: Slots, waiting: Waiting) -> None:
        """``waiting``: at least one stage, each of a thread with points."""
        self._waiting = waiting
        begins, ends = np.full(len(slots.tids), _NEVER), np.full(len(slots.tids), -1)
        np.minimum.at(begins, waiting.thread, waiting.begin_ns)
        np.maximum.at(ends, waiting.thread, waiting.end_ns)
        (threads,) = np.nonzero(ends >= 0)
        self._least, self._most = np.full(len(slots.tids), _NEVER), np.full(len(slots.tids), -1)
        self._least[threads], self._most[threads] = slots.around(threads, begins[threads], ends[threads])
        # Each thread's moments get separate numbers. 2^63 are 292 years of threads.
        self._offset = np.zeros(len(slots.tids), np.int64)
        self._offset[threads] = np.append(0, np.cumsum(self._most[threads] - self._least[threads] + 3)[:-1])
        self._read(run, slots)
        first = np.searchsorted(self._moments, self._offset[waiting.thread])
        passed = np.searchsorted(self._moments, self._moment(waiting.thread, waiting.begin_ns), "right")
        self._last = np.searchsorted(self._moments, self._moment(waiting.thread, waiting.end_ns)) - 1
        self._seen = passed > first  # the thread passed a point before the stage began
        self._first = np.where(self._seen, passed - 1, first)

    def __len__(self) -> int:
        return len(self._ts)

    def _read(self, run: Run, slots: Slots) -> None:
        found = gathered(
            run.con.sql(
                f"""SELECT tid, ts_ns, op_id, seq, point FROM transitions WHERE tid IS NOT NULL
                    AND ts_ns BETWEEN {self._least.min()} AND {self._most.max()}"""
            )
        )
        thread, ts = slots.threads(found.array("tid")), found.array("ts_ns")
        (kept,) = np.nonzero((ts >= self._least[thread]) & (ts <= self._most[thread]))
        op, seq, points = found.array("op_id"), found.array("seq"), found.codes("point")
        kept = kept[np.lexsort((seq[kept], op[kept], self._moment(thread[kept], ts[kept])))]
        thread, self._ts, op = thread[kept], ts[kept], op[kept]
        self._moments = self._moment(thread, self._ts)
        self.names, name = points.texts, points.codes[kept].astype(np.int64)
        follows = thread[1:] == thread[:-1]
        self._until = np.append(np.where(follows, self._ts[1:], _NEVER), _NEVER)  # the thread's next point
        work = np.append(follows & (op[1:] == op[:-1]), False)
        self._what = np.where(work, BEHIND + name * len(self.names) + np.roll(name, -1), BETWEEN)
        self._op = op

    def _moment(self, threads: Ints, times: Ints) -> Ints:
        least, most = self._least[threads], self._most[threads]
        moment: Ints = self._offset[threads] + 1 + np.clip(times, least - 1, most + 1) - least
        return moment

    def seen_ns(self) -> Ints:
        """Since when each stage's thread does the work before its first work inside of the stage; -1: the stage begins
        in work.
        """
        until = np.where(self._seen, self._until[self._first], self._ts[self._first])
        work = self._seen & (self._what[self._first] != BETWEEN)
        seen: Ints = np.where(work, -1, np.minimum(until, self._waiting.end_ns))
        return seen

    def sums(self, places: int) -> Ints:
        """The time of each kind of piece (a column each) in the stages of each place."""
        waiting, kinds = self._waiting, BEHIND + len(self.names) ** 2
        found = np.zeros((places, kinds), np.int64)
        inside = np.where(self._until == _NEVER, 0, self._until - self._ts)
        for place in range(places):
            (of,) = np.nonzero((waiting.place == place) & (self._last >= self._first))
            first, last = self._first[of], self._last[of]
            # The number of stages around each piece, without the stages' last pieces.
            stages = np.cumsum(np.bincount(first, minlength=len(self)) - np.bincount(last, minlength=len(self)))
            np.add.at(found[place], self._what, stages * inside)
            np.add.at(found[place], self._what[last], waiting.end_ns[of] - self._ts[last])
            of, first = of[self._seen[of]], first[self._seen[of]]
            np.subtract.at(found[place], self._what[first], waiting.begin_ns[of] - self._ts[first])
            unseen = self._what[first] == BETWEEN
            self._move(found, of[unseen], first[unseen], UNSEEN)
        self._move(found, *self._own(), OWN)
        return found

    def _move(self, found: Ints, stages: Ints, pieces: Ints, kind: int) -> None:
        """Counts these pieces of these stages under this kind."""
        waiting = self._waiting
        ns = np.minimum(self._until[pieces], waiting.end_ns[stages])
        ns = ns - np.maximum(self._ts[pieces], waiting.begin_ns[stages])
        np.subtract.at(found, (waiting.place[stages], self._what[pieces]), ns)
        np.add.at(found[:, kind], waiting.place[stages], ns)

    def _own(self) -> tuple[Ints, Ints]:
        """Stages, and the pieces inside with work for the stage's own op."""
        waiting, size = self._waiting, len(self)
        least, most = waiting.op_id.min(), waiting.op_id.max()
        (own,) = np.nonzero((self._what >= BEHIND) & (self._op >= least) & (self._op <= most))
        keys = np.sort((self._op[own] - least) * size + own)
        begins = np.searchsorted(keys, (waiting.op_id - least) * size + self._first)
        ends = np.searchsorted(keys, (waiting.op_id - least) * size + self._last, "right")
        numbers = np.maximum(ends - begins, 0)
        stages = np.repeat(np.arange(len(numbers)), numbers)
        places = np.arange(len(stages)) + np.repeat(begins - (np.cumsum(numbers) - numbers), numbers)
        return stages, keys[places] % size
