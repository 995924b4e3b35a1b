# SPDX-License-Identifier: MIT
"""`opline record --hosts`: the options, and what they mean to `opline_analyses.hosts.together`."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from opline.errors import OplineError, UsageError
from opline.talk import talk

_ONE = {"repeat": "--repeat", "against": "--against", "measure_overhead": "--measure-overhead", "figure": "--figure"}
_ONE |= {"duration": "--duration", "correlate": "--correlate", "program": "--program"}
_WITH_VALUE = ("model", "stacks", "size_limit", "rotate", "sessiond", "subbuf_size", "subbufs")
_FLAGS = ("no_block", "no_states", "no_chains", "user_stacks", "no_calls", "tcp", "quiet", "probes")


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """The options."""
    group = parser.add_argument_group("several hosts, by ssh")
    group.add_argument(
        "--hosts", metavar="LIST",
        help="record on all of client,store[1-3]: the command runs on the first, until its end; then opline joins them",
    )  # fmt: skip
    group.add_argument(
        "--on", metavar="HOST='COMMAND'", action="append", default=[],
        help="what to run on another host; without: --comm, --pid, --cgroup name what runs there",
    )  # fmt: skip
    group.add_argument("--leave", metavar="DIR", help="leave the recordings on the hosts, in DIR/HOST")
    add_remote(group)
    group.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)


def add_remote(group: argparse._ActionsContainer) -> None:
    """--remote."""
    group.add_argument("--remote", metavar="PROGRAM", default="opline", help="opline on the hosts (default: opline)")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _arguments(args: argparse.Namespace) -> list[str]:
    """What every host is given, as on its command line."""
    found = [_option(name) for name in _FLAGS if getattr(args, name)]
    for name in _WITH_VALUE:
        if (value := getattr(args, name)) is not None:
            period = name == "model" and str(value).startswith("period:")
            found += ["--period", str(value)[7:]] if period else [_option(name), str(value)]
    if args.probe_budget is not None:
        found += ["--probe-budget", f"{args.probe_budget * 100:g}%"]
    for name in ("preload", "context"):
        found += [word for value in getattr(args, name) or () for word in (_option(name), value)]
    return found + [word for value in args.events for word in ("--events", value)]


def run(args: argparse.Namespace, command: list[str]) -> int:
    """Records on the hosts and joins what came home. The exit status: the command's; 3 if that is 0 and a host is
    missing. Raises OplineError.
    """
    from opline_analyses.hosts.nodes import name_of, nodes
    from opline_analyses.hosts.together import Together, record_together

    for name, option in _ONE.items():
        if getattr(args, name):
            raise UsageError(f"{option} records on one host: leave out --hosts, or {option}.")
    if not command:
        raise UsageError("No command for the first host: opline record --hosts LIST [options] -- COMMAND.")
    if args.output is None and args.leave is None:
        raise UsageError("--hosts makes a cluster: name it with -o CLUSTER.")
    cluster = args.output or Path("cluster")
    home = cluster.with_name(f"{cluster.name}.hosts")
    if args.leave is None and (taken := next((p for p in (cluster, home) if p.exists() or p.is_symlink()), None)):
        raise UsageError(f"{taken} exists: remove it, or choose another name.")
    commands = {}
    for text in args.on:
        host, equals, words = text.partition("=")
        if not equals or not words.strip():
            raise UsageError(f"--on {text}: HOST='COMMAND' is wanted.")
        commands[host] = shlex.split(words)
    attached = [w for name in ("pid", "comm", "cgroup") for v in getattr(args, name) for w in (_option(name), str(v))]
    hosts = nodes(args.hosts)
    wish = Together(hosts, command, _arguments(args), attached, commands, shlex.split(args.remote), args.leave)
    found = record_together(wish, home)
    first = name_of(hosts[0])
    if args.leave is not None:
        for name, place in found.places.items():
            talk(f"{name}: its recording is in {place}")
        whole = True
    else:
        if first in found.places:
            output = Path(found.places[first]) / "stdout.txt"
            sys.stdout.write(output.read_text(errors="replace") if output.exists() else "")
            sys.stdout.flush()
        gone = {name: str(home / name) for name in found.failed if name not in found.places}
        whole = _join(cluster, {**found.places, **gone}, args.model)
    return found.status or (0 if whole and not found.failed else 3)


def _join(cluster: Path, places: dict[str, str], model: str | None) -> bool:
    """Makes the cluster of what came home, and says its hosts; whether all of them are in it. Raises OplineError; the
    recordings stay.
    """
    where = next(iter(places.values())).rpartition("/")[0]
    if len(places) < 2:
        raise OplineError(f"One host alone has recorded, so there is no cluster: its recording is in {where}.", 3)
    from opline_analyses.commands.common import write_text
    from opline_analyses.hosts.cluster import host_table, is_whole
    from opline_analyses.runs.cluster import read_cluster

    try:
        from opline.cluster.join import Options, join

        join(cluster, [f"{name}={place}" for name, place in places.items()], Options(model))
    except ImportError as error:
        talk(f"the recordings are in {where}; this machine, which only records, cannot join them ({error})")
        return True
    except OplineError as error:
        talk(f"the recordings are in {where}")
        raise OplineError(error.message, error.exit_code) from error
    found = read_cluster(cluster)
    write_text(None, host_table(found).parts())
    return is_whole(found)
