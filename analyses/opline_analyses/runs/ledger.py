# SPDX-License-Identifier: MIT
"""The ledger of a run: the fate of every event, what is missing, and which ops that touches.

Takes a run; gives rows. Severity says what a loss means for the results: `info` and `notice` change none. The manifest
says it all, without a question to the tables. An older opline wrote less into it: then the tables are asked.
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
#: Losses of single events, each at its time: if they touch fewer ops than this share, commands print nothing about them
#: where `opline record` has said it. As much may be missing in a recording that counts as complete.
#: A packet is no single event: it has thousands, and an op that lies inside is not in the trace at all.
_OF_EVENTS = ("discarded_events", "events_missing", "collector_lost", "discarded_at_end")
FEW = 0.001
MANY = 0.01  # from this share of the ops on the page shows a loss in red


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
    counts = run.manifest.get("losses")
    if counts is not None and counts.keys() <= BY_NAME.keys():
        return entries_of(counts)
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
    """One short line per entry that makes results doubtful, for Python and live views; commands print line(). ``ops``:
    the core's counts of ops, for the share that overlaps a loss, in the first line. ``more``: the place of the whole
    text.
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


class Touched(Value):
    """Ops that overlap losses: ``unsplit`` count with their latency, ``left_out`` do not count. ``whole``: all ops."""

    whole: int
    unsplit: int
    left_out: int

    @property
    def share(self) -> float | None:
        """Of all ops; None if there is no op."""
        return (self.unsplit + self.left_out) / self.whole if self.whole else None


def touched(found: list[Entry], ops: Mapping[str, int] | None) -> Touched:
    """The ops that the losses touch. ``ops``: the core's counts."""
    counts = {e.loss: e.count for e in found}
    whole = ops["complete"] + ops["incomplete"] if ops else 0
    return Touched(whole, counts.get("unsplit_ops", 0), counts.get("tainted_ops", 0))


def is_small(found: list[Entry], ops: Mapping[str, int] | None, share: float = FEW) -> bool:
    """Only single events are lost, and they touch a smaller share of the ops."""
    part = touched(found, ops).share
    return part is not None and part < share and all(e.loss in _OF_EVENTS for e in found if e.severity in BAD)


def line(found: list[Entry], ops: Mapping[str, int] | None, more: str = "`opline losses`") -> str | None:
    """All that makes results doubtful, in one line, with the share of the ops; None if there is nothing. ``ops``: the
    core's counts; ``more``: the place of the whole text.
    """
    bad = [e for e in found if e.severity in BAD]
    if not bad:
        return None
    head = "error" if bad[0].severity == "error" else "lost"
    reason = f" ({BY_NAME[bad[0].loss].words})" if len(bad) == 1 and BY_NAME[bad[0].loss].words else ""
    what = ", ".join(f"{e.loss} {e.count}" for e in bad)
    told = "" if all(e.loss in UNPLACED for e in bad) else _overlap(touched(found, ops))
    return f"{head}: {what}{reason}. {told}{more} says more."


def unsaid(found: list[Entry], ops: Mapping[str, int] | None, recorded: bool) -> str | None:
    """The line that a command says before its output. ``ops``: the core's counts of ops; ``recorded``: `opline record`
    has said it, so that a small loss is not said again.
    """
    return None if recorded and is_small(found, ops) else line(found, ops)


def _overlap(ops: Touched) -> str:
    """How many ops overlap a loss, and which of their figures count; empty if there is no op."""
    if not ops.whole:
        return ""
    number = ops.unsplit + ops.left_out
    if not number:
        return f"All latencies count ({count_of(ops.whole, 'op')}). "
    said = [f"the latency of {ops.unsplit} counts, their split into stages does not"] if ops.unsplit else []
    said += [f"{count_of(ops.left_out, 'op does', 'ops do')} not count"] if ops.left_out else []
    share = f"{_percent(number, ops.whole)} % of the ops ({number} of {ops.whole})"
    return f"{share} overlap: {'; '.join(said)}. "


def _percent(part: int, whole: int) -> str:
    """Two figures, without an exponent."""
    value = 100 * part / whole
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _share(tainted: int, ops: Mapping[str, int] | None) -> str:
    """The share of ops, complete or not, that overlap a loss; empty if there is no op."""
    whole = ops["complete"] + ops["incomplete"] if ops else 0
    if not whole:
        return ""
    if not tainted:
        return f"all latencies count ({count_of(whole, 'op')}); "
    return f"{tainted} of {count_of(whole, 'op')} ({_percent(tainted, whole)} %) overlap a loss; "


def _words(name: str) -> str:
    known = BY_NAME.get(name)
    return f": {known.words}" if known and known.words else ""


def fates(run: Run) -> list[Fate]:
    """Per event class and fate the number of events; per class they sum to the input."""
    if (found := run.core("fates")) is not None:
        of_event = ((event, found[event].items()) for event in sorted(found))
        return [Fate(event, fate, count) for event, counts in of_event for fate, count in sorted(counts) if count]
    return [Fate(*row) for row in run.rows("SELECT event, fate, count FROM fates WHERE count > 0 ORDER BY event, fate")]


def discarded(run: Run) -> list[Discarded]:
    """Intervals in which the tracer discarded, the recorder knew of a loss, or other events show one: stream (or what),
    begin, end, count, packets, and the tainted ops that overlap. What others show comes last.
    """
    losses = run.core("losses")
    if losses is not None and not run.manifest.get("gaps", True) and not any(losses.get(n, 1) for n in _DISCARDS):
        return []
    rows = run.rows(
        """SELECT d.stream, d.begin_ns, d.end_ns, d.count, d.packets,
                  (SELECT count(*) FROM ops o WHERE o.begin_ns <= coalesce(d.end_ns, 9223372036854775807)
                   AND coalesce(o.end_ns, 9223372036854775807) >= coalesce(d.begin_ns, 0) AND (o.tainted OR o.unsplit))
           FROM discarded d ORDER BY d.stream LIKE 'events missing%', d.stream, d.begin_ns"""
    )
    return [(s, b, e, n, p, k) for s, b, e, n, p, k in rows]
