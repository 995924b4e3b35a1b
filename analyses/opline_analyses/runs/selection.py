# SPDX-License-Identifier: MIT
"""The ops selected by a command's options: --class, -d, --host, --since, --latency, --slowest, --op, --limit, as one
condition.

Takes `OpFilters`, in the command line's texts; gives a `Selection`. Times are seconds, or with a unit, from the run's
first event, as in all commands; or absolute nanoseconds of the run's clock, as whole numbers of at least ten digits.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline.talk import talk
from opline.values import Value
from opline_analyses.base.filters import instant, window_instants
from opline_analyses.base.given import Given
from opline_analyses.base.quantities import Limits, duration_ns, limits, seconds, size_bytes
from opline_analyses.runs.cgroups import meant
from opline_analyses.runs.devices import devices_condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.runs.run import Run


NO_CLASS = "--class {}: the run has no such class. It has: {}."
NO_HOST = "--host {}: no op begins on such a host. Ops begin on: {}."


class OpFilters(Given):
    """The selected ops, by the options of commands; None: all. The last three choose single ops."""

    op_class: Sequence[str] | None = None
    device: Sequence[str] | None = None
    size: str | None = None
    comm: Sequence[str] | None = None
    pid: Sequence[int] | None = None
    tid: Sequence[int] | None = None
    cgroup: Sequence[str] | None = None
    object: Sequence[str] | None = None
    host: Sequence[str] | None = None
    since: str | None = None
    until: str | None = None
    window: str | None = None
    at: str | None = None
    latency: str | None = None
    slowest: int | None = None
    op: Sequence[int] | None = None
    limit: int | None = None
    sort: str | None = None

    @property
    def given(self) -> list[tuple[str, Any]]:
        """The filters by properties of ops, with their values."""
        return [(name, value) for name, value in list(vars(self).items())[:-3] if value is not None]

    def words(self) -> list[str]:
        """The words of a command line."""
        words: list[str] = []
        for name, value in self.given:
            for one in [value] if isinstance(value, (str, int)) else list(value):
                words += [f"--{name.removeprefix('op_')}", str(one)]
        return words


class Selection(Value):
    """A condition over the table ops (alias o), with an order and a limit."""

    where: str = "true"
    parameters: tuple[object, ...] = ()
    order: str = "o.op_id"
    limit: int | None = None

    def sql(self) -> str:
        """`SELECT op_id ...` in the wanted order."""
        return self.of("o.op_id", ordered=True)

    def of(self, columns: str, ordered: bool = False) -> str:
        """`SELECT columns ...` of the same ops; in the wanted order if needed."""
        tail = f" LIMIT {self.limit}" if self.limit is not None else ""
        order = f" ORDER BY {self.order}" if ordered or tail else ""
        return f"SELECT {columns} FROM ops o WHERE {self.where}{order}{tail}"

    def first(self, limit: int) -> Selection:
        """The first ``limit`` ops."""
        return Selection(self.where, self.parameters, self.order, limit)

    def also(self, condition: str, *parameters: object) -> Selection:
        """The same with one more condition."""
        both = (*self.parameters, *parameters)
        return Selection(f"({self.where}) AND ({condition})", both, self.order, self.limit)

    def of_classes(self, classes: Sequence[str]) -> Selection:
        """Only the ops of these classes."""
        return self.also(*_class_in(classes))

    def or_classes(self, classes: Sequence[str]) -> Selection:
        """With all ops of these classes."""
        condition, *parameters = _class_in(classes)
        return Selection(f"({self.where}) OR ({condition})", (*self.parameters, *parameters), self.order, self.limit)


def _class_in(classes: Sequence[str]) -> tuple[str, ...]:
    """The condition, and its parameters."""
    return f"o.class IN ({', '.join('?' * len(classes))})", *classes


ORDERS = {
    "begin": "o.op_id", "end": "o.end_ns, o.op_id", "latency": "o.latency_ns DESC NULLS LAST, o.op_id",
    "size": "o.length_bytes DESC NULLS LAST, o.op_id",
}  # fmt: skip


ALL_CLASSES = "all"  # --class all: ops of every class
MOST_CLASSES = 10
NEAR = 0.05
BIO = "bio "  # begin of the names of classes of block I/O outside of the program's system calls
# such bios are the machine's, and may be parts of the program's I/Os: the program's own if there is one bio per I/O
NEAR_BIO = 0.005
# A client's direction in the names of classes, if different.
WORDS = {
    "trim": ("trim", "discard"), "sync": ("fsync", "fdatasync", "sync_file_range"),
    "read": ("read", "splice"), "write": ("write", "splice"),
}  # fmt: skip


def directions_of(name: str, directions: Sequence[str]) -> list[str]:
    """The client's directions of a class of ops, by the class's name (pread64: read; discard: trim)."""
    return [d for d in directions if any(word in name.lower() for word in WORDS.get(d, (d,)))]


def clients_classes(run: Run, which: Selection, counts: dict[str, int], last_ns: int | None = None) -> list[str] | None:
    """The classes of the selected ops behind the client's figures; empty without a choice, None without a similar
    number: see ``matching_classes``. ``last_ns``: the client counts only the last so many ns, after a ramp.
    """
    counted = "o.complete" if last_ns is None else f"o.complete AND o.begin_ns >= o.last_ns - {last_ns}"
    found = run.rows(
        f"""SELECT o.class, count(*) FILTER ({counted}) AS n
            FROM (SELECT *, max(end_ns) OVER (PARTITION BY class) AS last_ns FROM ops) o
            WHERE {which.where} AND o.class IS NOT NULL GROUP BY o.class""",
        which.parameters,
    )
    chosen = matching_classes(dict(found), counts)
    return [] if chosen is not None and len(chosen) == len(found) else chosen


def nearest_classes(found: dict[str, int], counts: dict[str, int]) -> list[str]:
    """The classes of ops behind the client's figures: see ``matching_classes``. Empty without a choice, or without a
    similar number.
    """
    chosen = matching_classes(found, counts)
    return [] if chosen is None or len(chosen) == len(found) else chosen


def matching_classes(found: dict[str, int], counts: dict[str, int]) -> list[str] | None:
    """The classes counted by the client, if the client counts reads and writes apart: from ``found``, the complete ops
    of each class; ``counts``, the client's, by direction. None without a similar number.

    The run may hold more: a program also reads its configuration. Among the classes with the direction in their name
    (pread64: read; discard: trim), the classes whose number of complete ops comes nearest to the client's number:
    classes of calls, if near; the bios outside of calls may be write-back of these calls.
    """
    chosen: set[str] = set()
    most_first = sorted(found.items(), key=lambda c: (-c[1], c[0]))
    for direction, count in counts.items():
        fitting = [(name, n) for name, n in most_first if directions_of(name, [direction])][:MOST_CLASSES]
        calls = [of_class for of_class in fitting if not of_class[0].startswith(BIO)]
        best = _nearest(calls, count, NEAR) or _nearest(fitting, count, NEAR_BIO)
        if not best and count:
            return None
        chosen.update(best)
    return sorted(chosen)


def _nearest(classes: Sequence[tuple[str, int]], count: int, near: float) -> list[str]:
    """The classes with the nearest number of ops together; none if not near."""
    subsets = (s for size in range(1, len(classes) + 1) for s in combinations(classes, size))
    best = min(subsets, key=lambda s: (abs(sum(n for _, n in s) - count), len(s)), default=())
    return [name for name, _ in best] if abs(sum(n for _, n in best) - count) <= near * count else []


def without_incomplete(run: Run, which: Selection) -> tuple[Selection, int]:
    """The complete ops of the selection, and the number of the others."""
    (left_out,) = run.row(f"SELECT count(*) FROM ops o WHERE ({which.where}) AND NOT o.complete", which.parameters)
    return which.also("o.complete"), left_out


def latency_limits(text: str) -> Limits:
    """The limits of --latency, in ns; a number without unit is in us. Raises UsageError."""
    return limits(text, "--latency", lambda t, option: duration_ns(t, option, "us"))


def _say_if_outside(run: Run, given: str, moment: object, sign: str) -> bool:
    """Prints a line if the moment leaves no op; returns whether a line was printed."""
    first, last, found = run.row(
        f"SELECT min(begin_ns), max(begin_ns), count(*) FILTER (begin_ns {sign} ?) FROM ops", [moment]
    )
    if first is not None and not found:
        begins, ends = (seconds(ns - run.start_ns(), 3) for ns in (first, last))
        talk(f"{given}: no op begins then; the first one begins at {begins} s, the last one at {ends} s.")
        return True
    return False


def _say_if_none(run: Run, where: str, parameters: Sequence[object]) -> None:
    """Prints a line if the options select none of the existing ops."""
    whole, meant = run.row(f"SELECT count(*), count(*) FILTER ({where}) FROM ops o", parameters)
    if whole and not meant:
        others = " (--all-programs adds other programs' ops)" if run.alone else ""
        talk(f"the options select no op of the run's {whole}{others}.")


def classes_meant(given: Sequence[str] | None) -> Sequence[str] | None:
    """The classes of --class; None: every class."""
    return None if given is None or ALL_CLASSES in given else given


def refuse_unknown(run: Run, column: str, names: Sequence[str], refusal: str) -> None:
    """Raises UsageError for a name absent from the ``column`` of all ops: ``refusal`` with the name, and the existing
    names.
    """
    known = [name for (name,) in run.rows(f"SELECT DISTINCT {column} FROM ops WHERE {column} IS NOT NULL ORDER BY 1")]
    for name in names:
        if name not in known:
            raise UsageError(refusal.format(name, ", ".join(known) or "none"))


def refuse_host(run: Run, names: Sequence[str]) -> None:
    """Raises UsageError for a host without ops and devices."""
    known = {host for (host,) in run.rows("SELECT DISTINCT host FROM all_ops WHERE host IS NOT NULL")}
    known |= {str(device["host"]) for device in run.devices() if device.get("host") is not None}
    for name in names:
        if name not in known:
            raise UsageError(f"--host {name}: the run has no such host. It has: {', '.join(sorted(known)) or 'none'}.")


def any_glob(column: str, patterns: Sequence[str]) -> str:
    """The condition, with a parameter for each pattern, that the column fits one of the patterns."""
    return "(" + " OR ".join([f"{column} GLOB ?"] * len(patterns)) + ")"


def selection(run: Run, filters: OpFilters, among: Selection | None = None) -> Selection:
    """The selection of the wanted ops, ``among`` these. Raises UsageError for unknown ops and classes."""
    where: list[str] = [] if among is None or among == Selection() else [f"({among.where})"]
    parameters: list[object] = list(among.parameters) if where and among else []
    said = False
    op_class = classes_meant(filters.op_class)
    for column, given, refusal in (("class", op_class, NO_CLASS), ("host", filters.host, NO_HOST)):
        if given:
            refuse_unknown(run, column, given, refusal)
            where.append(f"o.{column} IN ({', '.join('?' * len(given))})")
            parameters += given
    if filters.device:
        condition, values = devices_condition(run, filters.device, "o")
        where.append(condition)
        parameters += values
    if filters.size is not None:
        condition, sizes = limits(filters.size, "--size", size_bytes).condition("o.length_bytes")
        where.append(condition)
        parameters += sizes
    if filters.comm:
        where.append(any_glob("o.comm", filters.comm))
        parameters += filters.comm
    if filters.cgroup:
        condition, values = meant("o.cgroup", filters.cgroup)
        where.append(condition)
        parameters += values
    if filters.object:
        where.append(any_glob("o.object", filters.object))
        parameters += filters.object
    for column, numbers in (("pid", filters.pid), ("begin_tid", filters.tid)):
        if numbers:
            where.append(f"o.{column} IN ({', '.join('?' * len(numbers))})")
            parameters += numbers
    window, at = filters.window, filters.at
    ends = window_instants(window, at if window else None, filters.since, filters.until)
    for option, text, moment, sign in (
        ("--since", filters.since, ends[0], ">="), ("--until", filters.until, ends[1], "<"),
    ):  # fmt: skip
        if moment is not None:
            where.append(f"o.begin_ns {sign} ?")
            parameters.append(moment.after(run.start_ns()))
            given = f"--window {window}" if window else f"{option} {text}"
            said = _say_if_outside(run, given, parameters[-1], sign) or said
    if at is not None and window is None:
        where.append("o.begin_ns <= ? AND o.end_ns >= ?")
        parameters += [instant(at, "--at").after(run.start_ns())] * 2
    if filters.latency is not None:
        condition, times = latency_limits(filters.latency).condition("o.latency_ns")
        where.append(f"o.complete AND {condition}")
        parameters += times
    order, limit = "o.op_id", filters.limit
    wanted = filters.op
    if wanted:
        marks = ", ".join("?" * len(wanted))
        found = {i for (i,) in run.rows(f"SELECT op_id FROM ops WHERE op_id IN ({marks})", wanted)}
        for op_id in wanted:
            if op_id not in found:
                raise UsageError(f"--op {op_id}: the run has no such op.")
        where.append(f"o.op_id IN ({marks})")
        parameters += wanted
    slowest, sort = filters.slowest, filters.sort
    if slowest and sort:
        raise UsageError("--slowest N is --sort latency --limit N: one of them.")
    if sort:
        order = ORDERS[sort]
    if slowest:
        order = "o.latency_ns DESC, o.op_id"
        those = " AND ".join([*where, "o.complete"])
        where = [f"o.op_id IN (SELECT o.op_id FROM ops o WHERE {those} ORDER BY {order} LIMIT {slowest})"]
    if where and not said:
        _say_if_none(run, " AND ".join(where), parameters)
    return Selection(" AND ".join(where) or "true", tuple(parameters), order, limit)
