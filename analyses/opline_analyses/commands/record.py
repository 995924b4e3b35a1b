# SPDX-License-Identifier: MIT
"""``opline record``: run a command in an LTTng session and keep its trace, its output and a manifest."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from opline.capture import preload, recipe
from opline.capture.options import Options
from opline.capture.record import Recorder
from opline.capture.space import parse_bytes
from opline.capture.summary import summary_lines
from opline.errors import UsageError
from opline.talk import talk

NAME = "record"
HELP = "record a command: its events and the block layer's"
EXAMPLES = """\
examples:
  opline record -o run1 --model demo -- ./bench --seconds 10
  opline record --events 'myapp:*' -- ./myapp           # no model: choose the events
  opline record --no-block --size-limit 2G -- ./myapp   # no block events; stop tracing at 2 GiB
  opline record --model syscalls -- fio job.fio
  opline record --model ceph -- rados -p bench bench 10 write -b 4096   # preloads the shim
  opline record --model ceph --uprobes -- rados -p bench bench 10 write

DIR gets trace/ (CTF), recording.json, stdout.txt and stderr.txt. The exit status is the command's own (128 + n if
signal n ended it, 130 after Ctrl-C). docs/capture.md says what is captured, how, and at what cost.
"""


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``opline record``."""
    parser.usage = "opline record [options] -- COMMAND [ARGUMENT ...]"
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, help="directory to make (opline-YYYYmmdd-HHMMSS)")
    parser.add_argument("--model", metavar="M", help="op model that names the application's events: a name or a file")
    parser.add_argument(
        "--events", metavar="GLOB", nargs="+", action="extend", default=[], help="record these user-space events too"
    )
    parser.add_argument(
        "--preload", metavar="LIB", action="append",
        help="preload into the command: ceph (opline's shim), a file, or none (default: what the model says)",
    )  # fmt: skip
    parser.add_argument("--no-block", action="store_true", help="no block events, no system calls, no scheduling")
    parser.add_argument(
        "--size-limit", metavar="SIZE", type=_size, help="stop tracing, not the command, at this size of the trace"
    )
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
        "--uprobes", action="store_true",
        help="probe functions of the running ceph-osd: its inner stages, at a cost that is measured and said",
    )  # fmt: skip
    parser.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER, help="the command and its arguments")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads standard error any more: the recording matters more
        talk(line)
        sys.stderr.flush()


def run(args: argparse.Namespace) -> int:
    """Record; the command's exit status. Raises OplineError."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UsageError("No command to record: opline record [options] -- COMMAND [ARGUMENT ...]")
    if args.correlate and args.model is None:
        raise UsageError("--correlate needs --model: it says what the application's events mean.")
    model = None
    if args.model is not None:
        from opline.model import load_model

        model = load_model(args.model)
    directory = args.output or Path(time.strftime("opline-%Y%m%d-%H%M%S"))
    recorder = Recorder(
        Options(
            command=command,
            directory=directory,
            model=model,
            model_argument=_argument(args.model),
            globs=[glob for text in args.events for glob in text.split(",") if glob],
            preload=preload.find(_libraries(args.preload, model.preload if model else ())),
            block=not args.no_block,
            sessiond=args.sessiond,
            size_limit=args.size_limit,
            subbuf_bytes=args.subbuf_size,
            subbuf_count=args.subbufs,
            uprobes=args.uprobes,
            contexts=tuple(dict.fromkeys((*recipe.APP_CONTEXTS, *args.context))),
        ),
        _say,
    )
    code = recorder.run()
    if recorder.recording is None or recorder.recording.state != "complete":
        return code  # interrupted before the command could start: nothing is left
    for line in summary_lines(recorder.recording, directory):
        _say(line)
    if args.correlate and recorder.recording.event_count() != 0:
        from opline.store.run import open_or_correlate

        with open_or_correlate(directory):
            pass
    return code


def _libraries(given: list[str] | None, of_model: Sequence[str]) -> Sequence[str]:
    """What to preload: what is asked for, else what the model says. ``none`` takes back what stands before it."""
    names = list(of_model if given is None else given)
    return names[len(names) - names[::-1].index("none") :] if "none" in names else names


def _argument(model: str | None) -> str:
    """What finds the model again from anywhere: a shipped model's name, or an absolute path."""
    if model is None:
        return ""
    # As in load_model(): a file named like a shipped model (./demo) is not meant.
    return str(Path(model).absolute()) if model.endswith(".toml") or "/" in model else model
