# SPDX-License-Identifier: MIT
"""``opline record``: run a command in an LTTng session and keep its trace, its output and a manifest."""

from __future__ import annotations

import argparse
from pathlib import Path

from opline.applications import table as applications
from opline.capture.lttng import recipe
from opline.capture.machine.space import parse_bytes
from opline.capture.sources.shims import shims
from opline_analyses.api.recording import Wish, record
from opline_analyses.base.quantities import seconds_given
from opline_analyses.commands.arguments import add_period, processor_share
from opline_analyses.commands.record_hosts import add_hosts
from opline_analyses.commands.vocabulary import CHOICE, FORMS

NAME = "record"
HELP = "record a command, or what runs: its events and the block layer's"
DRAWS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--since --until --class --device --host --object --latency": "all of a run is recorded; filter what reads it",
    CHOICE: "it records",
    FORMS: "it records; recording.json says what",
}
MOST = 1000
MOST_US = 60_000_000
_MOST_KEPT = 1_000_000  # chunks
EXAMPLES = (
    """\
opline record runs a command and records its system calls, its tracepoints and
the block layer's events on one clock. DIR gets trace/ (CTF), recording.json,
stdout.txt and stderr.txt. Without --model opline chooses a model afterwards.

The exit status is the command's: 128 + n after signal n. Status 3: the command
ended with 0, but the recording is incomplete (a lost source of events, a full
disk, a loss above 0.1 %). docs/capture.md has the channels, faults and cost.

examples:
  opline record -o run1 --model demo -- ./bench --seconds 10
  opline record -- ./myapp                              # its system calls, and events of opline_tp.h
  opline record --events 'myapp:*' -- ./myapp           # also its own tracepoints: opline proposes a model
  opline record --no-block --size-limit 2G -- ./myapp   # no block events; stop tracing at 2 GiB
  opline record --model syscalls -- fio job.fio
"""
    + applications.examples("record")
    + """\
  opline record --model mine.toml --pid 4711 --duration 10   # a running process, untouched
  opline record --model postgresql --comm postgres -- pgbench -c 8 bench
  opline record --model mine.toml --probe-budget 2% --pid 4711   # without probes above the budget
  opline record --measure-overhead -o cost --model demo -- ./bench --seconds 5   # with and without, in turn
  opline record --measure-overhead --figure 'tps = ([0-9.]+)' -o cost --model postgresql -- pgbench -T 10 -c 8 bench
  opline record --hosts client,store[1-3] --comm mystore -o all --model mine.toml -- ./bench   # then: stages all
  opline record -o series --repeat 5 --model demo --against './old --qd 4' -- ./new --qd 4   # then: opline compare
"""
)


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise argparse.ArgumentTypeError(f"{text}: must be 1 to {MOST}")
    return int(text)


def _kept(text: str) -> int | float:
    """A number of chunks, or a time in seconds: that has a unit."""
    if not text.isdecimal():
        return seconds_given("--keep")(text)
    if not 1 <= int(text) <= _MOST_KEPT:
        raise argparse.ArgumentTypeError(f"{text}: must be 1 to {_MOST_KEPT} chunks, or a time with its unit (10m)")
    return int(text)


