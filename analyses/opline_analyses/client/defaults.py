# SPDX-License-Identifier: MIT
"""The ops behind figures without a named class: the client's ops, else the ops of calls.

Takes a run and the options; gives a `Selection`, and a line about ops left out (docs/internals/design.md, "The ops that
count").
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opline.talk import shown, talk
from opline_analyses.base.text import count_of, duration
from opline_analyses.client.client_files import find_report
from opline_analyses.client.clients_ops import clients_ops, other_ops
from opline_analyses.runs.selection import ALL_CLASSES, BIO, Selection, directions_of, selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from opline.paths import StrPath
    from opline_analyses.client.client_report import ClientReport
    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import OpFilters

_OPTION = f"--class {ALL_CLASSES} counts all"


def default_selection(run: Run, filters: OpFilters, whose: str = "") -> Selection:
    """The ops that the figures are about; what is left out is said, in lines that begin with ``whose``. Raises
    UsageError for unknown ops and classes.
    """
    if filters.op_class or filters.op:
        return selection(run, filters)
    return selection(run, filters, _among(run, whose))


def _among(run: Run, whose: str) -> Selection:
    client = None if run.all_programs else report_of(run)
    if client is not None and (found := _clients(run, client, whose)) is not None:
        return found
    population = run.population
    every = run.all_programs or (population is not None and not population.counts_alone)
    without = () if every else outside_of(run.manifest.get("recording"))
    if not without:
        return Selection()
    classes: dict[str, int] = dict(
        run.rows("SELECT class, count(*) FILTER (complete) FROM ops WHERE class IS NOT NULL GROUP BY class")
    )
    outside = sorted(name for name in classes if name.startswith(without))
    if not outside or len(outside) == len(classes):
        return Selection()
    if line := outside_line(classes, without):
        talk(f"{whose}{line}")
    return Selection(f"coalesce(o.class, '') NOT IN ({', '.join('?' * len(outside))})", tuple(outside))


def report_of(run: Run) -> ClientReport | None:
    """The recorded command's own printed figures; None: not printed."""
    return _report_in(run.places())


def _report_in(places: Iterable[StrPath]) -> ClientReport | None:
    return next(filter(None, (find_report(Path(place)) for place in places)), None)


def narrows(*places: StrPath) -> bool:
    """Whether a client's figures in one of these folders say which ops count: that takes a run's tables."""
    client = _report_in(places)
    return client is not None and bool(client.counts())


def _clients(run: Run, client: ClientReport, whose: str) -> Selection | None:
    """What the client counts, with its syncs, which it counts apart. None: it does not tell directions apart, or its
    figures are of other ops.
    """
    if not client.counts():
        return None
    found = clients_ops(run, Selection(), client)
    if found is None:
        talk(f"{whose}{other_ops(client)}")
        return None
    which, classes = found.which, found.classes
    (mean_ns,) = run.row(f"SELECT avg(latency_ns) FROM ops o WHERE o.complete AND ({which.where})", which.parameters)
    outside_ns = None if mean_ns is None else client.outside_ns(mean_ns)
    if client.syncs and classes:
        known = run.rows("SELECT DISTINCT class FROM ops WHERE class IS NOT NULL ORDER BY class")
        syncs = [name for (name,) in known if directions_of(name, ["sync"])]
        which = which.or_classes(syncs)
        classes = sorted({*classes, *syncs})
    n, whole = run.row(f"SELECT count(*) FILTER ({which.where}), count(*) FROM ops o", which.parameters)
    if outside_ns is not None:
        talk(
            f"{whose}{client.tool} itself says a mean of {duration(client.mean_ns)}: {duration(outside_ns)} of it are"
            " outside of these ops, before they begin or after they end."
        )
    if n == whole:
        return Selection()
    of = f" ({', '.join(map(shown, classes))})" if classes else ""
    talk(f"{whose}counted: the {count_of(n, 'op')} that {client.tool} counts{of}, not {whole - n} others; {_OPTION}")
    return which


def outside_of(recording: Mapping[str, Any] | None) -> tuple[str, ...]:
    """How the classes begin that do not count where there are others. None, if calls can be missing: LTTng's kernel
    domain does not show io_uring's, whose bios are all that there is of them. (Calls are the recorded programs' only:
    where all programs count, so do all bios.)
    """
    return (BIO,) if recording is not None and recording.get("block_source") == "bpf" else ()


def outside_count(classes: Mapping[str, int], without: tuple[str, ...]) -> int:
    """How many of the complete ops, ``classes`` says how many of each class, do not count: none where all would not."""
    outside = sum(n for name, n in classes.items() if name.startswith(without))
    return outside if outside < sum(classes.values()) else 0


def outside_line(classes: Mapping[str, int], without: tuple[str, ...]) -> str | None:
    """The same in a line; None: all count."""
    outside = outside_count(classes, without)
    if not outside:
        return None
    return f"not counted: {count_of(outside, 'I/O')} outside of calls (page faults, read-ahead); {_OPTION}"
