# SPDX-License-Identifier: MIT
"""Transition lists: one op, line by line, with its block requests between the points where they fall.

Takes an `OpDetail`, gives lines. Applications may have styles of their own (the hook `op_list`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from opline.applications import table as applications
from opline.model.language import BLOCK_STEPS
from opline.steps import STEPS
from opline.store.schema import ATTRIBUTES
from opline_analyses.base.colours import STATES
from opline_analyses.base.quantities import seconds
from opline_analyses.base.result_table import ResultTable, label, text, time
from opline_analyses.base.screen import WIDTH
from opline_analyses.base.text import count_of, device_name, level, shortened, us, wrapped
from opline_analyses.ops.oplist import InState, Interval, OpDetail, Request
from opline_analyses.ops.waited import wait_list

if TYPE_CHECKING:
    from opline_analyses.base.result_table import Part

_BEFORE = {"G": ("M", "merge_ns"), "I": ("preflush", "preflush_ns")}  # added by a bio, or by its flushes
SHOWN_STEPS = (
    *(pair for s in STEPS for pair in (_BEFORE.get(s.letter), (s.letter, s.column)) if pair is not None),
    ("postflush", "postflush_ns"),
)


END = 1 << 31
FOLD, EDGE = 24, 8  # a longer run of block steps is folded, except for so many at each end
HANG = 4  # where the second line of a sentence begins


Row: TypeAlias = tuple[str, str, str, str, str, str, str]


class Line(NamedTuple):
    """One line of an op's list, before the alignment."""

    ts_ns: int
    stage: str
    what: str
    thread: str
    cpu: str
    critical: bool
    mark: str


# --- ours -------------------------------------------------------------------------------------------------------------


def thread_name(comm: str | None, tid: int | None) -> str:
    """For lists: name and number, as far as known."""
    if tid is None:
        return comm or ""
    return f"{comm}:{tid}" if comm else str(tid)


def _cpu(cpu: int | None) -> str:
    return "" if cpu is None else str(cpu)


def _steps(r: Request) -> list[tuple[str, int]]:
    """The steps of the op's bio, with their times: a merged bio has no own G and no own I."""
    seen = [(letter, ts) for letter, attribute in SHOWN_STEPS if (ts := getattr(r, attribute)) is not None]
    if r.merge_ns is None:
        return seen
    return [(letter, ts) for letter, ts in seen if letter == "Q" or ts >= r.merge_ns]


def _extent(sector: int | None, nr_sectors: int | None) -> str:
    if sector is None:
        return "flush"
    return f"sector {sector} +{nr_sectors}" if nr_sectors else f"sector {sector}"


def _step_text(letter: str, r: Request, number: str, is_first: bool, names: dict[int, str]) -> str:
    """The first step has the place of the op's bio; M the merged request; C the durations."""
    text = f"  {letter}{number}"
    if letter == "C":
        # from the shown Q: of the op's own bio, not the first bio of a merged request
        q2c_ns = r.complete_ns - r.queue_ns if r.complete_ns is not None and r.queue_ns is not None else None
        return f"{text}  Q2C {us(q2c_ns) or '?'} D2C {us(r.d2c_ns) or '?'}" + (f" error {r.error}" if r.error else "")
    if is_first:
        return f"{text}  {device_name(names, r.dev)} {_extent(r.sector, r.nr_sectors)} {r.rwbs or ''}".rstrip()
    return f"{text}  into {_extent(r.request_sector, r.request_nr_sectors)}" if letter == "M" else text


def _request_lines(
    op: OpDetail, r: Request, number: str, cut: dict[tuple[int, str, int | None], list[str]]
) -> Iterator[Line]:
    marks = [word for word, on in (("shared", r.shared), ("ambiguous", r.ambiguous)) if on]
    for n, (letter, ts) in enumerate(_steps(r)):
        names = cut.get((ts, letter, r.request_id)) or cut.get((ts, letter, None))
        stage = names.pop(0) if names else ""
        if letter == "Q":
            thread, cpu = thread_name(r.queue_comm, r.queue_tid), _cpu(r.queue_cpu)
        elif letter == "D":
            thread, cpu = thread_name(r.issue_comm, r.issue_tid), _cpu(r.issue_cpu)
        else:
            thread, cpu = "", _cpu(r.complete_cpu) if letter == "C" else ""
        said = [*(marks if letter == "Q" else []), *(["late"] if op.end_ns is not None and ts > op.end_ns else [])]
        text = _step_text(letter, r, number, n == 0, op.devices)
        yield Line(ts, stage, text, thread, cpu, bool(stage), " ".join(said))


