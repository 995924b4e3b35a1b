# SPDX-License-Identifier: MIT
"""`opline hosts CLUSTER`: the hosts' clocks against each other, and how sure that is."""

from __future__ import annotations

import argparse

from opline_analyses.commands.common import add_form, file_path, write
from opline_analyses.commands.vocabulary import FILTERS

NAME = "hosts"
HELP = "the hosts of a cluster: clock offset, rate, bound, messages"
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    FILTERS: "it is about clocks",
    "--slowest --limit": "a row is a host, and a cluster has few",
}
EXAMPLES = """\
offset: the host's clock minus that of the reference, in the middle of the
recording. rate: how much faster the host's clock runs. bound: how far a time
of this host may be from the truth on the reference's clock, half of the time
(p50) and at most. The bound holds if no rate changes by more than the limit.
unpaired: messages without a partner. ambiguous: messages that two hosts could
have received. contradicting: messages with an arrival before the sending;
opline leaves them out.

examples:
  opline hosts all
  opline hosts all --json
  opline hosts all --plot bound.svg
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("cluster", metavar="CLUSTER", type=file_path, help="a folder that `opline join` made")
    parser.add_argument("--plot", metavar="FILE", type=file_path, help="the bounds over time, as PNG or SVG")
    parser.add_argument("--sort", dest="column", metavar="COLUMN", help="order of the hosts: a column of --csv")
    add_form(parser, csv="CSV, a row per host", json="JSON: what cluster.json has")


def run(args: argparse.Namespace) -> int:
    """Prints the hosts and the pairs of hosts."""
    from opline_analyses.hosts.cluster import host_table
    from opline_analyses.runs.cluster import read_cluster

    cluster = read_cluster(args.cluster)
    if args.plot is not None:
        from opline_analyses.hosts.plot import plot_bounds

        plot_bounds(args.cluster, args.plot)
        return 0
    write(args, host_table(cluster))
    return 0
