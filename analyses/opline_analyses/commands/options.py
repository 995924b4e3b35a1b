# SPDX-License-Identifier: MIT
"""The options of the vocabulary (vocabulary.py), each declared here and nowhere else, and the values that they were
given.
"""

from __future__ import annotations

import argparse

from opline_analyses.base.filters import major_of
from opline_analyses.block.io_filter import IoFilters
from opline_analyses.block.io_sources import SOURCES
from opline_analyses.commands.arguments import positive
from opline_analyses.runs.selection import ORDERS, OpFilters


def add_device(group: argparse._ActionsContainer) -> None:
    """-d and -m."""
    group.add_argument(
        "-d",
        "--device",
        metavar="D",
        action="append",
        help="sda, sda1, 8:0, 8,0 or '8:*'; '!sda': others; may be given again",
    )
    group.add_argument(
        "-m", "--major", metavar="N", dest="device", type=_all_of_major, action="append", help="the same as -d 'N:*'"
    )


def add_size(group: argparse._ActionsContainer) -> None:
    """--size."""
    group.add_argument("--size", metavar="S", help="bytes: 8k, '>64k', 4k..64k")


def add_threads(group: argparse._ActionsContainer, whose: str) -> None:
    """-n, -p and --tid. ``whose``: what the thread has to do with what is meant."""
    group.add_argument("-n", "--comm", metavar="GLOB", action="append", help=f"{whose} a thread of this name (fio*)")
    group.add_argument("-p", "--pid", metavar="N", type=int, action="append", help="of this process")
    group.add_argument("--tid", metavar="N", type=int, action="append", help=f"{whose} this thread")


def add_owners(group: argparse._ActionsContainer, whose: str) -> None:
    """--cgroup and --object. ``whose``: what the thread has to do with what is meant."""
    group.add_argument(
        "--cgroup",
        metavar="GLOB",
        action="append",
        help=f"{whose} a thread in this cgroup or below, by path or name ('/kubepods*', 'docker 4f2a*', nginx.service)",
    )
    group.add_argument("--object", metavar="GLOB", action="append", help="of ops on this object: '/var/lib/mysql/*'")


def add_latency(group: argparse._ActionsContainer, of: str = "") -> None:
    """--latency."""
    group.add_argument("--latency", metavar="L", help=f"{of}'>5ms', '<100us', 1ms..2ms; a number alone is in us")


def add_times(group: argparse._ActionsContainer, verb: str, at: str = "the middle of --window") -> None:
    """--since and --until, and their other forms. ``verb``: what happens then; ``at``: what --at alone is."""
    group.add_argument(
        "--since", metavar="T", help=f"that {verb} at T or later: 9.5 (seconds) or 10ms from the first event, "
        "or absolute ns",
    )  # fmt: skip
    group.add_argument("--until", metavar="T", help=f"that {verb} before T")
    group.add_argument(
        "--window", metavar="W", help="--since and --until in one: 153:155 (seconds), or 10ms around --at"
    )
    group.add_argument("--at", metavar="T", help=at)


def _all_of_major(text: str) -> str:
    if major_of(found := f"{text}:*") is None:
        raise argparse.ArgumentTypeError(f"{text} is no major number")
    return found


def add_host(group: argparse._ArgumentGroup, of: str) -> None:
    """--host. ``of``: which ops or I/Os are a host's."""
    group.add_argument("--host", metavar="H", action="append", help=f"{of} this host, in a joined run")


def add_sort(parser: argparse.ArgumentParser) -> None:
    """--sort."""
    parser.add_argument(
        "--sort", choices=sorted(ORDERS), help="order: begin (default), end, latency, size; the largest first"
    )


def add_slowest(parser: argparse._ActionsContainer, of: str = "complete ops, slowest first") -> None:
    """--slowest."""
    parser.add_argument("--slowest", metavar="N", type=positive, help=f"the N slowest {of}")


def add_filters(parser: argparse.ArgumentParser, latency: bool = True) -> None:
    """The filters of all commands that are about ops. ``latency``: --latency."""
    group = parser.add_argument_group("which ops (all may be combined)")
    group.add_argument("--class", dest="op_class", metavar="C", action="append", help="of this class; all: of any")
    add_device(group)
    add_size(group)
    add_threads(group, "begun by")
    add_owners(group, "begun by")
    add_host(group, "begun on")
    add_times(group, "begin", "ops in flight at T; with --window its middle")
    if latency:
        add_latency(group, "complete ops that take so long: ")


def add_tainted(parser: argparse.ArgumentParser) -> None:
    """--tainted."""
    parser.add_argument("--tainted", action="store_true", help="count ops that overlap lost events too")


def add_which(parser: argparse.ArgumentParser) -> None:
    """Which single ops."""
    parser.add_argument(
        "--op", metavar="ID", type=int, action="append", help="only the op with this op_id; may be given again"
    )
    add_slowest(parser)
    parser.add_argument("--limit", metavar="N", type=positive, help="stop after N ops")


def add_io_filters(parser: argparse.ArgumentParser, sources: bool = True, latency: bool = True) -> None:
    """The options. ``sources``: --of, --from and --to; ``latency``: --latency."""
    group = parser.add_argument_group("which I/Os (all may be combined)")
    add_device(group)
    add_host(group, "at a device of")
    group.add_argument(
        "-i",
        "--io",
        metavar="TYPE",
        action="append",
        help="reads, writes, flushes, discards, or a pattern of rwbs flags ('*R*'); may be given again",
    )
    add_size(group)
    add_threads(group, "queued by")
    add_owners(group, "queued by")
    group.add_argument(
        "--class", dest="op_class", metavar="C", action="append", help="of ops of this class; all: of any"
    )
    if latency:
        add_latency(group)
    add_times(group, "ended")
    if sources:
        group.add_argument(
            "--of", choices=SOURCES, default="requests", help="what is counted (default: requests, the block layer's)"
        )
        group.add_argument("--stage", metavar="NAME", action="append", help="with --of stages: only this stage")
        group.add_argument("--from", dest="start", metavar="POINT", help="queue, getrq, insert or issue (default)")
        group.add_argument("--to", dest="end", metavar="POINT", help="getrq, insert, issue, complete (default) or end")
        group.add_argument("-Q", dest="start", action="store_const", const="insert", help="the same as --from insert")
        group.add_argument("--tainted", action="store_true", help="count ops that overlap lost events too")


def op_filters(args: argparse.Namespace) -> OpFilters:
    """What ``add_filters``, ``add_which`` and ``add_sort`` were given."""
    return OpFilters(**{name: value for name in OpFilters.FIELDS if (value := getattr(args, name, None)) is not None})


def io_filters(args: argparse.Namespace) -> IoFilters:
    """What ``add_io_filters`` was given."""
    return IoFilters(**{name: value for name in IoFilters.FIELDS if (value := getattr(args, name, None)) is not None})
