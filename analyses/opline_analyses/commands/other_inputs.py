# SPDX-License-Identifier: MIT
"""The options of inputs that have histograms or latencies alone, on the commands that take them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from opline.errors import UsageError

if TYPE_CHECKING:
    from opline_analyses.counts.asked import Asked
    from opline_analyses.counts.collected import Collected
    from opline_analyses.counts.inputs import Kind

_OF_IOS: tuple[tuple[str, str, Any], ...] = (
    ("model", "--model", None), ("reader", "--reader", None), ("extents", "--extents", []),
    ("max_loss", "--max-loss", None), ("per", "--per", None), ("buckets", "--buckets", "auto"),
    ("compat", "--compat", False), ("device", "--device", None), ("io", "--io", None), ("size", "--size", None),
    ("comm", "--comm", None), ("pid", "--pid", None), ("tid", "--tid", None), ("op_class", "--class", None),
    ("cgroup", "--cgroup", None), ("object", "--object", None), ("host", "--host", None),
    ("latency", "--latency", None), ("window", "--window", None), ("since", "--since", None),
    ("until", "--until", None), ("of", "--of", "requests"),
    ("stage", "--stage", None), ("start", "--from", None), ("end", "--to", None), ("beside", "--beside", None),
    ("tainted", "--tainted", False),
    ("value", "--value", "latency"), ("minlat", "--minlat", None), ("maxlat", "--maxlat", None),
    ("steplat", "--steplat", None), ("rows", "--rows", None), ("percentiles", "--percentiles", None),
    ("per_device", "--per-device", False), ("timestamps", "--timestamps", False),
)  # fmt: skip


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """The options."""
    from opline_analyses.base.quantities import DURATIONS

    group = parser.add_argument_group("RUN is of another tool: its histograms, or a time and a latency on each line")
    group.add_argument("-e", "--event", metavar="E", help="of Oracle's 10046 trace (default: db file sequential read)")
    group.add_argument("--case-sensitive", action="store_true", help="--event is exactly so")
    group.add_argument(
        "--datasource", choices=("bpf", "systemtap", "dtrace", "oracle"), help="of records that don't say theirs"
    )
    group.add_argument(
        "--counted-in",
        choices=sorted(set(DURATIONS) - {"µs", "m", "min", "h"}),
        help="the unit of histograms that don't say theirs (default: DTrace ns, else us)",
    )


def interval_of_oracle(args: argparse.Namespace, kind: Kind) -> str | None:
    """10046_connector.py's own -i, seconds, which is the kind of I/Os elsewhere: taken from there."""
    from opline_analyses.counts.formats import oracle_trace

    given = args.io or []
    if kind is not oracle_trace or len(given) != 1 or not given[0].replace(".", "", 1).isdecimal():
        return None
    args.io = None
    return str(given[0])


def without_ios(args: argparse.Namespace, kind: Kind, allowed: tuple[str, ...] = ()) -> None:
    """Raises UsageError for an option that chooses among I/Os: this input has none."""
    for name, option, default in _OF_IOS:
        if name not in allowed and getattr(args, name, default) != default:
            raise UsageError(f"{args.run} has {kind.CALLED}: without single I/Os {option} can't be answered.")


def counts_of(args: argparse.Namespace, kind: Kind) -> Collected:
    """The histograms. Raises OplineError."""
    from opline_analyses.counts.collected import collect

    return collect(kind.read(asked_of(args)), str(args.run))


def asked_of(args: argparse.Namespace) -> Asked:
    """The input and its options, for what reads it."""
    from opline_analyses.counts.asked import Asked

    given = {name: getattr(args, name, None) for name in ("counted_in", "datasource", "event", "unit", "unitstime")}
    return Asked(str(args.run), case_sensitive=args.case_sensitive, **given)
