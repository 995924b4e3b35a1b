# SPDX-License-Identifier: MIT
"""The ops behind a client's figures: classes, and time.

Takes a run, a selection of ops, and the client's report; gives a `Selection` and how it was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.values import Value
from opline_analyses.base.text import count_of
from opline_analyses.client.span import Span, client_span
from opline_analyses.runs.selection import BIO, NEAR, Selection, clients_classes, directions_of

if TYPE_CHECKING:
    from opline_analyses.client.client_report import ClientReport
    from opline_analyses.runs.run import Run


class ClientsOps(Value):
    """The ops; the chosen classes, empty for all; their time, None: any."""

    which: Selection
    classes: list[str]
    span: Span | None


def clients_ops(run: Run, among: Selection, client: ClientReport) -> ClientsOps | None:
    """``among`` these ops. None: those of no classes are as many as the client counts of each direction.

    Classes that have more (a program that reads with read() reads its configuration so, too) are meant where as many
    are about one object, or in the client's time.
    """
    counts = client.counts()
    last_ns = round(client.seconds * 1e9) if client.ramp_seconds and client.seconds else None
    classes = clients_classes(run, among, counts, last_ns)
    if classes is not None:
        which = among.of_classes(classes) if classes else among
        return _in_time(which, classes, client_span(run, which, client))
    groups = _by_object(run, among)
    if None not in (of_objects := [_nearest(groups, direction, count) for direction, count in counts.items()]):
        pairs = [pair for pair in of_objects if pair is not None]
        which = among.also(
            " OR ".join(["(o.class = ? AND o.object = ?)"] * len(pairs)), *(text for pair in pairs for text in pair)
        )
        return _in_time(which, sorted({name for name, _ in pairs}), client_span(run, which, client))
    classes = sorted({name for name, _, _ in groups if directions_of(name, list(counts))})
    which, whole = among.of_classes(classes) if classes else among, sum(counts.values())
    span = client_span(run, which, client)
    if not classes or span is None or abs(span.inside - whole) > NEAR * whole:
        return None
    return _in_time(which, classes, span)


def _in_time(which: Selection, classes: list[str], span: Span | None) -> ClientsOps:
    return ClientsOps(which if span is None else span.of(which), classes, span)


def _by_object(run: Run, among: Selection) -> list[tuple[str, str | None, int]]:
    """Class, object and number of complete ops, the most first; without bios outside of calls."""
    found = run.rows(
        f"""SELECT o.class, o.object, count(*) FILTER (o.complete) AS n FROM ops o
            WHERE {among.where} AND o.class IS NOT NULL
            GROUP BY o.class, o.object ORDER BY n DESC, o.class, o.object""",
        among.parameters,
    )
    return [row for row in found if not row[0].startswith(BIO)]


def _nearest(groups: list[tuple[str, str | None, int]], direction: str, count: int) -> tuple[str, str] | None:
    """Class and object of as many ops as the client counts of a direction, within NEAR of it."""
    fitting = [g for g in groups if g[1] is not None and directions_of(g[0], [direction])]
    name, thing, n = min(fitting, key=lambda g: abs(g[2] - count), default=(None, None, 0))
    return None if name is None or thing is None or abs(n - count) > NEAR * count else (name, thing)


def other_ops(client: ClientReport) -> str:
    """The line about a client's figures without a similar number in any classes of ops."""
    counts = " and ".join(count_of(n, name) for name, n in client.counts().items())
    return f"no classes of ops are as many as the client's {counts}: its figures are of other ops than these."
