# SPDX-License-Identifier: MIT
"""``opline record``: run a command in an LTTng session and keep its trace, its output and a manifest."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opline.capture.ceph import preload
from opline.capture.lttng import recipe
from opline.capture.machine.space import parse_bytes
from opline.capture.recorder.options import Options
from opline.capture.recorder.record import Recorder
from opline.capture.recorder.summary import summary_lines
from opline.errors import OplineError, UsageError
from opline.talk import talk
from opline_analyses.base.period import add_period
from opline_analyses.base.quantities import processor_share
from opline_analyses.base.series import Turn, closing_lines, command_ns, make_directory, plan, turns_of_pairs

if TYPE_CHECKING:
    from opline.model import Model

NAME = "record"
HELP = "record a command, or what runs: its events and the block layer's"
MOST = 1000
EXAMPLES = """\
examples:
  opline record -o run1 --model demo -- ./bench --seconds 10
  opline record --events 'myapp:*' -- ./myapp           # no model: choose the events
  opline record --no-block --size-limit 2G -- ./myapp   # no block events; stop tracing at 2 GiB
  opline record --model syscalls -- fio job.fio
  opline record --model ceph -- rados -p bench bench 10 write -b 4096   # preloads the shim
  opline record --model ceph --probes -- rados -p bench bench 10 write   # inside the OSD
  opline record --model mine.toml --pid 4711 --duration 10   # what runs already, untouched
  opline record --model postgresql --comm postgres -- pgbench -c 8 bench
  opline record --model mine.toml --probe-budget 2% --pid 4711   # but no probe that is too hot
  opline record --measure-overhead -o cost --model demo -- ./bench --seconds 5   # with and without, in turn
  opline record --measure-overhead --figure 'tps = ([0-9.]+)' -o cost --model postgresql -- pgbench -T 10 -c 8 bench
  opline record -o series --repeat 5 --model demo --against './old --qd 4' -- ./new --qd 4   # then: opline compare

DIR gets trace/ (CTF), recording.json, stdout.txt and stderr.txt. The exit
status is the command's own (128 + n if signal n ended it, 130 after Ctrl-C),
but 3 if the command ended with 0 and something is missing because a daemon died
or the disk was full. docs/capture.md says what is captured, how, and at what
cost.
"""


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise argparse.ArgumentTypeError(f"{text}: must be 1 to {MOST}")
    return int(text)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``opline record``."""
    parser.usage = "opline record [options] -- COMMAND [ARGUMENT ...]"
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, help="directory to make (opline-YYYYmmdd-HHMMSS)")
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--model", metavar="M", help="op model that names the application's events: a name or a file")
    add_period(model)
    parser.add_argument(
        "--events", metavar="GLOB", nargs="+", action="extend", default=[], help="record these user-space events too"
    )
    parser.add_argument(
        "--preload", metavar="LIB", action="append",
        help="preload into the command: ceph (opline's shim), a file, or none (default: what the model says)",
    )  # fmt: skip
    parser.add_argument("--no-block", action="store_true", help="no block events, no system calls, no scheduling")
    parser.add_argument(
        "--no-states", action="store_true", help="no scheduling: not when threads ran, waited and slept"
    )
    parser.add_argument(
        "--size-limit", metavar="SIZE", type=_size, help="stop tracing, not the command, at this size of the trace"
    )
    parser.add_argument(
        "--repeat", metavar="N", type=_number, help="record N times: DIR/run1 ...; with --against DIR/a1 and DIR/b1 ..."
    )
    parser.add_argument(
        "--against", metavar="'COMMAND'",
        help="with --repeat: another command (A; the one after -- is B), in turn with it; one argument, as in a shell",
    )  # fmt: skip
    parser.add_argument(
        "--measure-overhead", action="store_true",
        help="what recording costs: --repeat N rounds (5) with and without it in turn, their ratio and how sure it is",
    )  # fmt: skip
    parser.add_argument(
        "--figure", metavar="REGEX", action="append", default=[],
        help="with --measure-overhead: the number that the command prints there, as one group: 'tps = ([0-9.]+)'",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="say nothing but what went wrong, or is missing")
    parser.add_argument("--correlate", action="store_true", help="correlate at once and put the run's tables beside")
    parser.add_argument(
        "--sessiond", choices=("auto", "private", "system"), default="auto",
        help="session daemon: the running one, else a private one (auto)",
    )  # fmt: skip
    parser.add_argument(
        "--subbuf-size", metavar="SIZE", type=_size, default=recipe.SUBBUF_BYTES,
        help="size of a sub-buffer, a power of two (4M)",
    )  # fmt: skip
    parser.add_argument(
        "--subbufs", metavar="N", type=int, default=recipe.SUBBUF_COUNT, help="sub-buffers per CPU and channel (8)"
    )
    parser.add_argument(
        "--context", metavar="NAME", action="append", default=[], help="one more context field on user-space events"
    )
    parser.add_argument(
        "--probes", "--uprobes", action="store_true",
        help="place the probes, too, that the model has on request only (ceph: inside the OSD, at a cost that is said)",
    )  # fmt: skip
    parser.add_argument(
        "--program", metavar="FILE", type=Path, action="append", default=[],
        help="the file of a program that the model's probes name (default: what runs, the command, PATH)",
    )  # fmt: skip
    parser.add_argument(
        "--probe-budget", metavar="N%", type=processor_share,
        help="what the hits of the model's probes may cost, of one processor's time: too hot a probe is removed",
    )  # fmt: skip
    parser.add_argument(
        "--pid", metavar="N", type=int, action="append", default=[],
        help="this process and its descendants too, which run already: their calls and states",
    )  # fmt: skip
    parser.add_argument(
        "--comm", metavar="NAME", action="append", default=[], help="the same of processes of that name"
    )
    parser.add_argument(
        "--duration", metavar="SECONDS", type=float, help="without a command: how long (default: until Ctrl-C)"
    )
    parser.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER, help="the command and its arguments")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads standard error any more: the recording matters more
        talk(line)
        sys.stderr.flush()