def _microseconds(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_US:
        raise argparse.ArgumentTypeError(f"{text}: must be 0 to {MOST_US}")
    return int(text)


def _add_what_runs(parser: argparse.ArgumentParser) -> None:
    """What runs already and is recorded, too, and for how long."""
    parser.add_argument(
        "--pid", metavar="N", type=int, action="append", default=[],
        help="also record this running process and its descendants: calls and states",
    )  # fmt: skip
    parser.add_argument(
        "--comm", metavar="NAME", action="append", default=[], help="also record running processes of this name"
    )
    parser.add_argument(
        "--cgroup", metavar="GLOB", action="append", default=[],
        help="the same of processes in (or below) cgroups of this path or last name: '/kubepods*', nginx.service",
    )  # fmt: skip
    parser.add_argument(
        "--duration",
        metavar="T",
        type=seconds_given("--duration"),
        help="without a command: record for 10 (seconds), 5m (default: until Ctrl-C)",
    )


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    """How large the trace gets, and in which chunks."""
    parser.add_argument(
        "--size-limit", metavar="SIZE", type=_size, help="at this size of the trace, stop tracing; the command goes on"
    )
    parser.add_argument(
        "--rotate", metavar="T", type=seconds_given("--rotate"),
        help="close a chunk of the trace each T (60, 5m): closed chunks are correlated while the recording goes on",
    )  # fmt: skip
    parser.add_argument(
        "--keep", metavar="N|T", type=_kept,
        help="with --rotate: keep the last N closed chunks (10), or those of the last T (1h), and remove older ones",
    )  # fmt: skip


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``opline record``."""
    parser.usage = "opline record [options] -- COMMAND [ARGUMENT ...]"
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, help="directory to make (opline-YYYYmmdd-HHMMSS)")
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--model", metavar="M", help="op model: a name or a file (default: opline chooses)")
    add_period(model)
    parser.add_argument(
        "--events", metavar="GLOB", nargs="+", action="extend", default=[], help="these events too (PROVIDER:EVENT)"
    )
    parser.add_argument(
        "--preload", metavar="LIB", action="append",
        help=f"preload into the command: {', '.join(shims())} (opline's shim), a file, or none (default: the model's)",
    )  # fmt: skip
    parser.add_argument("--no-block", action="store_true", help="no block events, no system calls, no scheduling")
    parser.add_argument(
        "--no-states", action="store_true", help="no scheduling events (when threads ran, waited and slept)"
    )
    parser.add_argument(
        "--no-chains", action="store_true", help="scheduling events of the command alone, not of others it waits for"
    )
    parser.add_argument(
        "--stacks", metavar="US", type=_microseconds, default=200,
        help="kernel stacks of waits of at least so many microseconds (200; 0: of all)",
    )  # fmt: skip
    parser.add_argument(
        "--user-stacks", action="store_true",
        help="of these waits also the functions of the program (x86-64, Linux 5.15)",
    )  # fmt: skip
    parser.add_argument("--no-calls", action="store_true", help="without a model: no system calls")
    parser.add_argument(
        "--tcp", action="store_true", help="positions in TCP streams: `opline join` aligns hosts by them (Linux 6.16)"
    )
    _add_sizes(parser)
    parser.add_argument(
        "--repeat", metavar="N", type=_number, help="record N times: DIR/run1 ...; with --against DIR/a1 and DIR/b1 ..."
    )
    parser.add_argument(
        "--against", metavar="'COMMAND'",
        help="with --repeat: the command of side A, one argument, in turn with the command after -- (side B)",
    )  # fmt: skip
    parser.add_argument(
        "--measure-overhead", action="store_true",
        help="the cost of recording: --repeat N pairs (5) with and without, in turn; the ratio and its 95 %% interval",
    )  # fmt: skip
    parser.add_argument(
        "--figure", metavar="REGEX", action="append", default=[],
        help="with --measure-overhead: a number in the command's output, as one group: 'tps = ([0-9.]+)'",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="print only faults and losses")
    parser.add_argument("--correlate", action="store_true", help="also write the run's tables into DIR")
    parser.add_argument(
        "--sessiond", choices=("auto", "private", "system"), default="auto",
        help="session daemon: auto is the running one, else a private one",
    )  # fmt: skip
    parser.add_argument(
        "--subbuf-size", metavar="SIZE", type=_size, default=recipe.SUBBUF_BYTES,
        help="size of a sub-buffer, a power of two (4M)",
    )  # fmt: skip
    parser.add_argument(
        "--subbufs", metavar="N", type=int, default=recipe.SUBBUF_COUNT, help="sub-buffers per CPU and channel (8)"
    )
    parser.add_argument(
        "--context", metavar="NAME", action="append", default=[], help="add this context field to user-space events"
    )
    parser.add_argument(
        "--probes", "--uprobes", action="store_true",
        help="also place the model's probes on request; opline prints the cost",
    )  # fmt: skip
    parser.add_argument(
        "--program", metavar="FILE", type=Path, action="append", default=[],
        help="the file of a program in the model's probes (default: a running program, the command, PATH)",
    )  # fmt: skip
    parser.add_argument(
        "--probe-budget", metavar="N%", type=processor_share,
        help="limit the cost of the model's probes to this share of one processor: probes above it are removed",
    )  # fmt: skip
    _add_what_runs(parser)
    add_hosts(parser)
    parser.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER, help="the command and its arguments")


def run(args: argparse.Namespace) -> int:
    """Record; the command's exit status. Raises OplineError."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if args.serve:
        from opline_analyses.hosts.agent import serve

        return serve()
    if args.hosts is not None:
        from opline_analyses.commands.record_hosts import run as run_on_hosts

        return run_on_hosts(args, command)
    given = {name: getattr(args, name) for name in Wish.FIELDS if name != "command"}
    return record(Wish(command=command, **given))
