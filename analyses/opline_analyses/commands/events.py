# SPDX-License-Identifier: MIT
"""`opline events TRACE`: a trace's events, decoded, one per line, in the order in which opline sees them."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path

from opline import _core
from opline.errors import OplineError, UsageError
from opline.readers.front import choose, reader_wanted
from opline.readers.trace import find_traces

NAME = "events"
HELP = "a trace's events, decoded, one per line"
EXAMPLES = """\
Each line: time (raw monotonic ns), host, channel, CPU, event, { contexts },
{ fields }. Lines that begin with # are intervals with discarded events.

examples:
  opline events run1/trace | head
  opline events run1/trace --names 'block*' --since 1.5 --until 1.6
"""
ENDLESS = 2**63 - 1


def _seconds(text: str) -> int:
    """Seconds as ns, exactly."""
    try:
        value = int(Decimal(text.removesuffix("s")) * 1_000_000_000)
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from error
    if not 0 <= value < ENDLESS:
        raise argparse.ArgumentTypeError(f"{text} is out of range")
    return value


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """The trace and what to show of it."""
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a trace, or a recording")
    parser.add_argument("--names", metavar="GLOB", default="*", help="events whose name matches (default: all)")
    parser.add_argument("--since", metavar="S", type=_seconds, default=0, help="seconds from the trace's first event")
    parser.add_argument("--until", metavar="S", type=_seconds, default=ENDLESS, help="the same")
    parser.add_argument("--limit", metavar="N", type=int, help="at most N events")
    parser.add_argument("--reader", metavar="R", help="auto, native or bt2 (default: $OPLINE_READER, else auto)")


def run(args: argparse.Namespace) -> int:
    """Print until the end, the limit, or a closed pipe."""
    if args.limit is not None and args.limit < 0:
        raise UsageError("--limit is to be 0 or more.")
    front, _ = choose(find_traces(args.trace), reader_wanted(args.reader))
    limit = 2**64 - 1 if args.limit is None else args.limit
    sys.stdout.flush()
    printer = _core.Printer(sys.stdout.fileno(), args.names, args.since, args.until, limit)
    for _ in front.read(printer):
        if printer.done():
            break
    _, failed = printer.finish()
    if failed == errno.EPIPE:
        raise BrokenPipeError
    if failed:
        raise OplineError(f"Cannot write the events: {os.strerror(failed)}.")
    for message in front.losses()[1]:
        sys.stderr.write(f"opline: {message}\n")
    return 0
