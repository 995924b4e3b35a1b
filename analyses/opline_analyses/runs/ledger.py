# SPDX-License-Identifier: MIT
"""The ledger of a run: the fate of every event, what is missing, and which ops that touches.

Takes a run; gives rows. Severity says what a loss means for the results: `info` and `notice` change none. Of a run that
this process has made the manifest says it all, without a question to the tables; one found on disk may be older.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.losses import BY_NAME, UNPLACED
from opline.values import Value
from opline_analyses.base.text import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing import TypeAlias

    from opline_analyses.runs.run import Run

    Discarded: TypeAlias = tuple[str, int | None, int | None, int | None, bool, int]

BAD = ("data_loss", "error")
_DISCARDS = ("discarded_events", "discarded_packets", "discarded_unknown_count", "events_missing")


class Entry(Value):
    """One loss: its name, how bad, who lost it, how many, and what to do about it."""

    loss: str
    severity: str
    origin: str
    count: int
    advice: str


class Fate(Value):
    """How many events of a class met one fate."""

    event: str
    fate: str
    count: int


def _advice(name: str) -> str:
    """The sentence that the ledger's catalogue has for a loss; empty for one that it does not know."""
    known = BY_NAME.get(name)
    return known.advice if known else ""


_WORST_FIRST = ("error", "data_loss", "notice", "info")


def _sorted(found: Iterable[Entry]) -> list[Entry]:
    return sorted(found, key=lambda e: (_WORST_FIRST.index(e.severity) if e.severity in _WORST_FIRST else 0, e.loss))


def entries(run: Run) -> list[Entry]:
    """The entries that are not zero, worst first."""
    if run.fresh:
        return entries_of(run.manifest["losses"])
    rows = run.rows("SELECT loss, severity, origin, count FROM losses WHERE count > 0")
    return _sorted(Entry(loss, severity, origin, count, _advice(loss)) for loss, severity, origin, count in rows)


def entries_of(counts: Mapping[str, int]) -> list[Entry]:
    """The same from counts by name, where there is no run."""
    known = ((BY_NAME[name], count) for name, count in counts.items() if count)
    return _sorted(Entry(k.name, k.severity.value, k.origin.value, count, k.advice) for k, count in known)


def bad_count(found: list[Entry]) -> int:
    """What --max-loss compares with: everything of severity data_loss and error."""
    return sum(e.count for e in found if e.severity in BAD)


def warnings(found: list[Entry], ops: Mapping[str, int] | None = None, more: str = "`opline losses`") -> list[str]:
    """One short line per entry that makes results doubtful; every command puts them on stderr. ``ops``: the core's
    counts of ops, for the share that overlaps a loss, in the first line. ``more``: the place of the whole text.
    """
    bad = [e for e in found if e.severity in BAD]
    share = _share(sum(e.count for e in found if e.loss == "tainted_ops"), ops)
    if all(e.loss in UNPLACED for e in bad):
        share = ""
    return [
        f"{e.severity.replace('_', ' ')}: {e.loss} {e.count} ({e.origin}){_words(e.loss)}; "
        f"{share if e is bad[0] else ''}{more} says more"
        for e in bad
    ]


def _share(tainted: int, ops: Mapping[str, int] | None) -> str:
    """The share of ops, complete or not, that overlap a loss; empty if there is no op."""
    whole = ops["complete"] + ops["incomplete"] if ops else 0
    if not whole:
        return ""
    if not tainted:
        return f"no op of {whole} overlaps a loss; "
    return f"{tainted} of {count_of(whole, 'op')} ({100 * tainted / whole:.2g} %) overlap a loss; "


def _words(name: str) -> str:
    known = BY_NAME.get(name)
    return f": {known.words}" if known and known.words else ""


def fates(run: Run) -> list[Fate]:
    """Per event class and fate the number of events; per class they sum to the input."""
    if run.fresh:
        found = run.core("fates")
        return [Fate(event, fate, count) for event in sorted(found) for fate, count in sorted(found[event].items())]
    return [Fate(*row) for row in run.rows("SELECT event, fate, count FROM fates WHERE count > 0 ORDER BY event, fate")]


def discarded(run: Run) -> list[Discarded]:
    """Intervals in which the tracer discarded, the recorder knew of a loss, or other events show one: stream (or what),
    begin, end, count, packets, and the tainted ops that overlap. What others show comes last.
    """
    if run.fresh and not run.manifest["gaps"] and not any(run.core("losses")[name] for name in _DISCARDS):
        return []
    rows = run.rows(
        """SELECT d.stream, d.begin_ns, d.end_ns, d.count, d.packets,
                  (SELECT count(*) FROM ops o WHERE o.begin_ns <= coalesce(d.end_ns, 9223372036854775807)
                   AND coalesce(o.end_ns, 9223372036854775807) >= coalesce(d.begin_ns, 0) AND (o.tainted OR o.unsplit))
           FROM discarded d ORDER BY d.stream LIKE 'events missing%', d.stream, d.begin_ns"""
    )
    return [(s, b, e, n, p, k) for s, b, e, n, p, k in rows]
