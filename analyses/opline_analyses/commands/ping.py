# SPDX-License-Identifier: MIT
"""`opline ping`: messages between hosts that are recorded, for `opline join`, which aligns clocks by messages."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from opline.errors import OplineError, UsageError
from opline.talk import talk
from opline_analyses.base.quantities import seconds_given
from opline_analyses.commands.common import file_path
from opline_analyses.commands.vocabulary import CHOICE, FILTERS, FORMS

if TYPE_CHECKING:
    from opline.capture.machine.signals import Signals

NAME = "ping"
HELP = "pings between hosts while they are recorded, for `opline join`"
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    f"{FILTERS} {CHOICE} {FORMS}": "it writes a file for `opline join`",
}
EXAMPLES = """\
`opline join` aligns the clocks of hosts by messages between the hosts. If
programs send few messages, send pings: bursts of 8 messages by UDP, ten bursts
a second. `opline record --hosts` does so without this command.

On one host `opline ping --serve` prints an address, a port and a key. On the
other host `opline ping -o FILE` with the printed text writes the times of the
pings. FILE is pings.csv in the folder of the recording there. Ctrl-C ends both.

Exit status: 0, also after Ctrl-C; 3 if a host has not answered.

examples:
  server$ opline ping --serve
  server:41234/0f3c...
  client$ opline ping -o client/pings.csv server:41234/0f3c...
  client$ opline join -o all client server
"""
_LOOK_S = 0.2  # how long a signal may wait for the one who answers
INCOMPLETE = 3


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("peers", metavar="HOST:PORT/KEY", nargs="*", help="what `opline ping --serve` printed there")
    parser.add_argument("-o", "--output", metavar="FILE", type=file_path, help="a new file: RUN/pings.csv")
    parser.add_argument("--serve", action="store_true", help="answer pings, and print where")
    parser.add_argument("--address", metavar="A", help="with --serve: answer at this address only, and print it")
    parser.add_argument(
        "--port", metavar="N", type=_port, default=0, help="with --serve: this UDP port (default: a free one)"
    )
    parser.add_argument(
        "--duration", metavar="T", type=seconds_given("--duration"), help="end after this time (10, 500ms, 5m)"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise UsageError(f"--port {text}: a number from 1 to 65535 is wanted.")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Sends or answers pings until a signal, or the time is over."""
    from opline.capture.machine.signals import Signals

    if args.serve and (args.peers or args.output):
        raise UsageError("--serve answers pings: leave out -o and HOST:PORT/KEY.")
    if not args.serve and not (args.peers and args.output):
        raise UsageError("ping needs a file and a host: opline ping -o RUN/pings.csv HOST:PORT/KEY, or --serve.")
    if not args.serve and (args.port or args.address):
        raise UsageError("--port and --address are for --serve.")
    signals = Signals()
    until_s = None if args.duration is None else time.monotonic() + args.duration
    with signals.blocked():
        return _serve(args, signals, until_s) if args.serve else _send(args, signals, until_s)


def _goes_on(signals: Signals, until_s: float | None) -> bool:
    return signals.ending is None and (until_s is None or time.monotonic() < until_s)


def _serve(args: argparse.Namespace, signals: Signals, until_s: float | None) -> int:
    import socket

    from opline.capture.machine.pings import Answerer

    answerer = Answerer(args.address or "", args.port)
    with contextlib.closing(answerer):
        port, key = answerer.place()
        sys.stdout.write(f"{args.address or socket.gethostname()}:{port}/{key}\n")
        sys.stdout.flush()
        while _goes_on(signals, until_s):
            answerer.answer(_LOOK_S)
            signals.wait(0)
    return 0


def _send(args: argparse.Namespace, signals: Signals, until_s: float | None) -> int:
    from opline.capture.machine.pings import Peer, Pinger, write_pings
    from opline.folder import TRACERS, Folder

    path = Path(args.output)
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists: remove it, or choose another name.")

    def going_on(patience_s: float) -> bool:
        signals.wait(patience_s if until_s is None else max(0.0, min(patience_s, until_s - time.monotonic())))
        return _goes_on(signals, until_s)

    peers = [Peer.of(text) for text in args.peers]
    whole = True
    with contextlib.ExitStack() as stack:
        pingers = []
        for peer in peers:
            try:
                pingers.append(stack.enter_context(contextlib.closing(Pinger(peer))))
            except OplineError as error:
                if len(peers) == 1:
                    raise
                talk(f"warning: {error.message}")
                whole = False
        if not pingers:
            raise OplineError("No pings: none of the addresses exists.")
        try:
            with Folder(path.parent) as folder:
                descriptor = folder.create(path.name, TRACERS, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise OplineError(f"Cannot write {path}: {error.strerror}.") from error
        stack.callback(os.close, descriptor)
        write_pings(pingers, descriptor, going_on)
    for peer in (pinger.peer for pinger in pingers if not pinger.answered):
        talk(f"warning: {peer.address} has not answered pings (UDP port {peer.port}): a firewall, or a wrong address?")
        whole = False
    return 0 if whole else INCOMPLETE
