# SPDX-License-Identifier: MIT
"""`opline events TRACE`: a trace's events, decoded, one per line, in the order in which opline sees them."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from pathlib import Path

from opline import _core
from opline.errors import OplineError, UsageError
from opline.readers.front import choose, reader_wanted
from opline.readers.trace import find_traces
from opline.talk import talk
from opline_analyses.base.quantities import moment_ns

NAME = "events"
HELP = "a trace's events, decoded, one per line"
EXAMPLES = """\
Each line: time (raw monotonic ns), host, channel, CPU, event, { contexts },
{ fields }. Lines that begin with # are intervals with discarded events, and
streams that cannot be read to their end.

examples:
  opline events run1/trace | head
  opline events run1/trace --names 'block*' --since 1.5 --until 1.6
"""
ENDLESS = 2**63 - 1
ABSOLUTE_DIGITS = 12  # as in the other commands


def _instant(text: str) -> tuple[int, bool]:
    """(ns, whether they are the clock's own): seconds from the first event, exactly, or a line's own time."""
    if text.isdigit() and len(text) >= ABSOLUTE_DIGITS:
        value, absolute = int(text), True
    else:
        after, absolute = moment_ns(text), False
        if after is None:
            raise argparse.ArgumentTypeError(f"{text!r} is not a time (9.5, 9.5s, 10ms) nor absolute nanoseconds")
        value = after
    if not 0 <= value <= ENDLESS:
        raise argparse.ArgumentTypeError(f"{text} is out of range")
    return value, absolute


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """The trace and what to show of it."""
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a trace, or a recording")
    parser.add_argument("--names", metavar="GLOB", default="*", help="events whose name matches (default: all)")
    parser.add_argument(
        "--since",
        metavar="T",
        type=_instant,
        default=(0, False),
        help="only events at T or later: 9.5 (seconds) or 10ms from the first event, or absolute ns",
    )
    parser.add_argument("--until", metavar="T", type=_instant, default=(ENDLESS, False), help="only events before T")
    parser.add_argument("--limit", metavar="N", type=int, help="at most N events")
    parser.add_argument("--reader", metavar="R", help="auto, native or bt2 (default: $OPLINE_READER, else auto)")


def run(args: argparse.Namespace) -> int:
    """Print until the end, the limit, or a closed pipe."""
    if args.limit is not None and args.limit < 0:
        raise UsageError("--limit is to be 0 or more.")
    front, _ = choose(find_traces(args.trace), reader_wanted(args.reader))
    limit = 2**64 - 1 if args.limit is None else args.limit
    since_ns, since_is_absolute = args.since
    until_ns, until_is_absolute = args.until
    sys.stdout.flush()
    printer = _core.Printer(
        sys.stdout.fileno(), args.names, since_ns, since_is_absolute, until_ns, until_is_absolute, limit
    )
    for _ in front.read(printer):
        if printer.done():
            break
    _, failed = printer.finish()
    if failed == errno.EPIPE:
        raise BrokenPipeError
    if failed:
        raise OplineError(f"Cannot write the events: {os.strerror(failed)}.")
    for message in front.losses()[1]:
        talk(message)
    return 0
