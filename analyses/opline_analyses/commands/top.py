# SPDX-License-Identifier: MIT
"""`opline top [INTERVAL]`: one screen of what the block layer does now."""

from __future__ import annotations

import argparse
import os
import sys

from opline.errors import UsageError
from opline_analyses.block import io_filter
from opline_analyses.commands.live import look_on

NAME = "top"
HELP = "devices, threads and the slowest I/Os now: one screen, with keys"
INTERMIXED = True  # INTERVAL also behind options
SORTS = ("ios", "bytes", "latency", "name")
EXAMPLES = """\
Devices are as in `opline live iostat -x`, exact; threads are those that queued
the I/O (name:TID). Through BPF: root, and no recording. Keys: q quits, s sorts
by the next of I/Os, bytes, latency, name; i shows all, reads, writes; / filters
by a part of a name of devices and threads (Enter ends it, Escape takes it back);
f or space freezes the screen. For a file or a pipe: `opline live iostat -x`.

examples:
  opline top
  opline top 0.5 --sort latency
  opline top -d sda -i writes
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("interval", metavar="INTERVAL", nargs="?", default="1", help="seconds between screens (1)")
    parser.add_argument("--sort", choices=SORTS, default="ios", help="by what (default: ios); s changes it")
    parser.add_argument("--duration", dest="live_duration", metavar="T", help="end after T: 10 (seconds), 5m")
    parser.add_argument("--max-loss", metavar="N", type=int, help="exit status 3 if more than N events are lost")
    io_filter.add_io_filters(parser, latency=False)
    parser.set_defaults(
        every=None,
        count=None,
        style=None,
        extended=True,
        per_device=True,
        latency=None,
        json=False,
        csv=False,
        output=None,
    )


def run(args: argparse.Namespace) -> int:
    """Shows the screen."""
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        raise UsageError("top needs a terminal: `opline live iostat -x` says the same to a file or a pipe.")
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("top needs a terminal that TERM names: `opline live iostat -x` needs none.")
    from opline_analyses.live.terminal import restore

    try:
        return look_on(args, "top")
    finally:
        restore()
