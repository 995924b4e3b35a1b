# SPDX-License-Identifier: MIT
"""The list of an op's transitions in the ceph-devel mail "performance latency analysis with LTTng", to the character.

The hook `op_list`: STYLES has, by the name of a style, a function that takes an op with all of its points and gives
lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol


class Point(Protocol):
    """A point that an op passed: its name, the event's name, the thread, and the time in ns."""

    @property
    def point(self) -> str: ...
    @property
    def event(self) -> str | None: ...
    @property
    def tid(self) -> int | None: ...
    @property
    def ts_ns(self) -> int: ...


class Op(Protocol):
    """What the list needs of an op."""

    @property
    def op_id(self) -> int: ...
    @property
    def object(self) -> str | None: ...
    @property
    def key(self) -> str | None: ...
    @property
    def transitions(self) -> Sequence[Point]: ...


def label(t: Point) -> str:
    """An event's own name with a colon, or the point's where the model made it of a field: mark_flagpt:started_2
    (C1.7).
    """
    name, _, again = t.point.partition("#")
    if t.event is None:
        return f"{t.point}:"
    if name == t.event:
        return f"{t.event}:"
    if ":mark_flag_point" in t.event:
        name = "mark_flagpt:" + name.removeprefix("mark_flagpt:").rpartition(".")[2]
    return f"{name}_{again}" if again else name


def ceph_devel_list(op: Op, _unfold: bool = False) -> Iterator[str]:
    """The mail's list (C1.6), late points included. A delta is the difference of two whole numbers of microseconds
    since the first state, so the deltas sum to the total whatever the nanoseconds are.
    """
    name = op.object if op.object is not None else op.key or f"op {op.op_id}"
    yield f"Op Transition list for {name}, {len(op.transitions)} states"
    yield "  - [ ThrID   us ]"
    first_ns, last_us = (op.transitions[0].ts_ns if op.transitions else 0), 0
    for n, t in enumerate(op.transitions):
        at_us = (t.ts_ns - first_ns) // 1000
        arrow = "    ->" if n else "Start->"
        yield f"  - [ {'' if t.tid is None else str(t.tid)[-5:]:>5} {at_us - last_us:+05d}] {arrow} {label(t)}"
        last_us = at_us
    yield f"  === > Total: {last_us} us"


STYLES = {"ceph-devel": ceph_devel_list}
