# SPDX-License-Identifier: MIT
"""The options of inputs that have histograms or latencies alone, on the commands that take them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.counts import inputs

if TYPE_CHECKING:
    from opline_analyses.counts.collected import Collected
    from opline_analyses.intervals.intervals import Batch

_OF_IOS: tuple[tuple[str, str, Any], ...] = (
    ("model", "--model", None), ("reader", "--reader", None), ("extents", "--extents", []),
    ("max_loss", "--max-loss", None), ("per", "--per", None), ("buckets", "--buckets", "log2"),
    ("compat", "--compat", False), ("device", "--device", None), ("io", "--io", None), ("size", "--size", None),
    ("comm", "--comm", None), ("pid", "--pid", None), ("tid", "--tid", None), ("op_class", "--class", None),
    ("latency", "--latency", None), ("window", "--window", None), ("of", "--of", "requests"),
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
        choices=sorted(set(DURATIONS) - {"µs", "min", "h"}),
        help="the unit of histograms that don't say theirs (default: DTrace ns, else us)",
    )


def interval_of_oracle(args: argparse.Namespace, kind: inputs.Kind) -> str | None:
    """10046_connector.py's own -i, seconds, which is the kind of I/Os elsewhere: taken from there."""
    given = args.io or []
    if kind.name != "oracle" or len(given) != 1 or not given[0].replace(".", "", 1).isdecimal():
        return None
    args.io = None
    return str(given[0])


def without_ios(args: argparse.Namespace, kind: inputs.Kind, allowed: tuple[str, ...] = ()) -> None:
    """Raises UsageError for an option that chooses among I/Os: this input has none."""
    for name, option, default in _OF_IOS:
        if name not in allowed and getattr(args, name, default) != default:
            raise UsageError(f"{args.run} has {kind.called}: without single I/Os {option} can't be answered.")


def counts_of(args: argparse.Namespace, kind: inputs.Kind) -> Collected:
    """The histograms. Raises OplineError."""
    from opline_analyses.counts.collected import collect

    return collect(inputs.snapshots_of(args.run, kind, args.counted_in, args.datasource), str(args.run))


def values_of(args: argparse.Namespace, kind: inputs.Kind) -> tuple[Batch, str]:
    """The times and latencies, in ns, and what one of them is called. Raises OplineError."""
    if kind.name == "oracle":
        from opline_analyses.counts.oracle_trace import EVENT, read

        return read(inputs.lines_of(args.run), str(args.run), args.event or EVENT, args.case_sensitive), "wait"
    from opline_analyses.base.quantities import DURATIONS
    from opline_analyses.counts import two_columns

    unit = args.unit or "us"
    if unit not in DURATIONS:
        raise UsageError(f"--unit {unit}: one of {', '.join(two_columns.UNITS)}.")
    batch, skipped = two_columns.read(args.run, two_columns.unit_ns(args.unitstime))
    if skipped:
        talk(f"{skipped} lines of {args.run} have no two numbers: left out.")
    if max(abs(int(batch.values.min())), int(batch.values.max())) * DURATIONS[unit] >= 2**63:
        raise two_columns.too_large(args.run)
    batch.values = batch.values * DURATIONS[unit] // two_columns.THOUSANDTHS
    return batch, "event"
