# SPDX-License-Identifier: MIT
"""`opline record --hosts`: records on several hosts at once, brings the recordings home, and reports each host's
result.

The first host runs the command. Each other host records before the command starts, and ends after the command. A signal
during the command ends the command and all recorders, and the recordings still come home; a second signal abandons
everything.
"""

from __future__ import annotations

import shutil
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError, UsageError
from opline.scratch import unfinished
from opline.talk import talk
from opline.values import Value
from opline_analyses.base.interrupts import ENDING
from opline_analyses.hosts.remote import Remote, hear

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

_TICK_S = 0.2


class Together(Value):
    """The user's wishes. ``arguments``: options of `opline record` on every host; ``attached``: options for hosts
    without a command; ``commands``: commands on other hosts than the first; ``leave``: a folder on each host, None:
    bring home.
    """

    hosts: Sequence[str]
    command: list[str]
    arguments: list[str]
    attached: list[str]
    commands: Mapping[str, list[str]]
    program: list[str]
    leave: str | None = None


class Recorded(Value):
    """Each host's recording, by the host's name; the reasons for missing recordings; the command's exit status, or 128
    + n after signal n.
    """

    places: dict[str, str]
    failed: dict[str, str]
    status: int


@contextmanager
def _told_to_end() -> Iterator[list[int]]:
    """Catches one signal; the next signal has its usual effect."""
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in ENDING}

    def take(number: int, frame: FrameType | None) -> None:
        if came:
            put_back()
            if callable(handler := before[signal.Signals(number)]):
                handler(number, frame)
        came.append(number)

    def put_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, take)
    try:
        yield came
    finally:
        put_back()


def _request(wish: Together, host: str, command: list[str], peers: list[str] | None = None) -> dict[str, Any]:
    """``peers``: destinations of this host's pings; None: this host answers pings."""
    arguments = wish.arguments if command else [*wish.arguments, *wish.attached]
    leave = None if wish.leave is None else f"{wish.leave}/{host.rpartition('@')[2]}"
    return {"what": "record", "arguments": arguments, "command": command, "leave": leave, "peers": peers}


def record_together(wish: Together, home: Path) -> Recorded:
    """Records; recordings come home into folders of ``home``, a new folder. Raises OplineError if the first host does
    not record: then nothing stays.
    """
    unknown = set(wish.commands) - set(wish.hosts[1:])
    if unknown:
        raise UsageError(f"--on {sorted(unknown)[0]}: is none of the other hosts of --hosts.")
    if idle := [h for h in wish.hosts[1:] if h not in wish.commands and not wish.attached]:
        raise UsageError(
            f"Nothing to record on {', '.join(idle)}: name what runs there (--comm, --pid, --cgroup), or give a "
            "command with --on HOST='COMMAND'."
        )
    remotes: list[Remote] = []
    done = False
    try:
        for host in wish.hosts[1:]:
            remotes.append(Remote(host, wish.program, _request(wish, host, list(wish.commands.get(host, ())))))
        while any(
            one.failed is None and "recording" not in one.states and "ended" not in one.states for one in remotes
        ):
            hear(remotes, _TICK_S)
        peers = [
            f"{told['address'] or one.name}:{told['port_and_key']}"
            for one in remotes
            if one.failed is None and (told := one.states.get("answers")) is not None
        ]
        first = Remote(wish.hosts[0], wish.program, _request(wish, wish.hosts[0], wish.command, peers))
        remotes.insert(0, first)
        with _told_to_end() as came:
            while first.failed is None and "ended" not in first.states and not came:
                hear(remotes, _TICK_S)
            for one in remotes if came else remotes[1:]:
                one.say("stop")
            while any(one.failed is None and "ended" not in one.states for one in remotes):
                hear(remotes, _TICK_S)
        found = _bring(wish, remotes, home)
        if came:
            found = Recorded(found.places, found.failed, 128 + came[0])
        done = True
    finally:
        for one in remotes:
            one.close(kill=not done)
    return found


def _bring(wish: Together, remotes: Sequence[Remote], home: Path) -> Recorded:
    places: dict[str, str] = {}
    with unfinished(lambda: shutil.rmtree(home, ignore_errors=True)):
        if wish.leave is None:
            home.mkdir(parents=True)
        for one in remotes:
            ended = one.states.get("ended")
            if one.failed is None and ended is not None and not ended["there"]:
                lines = [line for line in ended["lines"] if line.startswith("opline: ")] or ended["lines"]
                one.failed = (lines[-1] if lines else f"record ended with status {ended['status']}").removeprefix(
                    "opline: "
                )
            if one.failed is None and wish.leave is None:
                one.fetch(home / one.name)
                places[one.name] = str(home / one.name)
            elif one.failed is None and ended is not None:
                places[one.name] = ended["folder"]
            if one.failed is not None:
                places.pop(one.name, None)
                talk(f"{one.name}: {one.failed}.")
            elif ended is not None and ended["status"] < 0:  # the data written until then is used
                one.failed = f"signal {-ended['status']} ended its recorder: the recording is complete until then"
                talk(f"{one.name}: {one.failed}.")
            for line in (ended or {}).get("lines", ()):
                if line.startswith("opline: warning: "):
                    talk(f"{one.name}: {line.removeprefix('opline: ')}")
    first = remotes[0].states.get("ended")
    if not places:
        shutil.rmtree(home, ignore_errors=True)
        raise OplineError("No host has recorded: the lines above say why.")
    failed = {one.name: one.failed for one in remotes if one.failed is not None}
    return Recorded(places, failed, 1 if first is None else int(first["status"]))


def examine(hosts: Sequence[str], program: list[str]) -> dict[str, dict[str, Any] | str]:
    """The report of `opline doctor` on each host, by name; or the reason for a missing report."""
    remotes: list[Remote] = []
    try:
        remotes += [Remote(host, program, {"what": "doctor"}) for host in hosts]
        while any(one.failed is None and "doctor" not in one.states for one in remotes):
            hear(remotes, _TICK_S)
        return {
            one.name: one.states["doctor"]["report"] if "doctor" in one.states else str(one.failed) for one in remotes
        }
    finally:
        for one in remotes:
            one.close()
