# SPDX-License-Identifier: MIT
"""`opline join -o CLUSTER RUN RUN`: recordings of several hosts on one clock, as one run."""

from __future__ import annotations

import argparse

from opline.errors import UsageError
from opline_analyses.commands.common import file_path, write_text
from opline_analyses.commands.vocabulary import CHOICE, FILTERS

NAME = "join"
HELP = "recordings of several hosts on one clock, as one run"
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    f"{FILTERS} {CHOICE}": "whole recordings are joined; filter what reads the cluster",
    "--csv --json": "it writes a run; `opline hosts` has the table",
}
EXAMPLES = """\
The messages between the hosts align the clocks; the op model names the points
that send and receive (`message`). CLUSTER is a run of all hosts, on the clock
of the first. Each time of another host has a bound (`opline hosts`).

opline never aligns hosts by wall clocks. A host without messages in both
directions stays out, as does a host whose recording is missing or unreadable.
opline names such a host, here and in each command that reads CLUSTER: exit
status 3. Exit status 1: contradicting messages, or fewer than two hosts left.

examples:
  opline join -o all client server
  opline join -o all client=run1 server=run2 --clock-rate-limit 10
  opline stages all
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("-o", "--output", metavar="CLUSTER", type=file_path, required=True, help="a new folder")
    parser.add_argument(
        "recordings",
        metavar="RUN",
        nargs="+",
        help="a recording, a run or a trace of one host; NAME=RUN gives the host another name",
    )
    parser.add_argument("--model", metavar="M", help="the op model of all (default: that of the recordings)")
    parser.add_argument("--reference", metavar="HOST", help="the host whose clock all times have (default: the first)")
    parser.add_argument(
        "--clock-rate-limit",
        metavar="PPM",
        type=_ppm,
        help="how far a clock's rate may be from the fitted one, in millionths (default: 10 if both hosts recorded "
        "their clocks, else 500 without a fit)",
    )


def _ppm(text: str) -> float:
    try:
        ppm = float(text)
    except ValueError as error:
        raise UsageError(f"--clock-rate-limit {text}: a number of millionths is wanted, such as 10.") from error
    if not 0 < ppm <= 1000:
        raise UsageError(f"--clock-rate-limit {text}: must lie between 0 and 1000 ppm.")
    return ppm


def run(args: argparse.Namespace) -> int:
    """Makes the cluster, and prints its hosts."""
    from opline.cluster.join import Options, join
    from opline_analyses.hosts.cluster import host_table, is_whole
    from opline_analyses.runs.cluster import read_cluster

    join(args.output, args.recordings, Options(args.model, args.reference, args.clock_rate_limit))
    cluster = read_cluster(args.output)
    write_text(None, host_table(cluster).parts())
    return 0 if is_whole(cluster) else 3
