# SPDX-License-Identifier: MIT
"""`opline events TRACE`: a trace's events, decoded, one per line, in the order in which opline sees them."""

from __future__ import annotations

import argparse
import errno
import json
import os
from typing import Any

from opline import _core
from opline.applications import table
from opline.correlation import recording_of
from opline.errors import OplineError, UsageError
from opline.readers.front import found, reader_wanted
from opline.talk import talk
from opline_analyses.base import filters
from opline_analyses.base.quantities import seconds
from opline_analyses.commands.arguments import positive
from opline_analyses.commands.common import add_form, csv_output, input_path, output, refuse_other
from opline_analyses.commands.options import add_device, add_threads, add_times

NAME = "events"
HELP = "a trace's events, decoded, one per line"
PROGRESS = AS_IT_GOES = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--host": "each trace is of one host, and a joined run names its traces",
    "--class --object": "an event is of no op: `opline ops`",
    "--cgroup": "an event names a thread, and only a run knows its cgroup",
    "--latency --slowest": "an event has no duration",
    "--sort": "events are in the order in which opline sees them",
}
EXAMPLES = """\
Each line: time (raw monotonic ns), host, channel, CPU, event, { contexts },
{ fields }. A line with # is an interval with discarded events, or a stream that
opline cannot read to its end. opline skips unknown lines of text. Times of
babeltrace's text are ns of the day.

--csv and --json (an object per line): ts_ns, host, channel, cpu, event, comm,
pid, tid, context, fields, lost. `context` and `fields` are objects (in CSV JSON
text); arrays and structures are null. A row with `lost` is no event: events are
missing from there on. A byte outside of UTF-8 is written as \\xff.

-d, -p, -n and --tid leave out events without a device, process or thread. -d
means the number of the device; few events name a partition.

examples:
  opline events run1/trace | head
  opline events run1/trace --names 'block*' --since 1.5 --until 1.6
  opline events run1/trace --names block_rq_issue -d sda --csv > issued.csv
  opline events run1/trace -p 4242 --window 10ms --at 153.65 --json
"""
ENDLESS = 2**63 - 1
ALL_BITS = 2**64 - 1
MAJOR_BITS = 20  # a device's number is major << 20 | minor


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """The trace and what to show of it."""
    parser.add_argument(
        "trace",
        metavar="TRACE",
        type=input_path,
        help="a trace, or a recording; babeltrace's, perf's, ftrace's text; blktrace's; -: stdin",
    )
    parser.add_argument("--limit", metavar="N", type=positive, help="at most N events")
    parser.add_argument("--reader", metavar="R", help="auto, native or bt2 (default: $OPLINE_READER, else auto)")
    group = parser.add_argument_group("which events (all may be combined)")
    group.add_argument("--names", metavar="GLOB", default="*", help="whose name matches (default: all)")
    add_device(group)
    add_threads(group, "of")
    add_times(group, "happened")
    add_form(parser, json="JSON, an object per line, nanoseconds")


def _devices(args: argparse.Namespace) -> dict[str, list[tuple[int, int]]]:
    """What -d means, as numbers and which of their bits count. Raises UsageError."""
    if not args.device:
        return {}
    recording = recording_of(args.trace) or {}
    names = {int(device["dev"]): str(device["name"]) for device in recording.get("devices", [])}

    def number_of(text: str) -> int:
        number = filters.number_among(names, text)
        if number is None:
            known = ", ".join(names.values()) or "no names of devices"
            raise UsageError(f"No device {text}: the recording has {known}; MAJOR:MINOR is understood, too.")
        return number

    found = []
    for some in filters.devices_meant(args.device, number_of):
        majors = [(major << MAJOR_BITS, ALL_BITS ^ ((1 << MAJOR_BITS) - 1)) for major in some.majors]
        found.append([*((number, ALL_BITS) for number in some.numbers), *majors])
    for device in recording.get("devices", []):
        if device.get("parent") is not None and any((int(device["dev"]), ALL_BITS) in some for some in found):
            disk = device["parent"]
            talk(
                f"{device['name']} is a partition: few events name it, most its disk and a sector of that (-d {disk})."
            )
    return {"devices": found[0], "other_devices": found[1]}


def _filter(args: argparse.Namespace) -> dict[str, Any]:
    """As the printer takes it. Raises UsageError."""
    since, until = filters.window_instants(args.window, args.at, args.since, args.until)
    for moment in filter(None, (since, until)):
        if not 0 <= moment.ns <= ENDLESS:
            raise UsageError(f"--since and --until: {moment.ns} ns is out of range.")
    wanted: dict[str, Any] = {
        "form": "json" if args.json else "csv" if args.csv else "text",
        "names": args.names,
        "pids": args.pid or [],
        "tids": args.tid or [],
        "comms": args.comm or [],
        **_devices(args),
    }
    if since is not None:
        wanted |= {"since_ns": since.ns, "since_is_absolute": since.absolute}
    if until is not None:
        wanted |= {"until_ns": until.ns, "until_is_absolute": until.absolute}
    return wanted if args.limit is None else wanted | {"limit": args.limit}


def run(args: argparse.Namespace) -> int:
    """Print until the end, the limit, or a closed pipe."""
    refuse_other(args.trace)
    wanted = _filter(args)
    _traces, front, _ = found(args.trace, reader_wanted(args.reader))
    with csv_output(args) if args.csv else output(args.output) as out:
        printer = _core.Printer(out.fileno(), json.dumps(wanted | table.providers()))
        try:
            for _ in front.read(printer):
                if printer.done():
                    break
        except OplineError:
            printer.finish()  # what was read before
            raise
        ended = not printer.done()
        printed, failed, length_ns = printer.finish()
        if failed == errno.EPIPE:
            raise BrokenPipeError
        if failed:
            raise OplineError(f"Cannot write the events: {os.strerror(failed)}.")
    for message in front.losses()[1]:
        talk(message)
    if not printed and args.limit != 0:
        whole = f" in the trace's {seconds(length_ns, 6)} s" if ended and length_ns is not None else ""
        talk(f"the options select no event{whole}.")
    return 0
