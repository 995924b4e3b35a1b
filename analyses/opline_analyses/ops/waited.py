# SPDX-License-Identifier: MIT
"""The cause of a part of a wait, in words: from the table waits, for one op and for many.

A part lies at the end of a chain of threads, each woken by the next (docs/internals/waits.md).
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from opline_analyses.base.result_table import Column, ResultTable, text
from opline_analyses.base.screen import WIDTH
from opline_analyses.base.text import count_of, us
from opline_analyses.ops.cause_words import about_requests, cause_words, until_timeout
from opline_analyses.ops.locks import lock_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.base.result_table import Part

_NUMBERED = re.compile(r"^(swapper|kworker|ksoftirqd|migration)/.*")
ARROW = " → "  # between the threads of a path
_LOCKS = ("futex", "kernel mutex", "kernel rwsem")  # causes
_SLEEP_ENDS = ("timer", "network", "interrupt", "unknown")  # kinds of parts whose end proves little


class Spent(NamedTuple):
    """The use of the time; equal for parts that a reader takes for one cause. Names of the kernel's worker threads are
    without their numbers.
    """

    kind: str
    path: str | None  # threads from the first waker on, joined by ARROW
    who: str | None  # the thread that queued the request, or the thread of the part
    request: str | None  # kind of the request
    device: str | None  # the request's device
    instead: str | None  # the thread that ran meanwhile
    reason: str | None  # the reason why the use is unknown
    cause: str | None = None  # cause of the sleep of the op's own thread, by the kernel stacks
    last_cause: str | None = None  # and the last thread of the path
    holder: str | None = None  # holder of the awaited lock, if the thread is not on the path

    @property
    def first(self) -> str | None:
        """The thread that ended the op's own wait."""
        return self.path.split(ARROW, 1)[0] if self.path else None

    @property
    def own_request(self) -> bool:
        """A request ended the op's own wait, and the kernel stacks add nothing."""
        return self.path is None and self.request is not None and _alone(self) is None


def plain_name(comm: str | None) -> str | None:
    """A thread's name: without the number for the kernel's worker threads, as these share their work."""
    return comm and _NUMBERED.sub(r"\1", comm)


def plain_path(path: str | None) -> str | None:
    """The names of a path likewise."""
    return path and ARROW.join(plain_name(name) or name for name in path.split(ARROW))


def _alone(s: Spent) -> str | None:
    """The cause of an own wait in words, if the kernel stacks tell more than the wait's end."""
    if s.cause is None or s.path is not None or (s.request is not None and about_requests(s.cause)):
        return None
    if s.kind in ("cpu", "stopped"):
        return None
    return f"{cause_words(s.cause)}{', until its timeout' if until_timeout(s.cause, s.kind) else ''}"


def holder_besides(path: str, cause: str | None, holder: str | None) -> str | None:
    """The holder of the awaited lock, unless the path names the thread."""
    return holder if cause in _LOCKS and holder not in path.split(ARROW) else None


def _at_end(s: Spent) -> str:
    """The state of the last thread of the path, as a relative clause."""
    if s.last_cause is not None and s.kind in _SLEEP_ENDS:
        until = ", until its timeout" if until_timeout(s.last_cause, s.kind) else ""
        return f"which waited for {cause_words(s.last_cause)}{until}"
    end = _by_end(s)
    if s.last_cause is None or s.request is None or about_requests(s.last_cause):
        return end
    end = f"its {end.removeprefix('whose ')}" if end.startswith("whose ") else end.removeprefix("for ")
    return f"which waited for {cause_words(s.last_cause)}: {end}"


def _by_end(s: Spent) -> str:
    what = f"{s.request} request" if s.request not in (None, "flush") else s.request or "request"
    on = f" ({s.device})" if s.device else ""
    of = "whose" if s.who is None or s.path is None or s.path.endswith(s.who) else f"for {s.who}, whose"
    return {
        "device": f"{of} {what} was at the device{on}",
        "queue": f"{of} {what} was not issued yet{on}",
        "completion": f"{of} {what} had completed{on}",
        "work": "which ran",
        "cpu": f"which waited for a CPU{f' while {s.instead} ran' if s.instead else ''}",
        "thread": "whose work was not recorded",
        "timer": "which waited for a timer",
        "interrupt": "which waited for an interrupt that no request explains",
        "network": "which waited for a message from the network",
    }.get(s.kind, f"which waited for what is not known{f' ({s.reason})' if s.reason else ''}")


def spent_on(s: Spent) -> str:
    """The object of "waits for": jbd2/sda-8, whose flush was at the device (sda)."""
    if s.kind == "stopped":
        return f"a signal: {s.who} had stopped {'it' if s.path in (None, s.who) else 'a thread'}"
    if s.path is not None:
        held = "" if s.holder is None else f" that {s.holder} held"
        what = "" if s.cause is None else f"{cause_words(s.cause)}{held}: "
        return f"{what}{s.path.replace(ARROW, ', which waited for ')}, {_at_end(s)}"
    alone = _alone(s)
    if alone is not None and s.request is None:
        return alone
    what = f"{s.request} request" if s.request not in (None, "flush") else s.request or "request"
    of, on = f" of {s.who}" if s.who else "", f" ({s.device})" if s.device else ""
    before = "" if alone is None else f"{alone}: "
    return before + {
        "device": f"a {what}{of} at the device{on}",
        "queue": f"a {what}{of} that was not issued yet{on}",
        "completion": f"the wake-up after a {what}{of} had completed{on}",
        "cpu": f"a CPU{f' while {s.instead} ran' if s.instead else ''}",
        "timer": "a timer",
        "interrupt": "an interrupt that no request explains (a timer, the network)",
        "network": "a message from the network",
    }.get(s.kind, f"not known{f': {s.reason}' if s.reason else ''}")