def run(args: argparse.Namespace) -> int:
    """Record; the command's exit status. Raises OplineError."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    attached = bool(args.pid or args.comm)
    if not command and not attached:
        raise UsageError(
            "No command to record: opline record [options] -- COMMAND [ARGUMENT ...], or --pid N, --comm NAME."
        )
    if args.duration is not None and (command or not args.duration > 0):
        raise UsageError("--duration is a number of seconds above 0, for --pid or --comm without a command.")
    if args.correlate and args.model is None:
        raise UsageError("--correlate needs --model: it says what the application's events mean.")
    model = None
    if args.model is not None:
        from opline.model import load_model, shipped_models

        model = load_model(args.model)
        if args.preload is None and model.preload and args.model not in shipped_models():
            libraries = ", ".join(model.preload)
            _say(f"note: the model {args.model} has {libraries} loaded into the command; --preload none leaves it out")
        placed = model.placed_probes(args.probes)
        if placed and args.model not in shipped_models():
            programs = ", ".join(dict.fromkeys(probe.program or "the kernel" for probe in placed))
            _say(f"note: the model {args.model} places probes in {programs}")
    if args.probes and not (model and model.probes):
        raise UsageError("--probes is for models with [probes].")
    if args.probe_budget is not None and not (model and model.placed_probes(args.probes)):
        on_request = "; this one places them with --probes" if model and model.probes else ""
        raise UsageError(f"--probe-budget is for models with [probes]{on_request}.")
    directory = args.output or Path(time.strftime("opline-%Y%m%d-%H%M%S"))
    if args.figure and not args.measure_overhead:
        raise UsageError("--figure is what --measure-overhead looks for in the command's output.")
    if args.measure_overhead:
        return _measure_overhead(args, command, model, directory)
    if args.repeat is None:
        if args.against is not None:
            raise UsageError("--against needs --repeat N: how often each of the two commands is recorded.")
        return _record(args, command, model, directory)
    if args.against is not None and not command:
        raise UsageError("--against compares two commands: name the other one after --.")
    return _repeat(args, command, model, directory)


def _repeat(args: argparse.Namespace, command: list[str], model: Model | None, directory: Path) -> int:
    """All recordings of --repeat, in a directory; ends with the first that does not end with 0. The exit status."""
    turns = plan(command, args.against, args.repeat)
    make_directory(directory)
    for n, turn in enumerate(turns, 1):
        _say(f"recording {n} of {len(turns)}: {directory / turn.name}")
        if code := _record(args, turn.command, model, directory / turn.name):
            _say(f"{directory / turn.name} ended with status {code}: the {len(turns) - n} after it are not recorded")
            return code
    for line in closing_lines(directory, args.against is not None):
        _say(line)
    return 0


def _measure_overhead(args: argparse.Namespace, command: list[str], model: Model | None, directory: Path) -> int:
    """Pairs of one recorded and one plain run, either first by lot; one plain run before is not counted. The status."""
    from opline_analyses.compare import overhead

    if not command or args.against is not None or args.repeat == 1:
        raise UsageError("--measure-overhead needs one command, and at least two rounds (--repeat N).")
    try:
        figures = overhead.figures_of(args.figure)
    except ValueError as error:
        raise UsageError(f"--figure {error}.") from error
    count = args.repeat or overhead.ROUNDS
    make_directory(directory)
    rounds: list[overhead.Round] = []
    turns = [Turn("warm-up", command), *turns_of_pairs("plain", "run", command, command, count)]
    for n, turn in enumerate(turns):
        place = directory / turn.name
        recorded = turn.name.startswith("run")
        _say(f"round {n} of {len(turns) - 1}, {'recorded' if recorded else 'not recorded'}: {place}")
        if recorded:
            code, time_ns = _record(args, command, model, place, quiet=True), command_ns(place)
        else:
            code, time_ns = overhead.run_plain(command, place)
        if code:
            _say(f"{place} ended with status {code}: the {len(turns) - 1 - n} after it are not run")
            return code
        if n:
            rounds.append(overhead.round_of(place, recorded, time_ns, figures))
        elif missing := [one.pattern.pattern for one in figures if one.of(place) is None]:
            raise OplineError(f"{place} has no number in what the command printed that --figure {missing[0]!r} finds")
    (directory / overhead.FILE).write_text(json.dumps(overhead.document(rounds), indent=1) + "\n")
    for line in overhead.lines(rounds):
        _say(line)
    return 0


def _record(
    args: argparse.Namespace, command: list[str], model: Model | None, directory: Path, quiet: bool = False
) -> int:
    """One recording; the command's exit status. ``quiet``: what it came to is not looked at."""
    recorder = Recorder(
        Options(
            command=command,
            directory=directory,
            any_name=args.output is None and args.repeat is None and not args.measure_overhead,
            model=model,
            model_argument=_argument(args.model),
            globs=[glob for text in args.events for glob in text.split(",") if glob],
            preload=preload.find(_libraries(args.preload, model.preload if model else ())),
            block=not args.no_block,
            states=not args.no_states,
            sessiond=args.sessiond,
            size_limit=args.size_limit,
            subbuf_bytes=args.subbuf_size,
            subbuf_count=args.subbufs,
            probes=args.probes,
            programs=[path.resolve() for path in args.program],
            probe_budget=args.probe_budget,
            pids=args.pid,
            comms=args.comm,
            duration_s=args.duration,
            contexts=tuple(dict.fromkeys((*recipe.APP_CONTEXTS, *args.context))),
        ),
        _say,
    )
    code = recorder.run()
    if recorder.recording is None or recorder.recording.state == "recording":
        return code  # interrupted before the command could start: nothing is left
    shown = directory.with_name(recorder.directory.name)
    events = recorder.recording.event_count()
    for line in summary_lines(recorder.recording, shown):
        if not args.quiet or line.startswith("warning: "):
            _say(line)
    if events != 0 and not (quiet or args.quiet):
        for line in _first_look(shown, model, events, with_next=args.repeat is None):
            _say(line)
    if args.correlate and events != 0:
        from opline.store.run import open_or_correlate

        with open_or_correlate(shown):
            pass
    return code


def _first_look(directory: Path, model: Model | None, events: int | None, *, with_next: bool) -> list[str]:
    """What the recording came to and what to type next. A machine that only records has nothing to count ops with."""
    try:
        from opline_analyses.client.glance import glance_lines, next_lines

        lines = list(glance_lines(directory, model, events)) if model else []
        return [*lines, *(next_lines(directory, model is not None) if with_next else ())]
    except ImportError as error:
        return [f"ops are not counted on this machine, which only records ({error}): take the directory to another one"]


def _libraries(given: list[str] | None, of_model: Sequence[str]) -> Sequence[str]:
    """What to preload: what is asked for, else what the model says. ``none`` takes back what stands before it."""
    names = list(of_model if given is None else given)
    return names[len(names) - names[::-1].index("none") :] if "none" in names else names


def _argument(model: str | None) -> str:
    """What finds the model again from anywhere: a shipped model's name, or an absolute path."""
    if model is None:
        return ""
    # As in load_model(): a file named like a shipped model (./demo) is not meant.
    is_file = (model.endswith(".toml") or "/" in model) and not model.startswith("period:")
    return str(Path(model).absolute()) if is_file else model