def base_name(point: str) -> str:
    """A point's name without the recurrence number: fdatasync for fdatasync#2."""
    name, mark, number = point.rpartition("#")
    return name if mark and number.isdigit() else point


def _short(s: Interval) -> str:
    """The stage's name; `-` or `unknown` for a name that only repeats the two points beside the stage."""
    pair = f"{s.from_point} → {s.to_point}"
    if s.stage == pair:
        return "-"
    return "unknown" if s.stage == f"unknown: {pair}" else s.stage


def lines_of(op: OpDetail) -> list[Line]:
    """Points and block steps in time order, each with the stage that ends there."""
    # (end of a stage, point, request) -> names of stages; the request is a stage's only if the stage cuts there. Points
    # without recurrence number: a repeated point has another time, or a later order.
    cut: defaultdict[tuple[int, str, int | None], list[str]] = defaultdict(list)
    for s in op.stages:
        is_step = s.request_id is not None and s.to_point in BLOCK_STEPS
        where = s.to_point if is_step else base_name(s.to_point)
        cut[(s.begin_ns + s.duration_ns, where, s.request_id if is_step else None)].append(_short(s))
    merged: list[tuple[int, int, Line]] = []
    for n, t in enumerate(op.transitions):
        names = cut.get((t.ts_ns, base_name(t.point), None))
        stage = names.pop(0) if names and not (t.late or t.aside) else ""
        mark = "late" if t.late else "aside" if t.aside else ""
        critical = bool(stage) or (n == 0 and not t.late)
        place = 2 * n if t.event is not None else END  # a completion belongs to the request first, then to the op's end
        merged.append(
            (t.ts_ns, place, Line(t.ts_ns, stage, t.point, thread_name(t.comm, t.tid), _cpu(t.cpu), critical, mark))
        )
    for n, r in enumerate(op.requests, 1):
        number = str(n) if len(op.requests) > 1 else ""
        steps = _request_lines(op, r, number, cut)
        merged += [(line.ts_ns, 2 * len(op.transitions) + n, line) for line in steps]
    for s in op.stages:  # stages without an event of the op at their end: work for the batch before
        names = cut[(s.begin_ns + s.duration_ns, base_name(s.to_point), None)]
        if s.request_id is None and _short(s) in names:
            names.remove(_short(s))
            end_ns = s.begin_ns + s.duration_ns
            merged.append((end_ns, -1, Line(end_ns, _short(s), f"  {s.to_point}", "", "", True, "the batch before")))
    merged.sort(key=lambda m: (m[0], m[1]))
    return [line for _, _, line in merged]


def header_of(op: OpDetail) -> str:
    """The op in one line: number, begin as in --since and --at, work, latency."""
    number = f"op {op.op_id} at {seconds(op.begin_ns - op.start_ns, 9)} s"
    object_or_key = op.object if op.object is not None else op.key or ""
    parts = [number, op.op_class or "", shortened(object_or_key, WIDTH - HANG)]
    if op.complete:
        parts.append(f"{us(op.latency_ns)} us")
    else:
        parts.append(f"incomplete ({op.reason})" if op.reason else "incomplete")
    if op.length_bytes is not None:
        parts.append(f"{op.length_bytes} B" + (f" at {op.offset_bytes}" if op.offset_bytes is not None else ""))
    told = ((a.text, op.attributes.get(a.column)) for a in ATTRIBUTES if a.text)
    parts += [text.format(value) for text, value in told if value is not None]
    if op.tainted:
        parts.append("tainted: its begin or its end can have been lost")
    elif op.unsplit:
        parts.append("events were lost meanwhile: the latency is exact, a stage is unknown")
    return "  ".join(p for p in parts if p)


def footer_of(op: OpDetail) -> str:
    """The partition: attributed, unknown and unattributed parts of the latency."""
    if op.latency_ns is None:
        return "  no end seen: no latency, no stages"
    unattributed, unknown = op.unattributed_ns or 0, op.unknown_ns or 0
    attributed = op.latency_ns - unattributed - unknown
    text = f"  total {us(op.latency_ns)} = attributed {us(attributed)} + unknown {us(unknown)}"
    text += f" + unattributed {us(unattributed)}"
    if not op.requests and op.no_request:
        text += f"; no block request: {op.no_request}"
    return text