def brief(s: Spent) -> str:
    """The same for a column: journal commit: jbd2/sda-8 → flush at the device (sda)."""
    if (alone := _alone(s)) is not None and s.request is None:
        return f"{s.cause}, timeout" if until_timeout(s.cause, s.kind) else s.cause or alone
    last = s.path.rsplit(ARROW, 1)[-1] if s.path else None
    on = f" ({s.device})" if s.device else ""
    of = "" if s.who in (None, last) or s.kind not in ("device", "queue", "completion") else f"{s.who}: "
    what = {
        "device": f"{s.request or 'request'} at the device{on}",
        "queue": f"{s.request or 'request'} not issued yet{on}",
        "completion": f"{s.request or 'request'} done, not woken yet{on}",
        "work": "runs",
        "cpu": f"no CPU{f', {s.instead} runs' if s.instead else ''}",
        "thread": "not recorded",
        "stopped": "sends the signal to go on",
        "unknown": f"not known{f': {s.reason}' if s.reason else ''}",
    }.get(s.kind, s.kind)
    if s.path is None:
        return f"{s.cause}: {of}{what}" if alone is not None else f"{of}{what}"
    if s.last_cause is not None and s.kind in _SLEEP_ENDS:
        what = f"{s.last_cause}, timeout" if until_timeout(s.last_cause, s.kind) else s.last_cause
    elif s.last_cause is not None and s.request is not None and not about_requests(s.last_cause):
        of = f"{s.last_cause}: {of}"
    held = "" if s.holder is None else f", held by {s.holder}"
    before = f"{s.cause}{held}: " if s.cause is not None and s.kind != "stopped" else ""
    return f"{before}{s.path}{ARROW}{of}{what}"


class InWait(NamedTuple):
    """A row of the table waits."""

    wait_id: int
    seq: int  # of the stage, from 0
    begin_ns: int
    duration_ns: int
    part_count: int
    kind: str
    reason: str | None
    depth: int
    path: str | None
    tid: int | None
    comm: str | None
    request_id: int | None
    request_kind: str | None
    dev: int | None
    instead_tid: int | None
    instead_comm: str | None
    cause: str | None
    last_cause: str | None
    lock_kind: str | None
    lock: int | None  # address of the lock
    holder_tid: int | None
    holder_comm: str | None
    certain: bool
    holder_op_id: int | None = None  # the op of the holder's work


def _us(ns: int | None) -> str:
    """Empty where a line goes on."""
    return "" if ns is None else us(ns, 3)


_COLUMNS = Column("at_ns", "at us", _us, "f64"), Column("duration_ns", "us", _us, "f64"), text("what", "waited for")


def folded(table: ResultTable) -> ResultTable:
    """The same, with a long text of the last column continued on the next lines; other cells there are None."""
    *others, _ = table.widths()
    room = WIDTH - table.indent - sum(width + len(table.gap) for width in others)
    rows: list[list[object]] = []
    for *cells, what in table.rows:
        first, *rest = textwrap.wrap(str(what), room, subsequent_indent="  ")
        rows.append([*cells, first])
        rows.extend([*(None for _ in cells), part] for part in rest)
    return table.with_rows(rows)


def wait_list(waits: list[InWait], begin_ns: int, devices: dict[int, str]) -> Iterator[Part]:
    """The waits of an op's threads, one after the other. ``begin_ns``: of the op. A wait continued in the next stage is
    one line.
    """
    if not waits:
        return
    yield "  what they waited for:"
    rows: list[list[object]] = []
    end_ns, last = None, None
    for w in waits:
        device = None if w.dev is None else devices.get(w.dev) or f"{w.dev >> 20}:{w.dev & 0xFFFFF}"
        spent = Spent(w.kind, w.path, w.comm, w.request_kind, device, w.instead_comm, w.reason, w.cause)
        if w.path is not None:
            spent = spent._replace(last_cause=w.last_cause, holder=holder_besides(w.path, w.cause, w.holder_comm))
        what = brief(spent)
        if w.part_count > 1:
            what += f" ({count_of(w.part_count, 'time')})"
        if not w.certain:
            what += " ?"
        if (what, w.wait_id, w.begin_ns) == (*(last or ("", 0)), end_ns):
            rows[-1][1] = w.begin_ns + w.duration_ns - begin_ns - int(str(rows[-1][0]))
        else:
            rows.append([w.begin_ns - begin_ns, w.duration_ns, what])
        end_ns, last = w.begin_ns + w.duration_ns, (what, w.wait_id)
    yield folded(ResultTable(_COLUMNS, rows, gap=" ", indent=2))
    yield from lock_lines(waits)
    if any(not w.certain for w in waits):
        yield "  ? perhaps an interrupt met the thread that is named: no part of the wait"
