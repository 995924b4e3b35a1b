# SPDX-License-Identifier: MIT
"""`opline btt RUN`: the block layer's intervals per device."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict

from opline_analyses.base.text import csv_text, device_name, encoded, table
from opline_analyses.base.whole_numbers import positive
from opline_analyses.block import io_filter
from opline_analyses.block.btt import ORDER, Device, devices
from opline_analyses.block.io_sources import requests as source
from opline_analyses.commands.common import add_form, add_run, csv_output, opened, output

NAME = "btt"
HELP = "the block layer's intervals per device: btt's tables, but exact"
EXAMPLES = """\
Seconds with nine decimals, as btt has them. Q queued, M merged, G allocated,
I inserted, D issued, C completed. Each interval is of bios or requests that
have both its ends: none is averaged over merges, none made up where there was
no insert (then G2D stands for G2I and I2D).

The shares are of the bios that have both Q and C, the parts as the whole; a bio
that a flush of others served has that flush's D. What is left lies between
steps that the trace lacks, or from a request's first D to its last.

The filters choose requests; the tables are of them and of their bios.

examples:
  opline btt run1
  opline btt run1 -d loop0 --json
  opline btt run1 -i reads --window 10:12 --latency '>5ms'
"""


def _slowest(device: Device) -> float:
    return -device.intervals["D2C"].avg_ns if "D2C" in device.intervals else 0.0


SORTS: dict[str, Callable[[Device], float]] = {
    "device": lambda d: d.dev, "ios": lambda d: -d.issued, "latency": _slowest,
}  # fmt: skip


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("--sort", choices=sorted(SORTS), default="device", help="of the devices (default: by number)")
    parser.add_argument("--limit", metavar="N", type=positive, help="the first N devices")
    io_filter.add_io_filters(parser, sources=False)
    add_form(parser, csv="CSV, a row for each interval, nanoseconds")


def _seconds(ns: float) -> str:
    return f"{ns / 1e9:.9f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _whole(value: int | None) -> str:
    return "" if value is None else str(value)


def text_lines(found: list[Device], names: dict[int, str]) -> Iterator[str]:
    """The tables for people."""
    for d in found:
        yield f"==================== {device_name(names, d.dev)} ===================="
        rows = [
            [i.name, _seconds(i.min_ns), _seconds(i.avg_ns), _seconds(i.max_ns), str(i.count)]
            for i in d.intervals.values()
        ]
        yield from table(["", "MIN", "AVG", "MAX", "N"], rows)
        yield ""
    yield "share of Q2C, % (over bios that have both, each one's own way)"
    parts = [name for name in ORDER if name not in ("Q2Q", "Q2C")]
    rows = []
    for d in found:
        cells = [f"{100 * d.share[p]:.1f}" if p in d.share else "" for p in parts]
        left = f"{100 * (1 - sum(d.share.values())):z.1f}" if d.share else ""
        rows.append([device_name(names, d.dev), *cells, left])
    yield from table(["DEV", *parts, "left"], rows)
    yield ""
    yield "merges (requests in sectors)"
    rows = []
    for d in found:
        ratio = f"{d.queued / d.issued:.2f}" if d.issued else ""
        sizes = [_whole(d.blk_min), _number(d.blk_avg), _whole(d.blk_max), str(d.blk_total)]
        rows.append([device_name(names, d.dev), str(d.queued), str(d.issued), ratio, *sizes])
    yield from table(["DEV", "#Q", "#D", "Q/D", "BLKmin", "BLKavg", "BLKmax", "total"], rows)
    yield ""
    yield "seeks between issues (sectors), and bios in flight at Q"
    rows = []
    for d in found:
        numbers = [_number(d.seek_mean), _number(d.seek_median), _number(d.depth_avg), _whole(d.depth_max)]
        rows.append([device_name(names, d.dev), str(d.seeks), *numbers])
    yield from table(["DEV", "NSEEKS", "MEAN", "MEDIAN", "depth avg", "depth max"], rows)


def run(args: argparse.Namespace) -> int:
    """Prints the tables."""
    with opened(args, blocks=True) as opened_run:
        rows = io_filter.rows_of(opened_run, args, source(parts=True))
        found = sorted(devices(opened_run, io_filter.chosen_ids(rows, args)), key=SORTS[args.sort])[: args.limit]
        names = opened_run.device_names()
        if not found:
            io_filter.tell_nothing(opened_run, rows)
        with csv_output(args) if args.csv else output(args.output) as out:
            if args.csv:
                intervals = ((d, i) for d in found for i in d.intervals.values())
                listed = [{"device": device_name(names, d.dev), **asdict(i)} for d, i in intervals]
                columns = ("device", "name", "min_ns", "avg_ns", "max_ns", "total_ns", "count")
                out.write(csv_text(columns, listed).encode())
            elif args.json:
                document = [{"device": device_name(names, d.dev), **asdict(d)} for d in found]
                out.write((json.dumps({"schema": "opline btt 1", "devices": document}, indent=1) + "\n").encode())
            elif found:
                out.write(encoded(text_lines(found, names)))
    return 0