def default_list(op: OpDetail, unfold: bool = False) -> Iterator[str]:
    """opline's style: time since begin, time since the last line on the critical path, the stage ending here, ...
    Without ``unfold`` the steps of many block requests are one line, except for the first and the last steps.
    """
    yield from wrapped(header_of(op))
    yield from _aligned(op, lines_of(op) if unfold else list(_folded(lines_of(op))))
    yield from wrapped(footer_of(op))
    yield from deferred_list(op)


def _folded(lines: list[Line]) -> Iterator[Line]:
    """Runs of more than FOLD block steps between two points get one line for the middle steps."""
    for is_step, found in groupby(lines, key=lambda line: line.what.startswith(" ")):
        run = list(found)
        if not is_step or len(run) <= FOLD:
            yield from run
            continue
        middle = run[EDGE:-EDGE]
        critical = [line for line in middle if line.critical]
        stages = f"{len(critical)} stages" if critical else ""
        end_ns = critical[-1].ts_ns if critical else middle[-1].ts_ns
        yield from run[:EDGE]
        yield Line(end_ns, stages, f"  … {len(middle)} more steps (--unfold)", "", "", bool(critical), "")
        yield from run[-EDGE:]


def _aligned(op: OpDetail, lines: list[Line]) -> Iterator[str]:
    """The lines as a table of points. The text of a block step continues over the column of threads: the thread is
    there only if different from the thread before.
    """
    rows: list[Row] = [("us", "+us", "stage", "point", "thread", "cpu", "")]
    last, before = op.begin_ns, ""
    for line in lines:
        since = us(line.ts_ns - op.begin_ns)
        step = us(line.ts_ns - last) if line.critical else ""
        if line.critical:
            last = line.ts_ns
        thread = "" if line.what.startswith(" ") and line.thread == before else line.thread
        before = line.thread or before
        stage, what, mark = line.stage, line.what, line.mark
        if mark and not stage:
            stage, mark = f"({mark})", ""
        elif mark and not thread and not line.cpu:
            what, mark = f"{what}  {mark}", ""
        rows.append((since, step, stage, what, thread, line.cpu, mark))
    found = list(_laid_out(rows))
    if max(map(len, found)) > WIDTH:
        found = list(_laid_out(_narrow(rows), True))
    yield from found


def _narrow(rows: list[Row]) -> list[Row]:
    """The rows with names cut to fit, if threads have separate lines: names of stages and points in columns, and texts
    that continue over the column of points, with marks.
    """
    rows = [(*row[:3], f"{row[3]}  {row[6]}", *row[4:6], "") if row[6] and row[3][0] == " " else row for row in rows]
    since, step, stages, _, _, cpu, mark = (max(map(len, column)) for column in zip(*rows, strict=True))
    points = max(len(row[3]) for row in rows if not row[3].startswith(" "))
    room = WIDTH - since - step - len("     ")
    most = level((stages, points), room - 1 - cpu - (2 + mark if mark else 0))
    left = room - min(stages, most)

    def told(row: Row) -> str:
        what, behind = row[3], 1 + cpu if row[5] else 0
        return shortened(what, left - behind if what.startswith(" ") else most)

    return [(row[0], row[1], shortened(row[2], most), told(row), *row[4:]) for row in rows]


def _laid_out(rows: list[Row], apart: bool = False) -> Iterator[str]:
    """``apart``: a thread has a separate line, above its points."""
    w = [max(map(len, column)) for column in zip(*rows, strict=True)]
    w[3] = max(len(what) for _, _, _, what, *_ in rows if not what.startswith(" "))
    told = [f"{what:{w[3]}}  {thread}" if thread and not apart else what for _, _, _, what, thread, *_ in rows]
    cpus = max([len(cpu) for *_, cpu, _ in rows[1:]], default=0)
    names = w[3] if apart else w[3] + 2 + max(w[4], len("thread cpu") - 1 - cpus)
    names = max(names, len("point cpu") - 1 - cpus)
    most = WIDTH - w[0] - w[1] - w[2] - len("     ") - 1 - cpus
    end = max(names, *(len(who) for who in told if len(who) <= most), 0) + 1 + cpus
    before = rows[0][4]
    for (since, step, stage, _, thread, cpu, mark), who in zip(rows, told, strict=True):
        if apart and thread and thread != before:
            yield f"{'':{w[0]}} {'':{w[1]}}  in {thread}"
            before = thread
        text = f"{since:>{w[0]}} {step:>{w[1]}}  {stage:{w[2]}}  {who:{end - 1 - len(cpu)}} {cpu}  {mark}"
        yield text.rstrip()


