# SPDX-License-Identifier: MIT
"""The recordings that are to be joined: where each one's trace is, which host it is of, and the messages of its run."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import numpy as np

from opline.cluster.pairing import Ends
from opline.correlation import Source, source_of
from opline.errors import OplineError, UsageError
from opline.paths import is_recording, plain, recorded_model
from opline.readers.clock import clock_ahead_ns, wall_offset_ns
from opline.store.arrays import read_table
from opline.store.run import read_manifest
from opline.store.underway import has_run, is_underway
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)", re.DOTALL)
SAME_CLOCK_NS = 1_000_000  # two readings of one offset lie no further apart (opline.readers.front)


class Part(Value):
    """One host's recording. ``clock``: the trace's clock (identity, wall clock − clock in ns; the identity is "" where
    the trace does not say it).
    """

    name: str
    path: str
    source: Source
    model: str | None  # to load it by; None: the recording has none
    clock: tuple[str, int]
    tcp: bool | None  # with positions in TCP streams; None: not known
    namespace_ns: int | None  # CLOCK_MONOTONIC of its time namespace minus the root one's; None: not known

    def exactly_behind(self, other: Part) -> int | None:
        """The other's clock minus this one, where both are of one boot and say it; else None."""
        same = bool(self.clock[0]) and self.clock[0] == other.clock[0]
        if not same or self.namespace_ns is None or other.namespace_ns is None:
            return None
        return other.namespace_ns - self.namespace_ns


class Missing(Value):
    """A host without a recording that can be read, and why; without a full stop."""

    name: str
    path: str
    why: str


class Messages(Value):
    """The ends of one host's messages, with the names of their points and their threads, in the same order."""

    sends: Ends
    receives: Ends
    points: list[str]  # by number
    send_tids: np.ndarray
    receive_tids: np.ndarray


def trace_under(path: str) -> str:
    """The trace of a recording, of a run, or the trace itself. Raises OplineError."""
    path = plain(path)
    if not os.path.exists(path):
        raise UsageError(f"{path} does not exist.")
    if is_recording(path):
        return os.path.join(path, "trace")
    if has_run(path):
        trace = str(read_manifest(path).get("trace", ""))
        if not os.path.isdir(trace):
            raise OplineError(f"{path} is a run, and its trace {trace} is gone: join needs the traces.")
        return trace
    return path


def part_of(argument: str) -> Part | Missing:
    """The host that an argument of the command line names: PATH, or NAME=PATH. Raises OplineError for a recording that
    goes on, and for one whose host has no name.
    """
    named = None if os.path.exists(argument) else _NAMED.fullmatch(argument)
    path = named[2] if named else argument
    if is_underway(path):
        raise OplineError(f"{path} is still being recorded: join it when the recording has ended.")
    try:
        trace = trace_under(path)
        source = source_of(trace)
        environments = source.front.environment()
    except OplineError as error:
        return missing(named[1] if named else os.path.basename(plain(path)), path, error)
    recording = source.recording or {}
    name = named[1] if named else _host_name(environments, path)
    clock = environments[0]["clock"] if environments else {}
    boot = str(clock.get("uuid") or (recording.get("host") or {}).get("boot_id") or "")
    noted = (recording.get("model") or {}).get("argument")
    model = recorded_model(os.path.dirname(trace), str(noted)) if noted else None
    namespace_ns = clock_ahead_ns(recording.get("host") or {}, boot)
    promised = (promise.get("what") for promise in recording.get("promises") or ())
    tcp = "tcp_positions" in promised if recording else None
    return Part(name, plain(path), source, model, (boot, wall_offset_ns(clock) or 0), tcp, namespace_ns)


def missing(name: str, path: str, error: OplineError) -> Missing:
    """The host of a recording that this error keeps from being read."""
    return Missing(name, plain(path), error.message.rstrip("."))


def _host_name(environments: Sequence[Mapping[str, Any]], path: str) -> str:
    names = {str(e["env"].get("hostname", "")) for e in environments} - {""}
    if len(names) != 1:
        what = "does not name its host" if not names else f"is of several hosts ({', '.join(sorted(names))})"
        raise UsageError(f"{path} {what}: write NAME={path}.")
    return names.pop()


def check_different(hosts: Sequence[Part | Missing]) -> None:
    """No name twice, and no clock twice. Raises UsageError."""
    for i, part in enumerate(hosts):
        for other in hosts[:i]:
            if os.path.exists(part.path) and os.path.realpath(part.path) == os.path.realpath(other.path):
                raise UsageError(f"{part.path} is given twice: each recording is of another host.")
            if part.name == other.name:
                raise UsageError(
                    f"{other.path} and {part.path} are both of a host {part.name}: "
                    f"name them, for example client={other.path} server={part.path}."
                )
            if not (isinstance(part, Part) and isinstance(other, Part)):
                continue
            same = bool(part.clock[0]) and part.clock[0] == other.clock[0]
            exact_ns = part.exactly_behind(other)
            one = abs(part.clock[1] - other.clock[1]) < SAME_CLOCK_NS if exact_ns is None else exact_ns == 0
            if same and one:
                raise UsageError(
                    f"{other.path} and {part.path} have one clock: they are of one boot of one host. "
                    "Copy their traces into one folder and give that folder to the other commands: there is nothing to "
                    "align."
                )


_SPREAD = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: different routes, different identities


def messages_of(run: Path, routes: Mapping[str, int], parts: Mapping[str, frozenset[str]]) -> Messages:
    """The messages of a host's run; their identities have the route in them. Of one that is received in parts the first
    part counts. ``routes``, ``parts``: of the model's points (opline.model.compile).
    """
    table = read_table(run / "messages.parquet")
    names, points = np.unique(table.codes("point").array(), return_inverse=True)
    sent = table.codes("direction").array() == "send"
    ts_ns = table.numbers("ts_ns").values
    of_point = [(routes.get(str(name), len(routes)) + 1) * _SPREAD % 2**64 for name in names]
    identity = table.numbers("identity").values ^ np.array(of_point, dtype=np.uint64)[points]
    tids = table.numbers("tid").plain(-1)
    order = np.argsort(ts_ns, kind="stable")
    sends, receives = order[sent[order]], order[~sent[order]]
    continues = np.array([[str(b) in parts.get(str(a), ()) for b in names] for a in names], dtype=bool).reshape(
        2 * [len(names)]
    )
    receives = receives[_first_parts(identity[receives], points[receives], continues)]
    return Messages(
        Ends(identity[sends], ts_ns[sends], points[sends]),
        Ends(identity[receives], ts_ns[receives], points[receives]),
        [str(n) for n in names],
        tids[sends],
        tids[receives],
    )


def _first_parts(identity: np.ndarray, point: np.ndarray, continues: np.ndarray) -> np.ndarray:
    """Which receives, in order of time, are no later part of the receive of their identity before them.
    ``continues[a, b]``: a part at point a comes after one at point b.
    """
    first = np.ones(len(identity), bool)
    order = np.argsort(identity, kind="stable")
    before, behind = order[:-1], order[1:]
    first[behind] = (identity[before] != identity[behind]) | ~continues[point[behind], point[before]]
    return first
