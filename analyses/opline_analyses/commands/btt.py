# SPDX-License-Identifier: MIT
"""`opline btt RUN`: the block layer's intervals per device."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from opline_analyses.btt import ORDER, Device, devices
from opline_analyses.commands.common import add_output, add_run, opened, output
from opline_analyses.requests import device_number
from opline_analyses.text import device_name, encoded, table

NAME = "btt"
HELP = "the block layer's intervals per device: btt's tables, but exact"
EXAMPLES = """\
Seconds with nine decimals, as btt has them. Q queued, M merged, G allocated,
I inserted, D issued, C completed. Each interval is of bios or requests that
have both its ends: none is averaged over merges, none made up where there was
no insert (then G2D stands for G2I and I2D).

examples:
  opline btt run1
  opline btt run1 --device loop0 --json
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("--device", metavar="D", help="only this device: its name, or MAJOR:MINOR")
    parser.add_argument("--json", action="store_true", help="JSON, nanoseconds")
    add_output(parser)


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
        rows.append([device_name(names, d.dev), *cells])
    yield from table(["DEV", *parts], rows)
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
    with opened(args) as opened_run:
        found = devices(opened_run)
        if args.device is not None:
            wanted = device_number(opened_run, args.device)
            found = [d for d in found if d.dev == wanted]
        names = opened_run.device_names()
        with output(args.output) as out:
            if args.json:
                document = [{"device": device_name(names, d.dev), **asdict(d)} for d in found]
                out.write((json.dumps({"schema": "opline btt 1", "devices": document}, indent=1) + "\n").encode())
            elif not found:
                out.write(b"no block requests in this run\n")
            else:
                out.write(encoded(text_lines(found, names)))
    return 0