def deferred_list(op: OpDetail) -> Iterator[str]:
    """The op's data written back outside the latency, with thread and time."""
    for d in op.deferred:
        when = "not seen" if d.complete_ns is None else f"{us(d.complete_ns - d.written_ns)} us after the write"
        place = f"{device_name(op.devices, d.dev)} sector {d.sector} +{d.nr_sectors}"
        marks = "".join(f"  {mark}" for on, mark in ((d.shared, "shared"), (d.ambiguous, "ambiguous")) if on)
        what = f"{d.bytes} B of {shortened(d.file, WIDTH - 2 - HANG)}"
        yield from wrapped(f"  later: {what} on the disk: {when}, {place} by {thread_name(d.comm, d.tid)}{marks}")


STATE_COLUMNS = (
    label("stage", "stage"), label("thread", "thread"), time("duration_ns", "us"), time("on_cpu_ns", "on CPU"),
    time("runnable_ns", "runnable"), time("blocked_io_ns", "blk I/O"), time("blocked_ns", "blocked"),
    label("woken_by", "woken by"),
)  # fmt: skip
WHEN_COLUMNS = (
    time("at_ns", "at us"), time("duration_ns", "us"), label("thread", "thread"), text("state", "state"),
    label("woken_by", "woken by"),
)  # fmt: skip


def state_list(op: OpDetail) -> Iterator[Part]:
    """The states of the thread at the end of each stage, if sched events have them."""
    known = [s for s in op.stages if s.on_cpu_ns is not None]
    if not known:
        return
    names = {t.tid or 0: t.comm for t in op.transitions}
    for r in op.requests:
        names.setdefault(r.queue_tid or 0, r.queue_comm)
        names.setdefault(r.issue_tid or 0, r.issue_comm)
    yield "  what its threads did:"
    rows = []
    for s in known:
        times = (s.duration_ns, s.on_cpu_ns, s.runnable_ns, s.blocked_io_ns, s.blocked_ns)
        thread = thread_name(names.get(s.states_tid or 0), s.states_tid)
        rows.append([_short(s), thread, *times, thread_name(s.woken_by_comm, s.woken_by_tid)])
    yield ResultTable(STATE_COLUMNS, rows, gap=" ", indent=2)
    yield from _when_list(op, names)
    yield from wait_list(op.waits, op.begin_ns, op.devices)


def _when_list(op: OpDetail, names: Mapping[int, str | None]) -> Iterator[Part]:
    """The times of the states: a state continued in the next stage is one line."""
    lines: list[InState] = []
    for part in op.states:
        last = lines[-1] if lines else None
        if (
            last is not None
            and (last.tid, last.state) == (part.tid, part.state)
            and last.begin_ns + last.duration_ns == part.begin_ns
            and part.woken_by_tid is None
        ):
            lines[-1] = last._replace(duration_ns=last.duration_ns + part.duration_ns)
        else:
            lines.append(part)
    if not lines:
        return
    yield "  and when:"
    rows = [
        [
            part.begin_ns - op.begin_ns, part.duration_ns, thread_name(names.get(part.tid), part.tid),
            STATES[f"{part.state}_ns"][0], thread_name(part.woken_by_comm, part.woken_by_tid),
        ]
        for part in lines
    ]  # fmt: skip
    yield ResultTable(WHEN_COLUMNS, rows, gap=" ", indent=2)
    timed = {part.seq for part in op.states}
    untimed = sum(s.on_cpu_ns is not None and s.duration_ns > 0 for s in op.stages) - len(timed)
    if untimed:
        yield f"  of {count_of(untimed, 'more stage')} only the sums are known: states changed too often"


#: By name: an op as lines, with or without (`unfold`) every step of its block requests. Applications' styles have only
#: complete ops, without text between ops.
STYLES: dict[str, Callable[[OpDetail, bool], Iterator[Part]]] = {"default": default_list}
for hook in applications.hooks("op_list"):
    STYLES |= hook.STYLES
