# SPDX-License-Identifier: MIT
"""The ledger of a run: the fate of every event, the losses, and the affected ops.

Takes a run; gives rows. The severity tells the meaning of a loss for the results: `info` and `notice` change none. The
manifest has everything, without a question to the tables. An older opline wrote less into the manifest: then the tables
are asked.
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
#: Losses of single events, each at its time: below this share of affected ops, commands print nothing about losses
#: already reported by `opline record`. A recording with as much missing counts as complete.
#: A packet is no single event: a packet has thousands, and an op inside is not in the trace at all.
_OF_EVENTS = ("discarded_events", "events_missing", "collector_lost", "discarded_at_end")
FEW = 0.001
MANY = 0.01  # from this share of the ops on the page shows a loss in red


class Entry(Value):
    """One loss: name, severity, origin, count, and advice."""

    loss: str
    severity: str
    origin: str
    count: int
    advice: str


class Fate(Value):
    """The number of events of a class with one fate."""

    event: str
    fate: str
    count: int


def _advice(name: str) -> str:
    """The catalogue's sentence for a loss; empty for an unknown loss."""
    known = BY_NAME.get(name)
    return known.advice if known else ""


_WORST_FIRST = ("error", "data_loss", "notice", "info")


def _sorted(found: Iterable[Entry]) -> list[Entry]:
    return sorted(found, key=lambda e: (_WORST_FIRST.index(e.severity) if e.severity in _WORST_FIRST else 0, e.loss))


def entries(run: Run) -> list[Entry]:
    """The entries above zero, worst first."""
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
    """The number compared with --max-loss: all losses of severity data_loss and error."""
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
    """Ops that overlap losses: ``unsplit`` ops count with their latency, ``left_out`` ops do not count. ``whole``: all
    ops.
    """

    whole: int
    unsplit: int
    left_out: int

    @property
    def share(self) -> float | None:
        """Of all ops; None if there is no op."""
        return (self.unsplit + self.left_out) / self.whole if self.whole else None


def touched(found: list[Entry], ops: Mapping[str, int] | None) -> Touched:
    """The ops affected by losses. ``ops``: the core's counts."""
    counts = {e.loss: e.count for e in found}
    whole = ops["complete"] + ops["incomplete"] if ops else 0
    return Touched(whole, counts.get("unsplit_ops", 0), counts.get("tainted_ops", 0))


def is_small(found: list[Entry], ops: Mapping[str, int] | None, share: float = FEW) -> bool:
    """Only single events are lost, and a smaller share of the ops is affected."""
    part = touched(found, ops).share
    return part is not None and part < share and all(e.loss in _OF_EVENTS for e in found if e.severity in BAD)


def line(found: list[Entry], ops: Mapping[str, int] | None, more: str = "`opline losses`") -> str | None:
    """Everything that makes results doubtful, in one line, with the share of the ops; None without such losses.
    ``ops``: the core's counts; ``more``: the place of the whole text.
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
    """The line of a command before its output. ``ops``: the core's counts of ops; ``recorded``: `opline record` has
    reported the losses, so a small loss is not repeated.
    """
    return None if recorded and is_small(found, ops) else line(found, ops)


def _overlap(ops: Touched) -> str:
    """The number of ops that overlap a loss, and which of their figures count; empty without ops."""
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
    """The share of ops, complete or not, that overlap a loss; empty without ops."""
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
    """The number of events per event class and fate; per class the numbers sum to the input."""
    if (found := run.core("fates")) is not None:
        of_event = ((event, found[event].items()) for event in sorted(found))
        return [Fate(event, fate, count) for event, counts in of_event for fate, count in sorted(counts) if count]
    return [Fate(*row) for row in run.rows("SELECT event, fate, count FROM fates WHERE count > 0 ORDER BY event, fate")]


def discarded(run: Run) -> list[Discarded]:
    """Intervals with discarded events, with a loss known to the recorder, or with a loss shown by other events: stream
    (or origin), begin, end, count, packets, and the overlapping tainted ops. Losses shown by other events come last.
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
