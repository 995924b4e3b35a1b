# SPDX-License-Identifier: MIT
"""The population of a recording: the processes that it is about, whose ops and block requests every figure counts.

Takes a recording's manifest, or the core's summary, as plain JSON types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Program(Value):
    """A program that is not of the population: ``ops`` that its tracepoints made, and the ``bios`` that it queued."""

    pid: int
    comm: str
    ops: int
    bios: int
    dev: int | None  # where most of its bios went, kernel-internal number


class Population(Value):
    """What a trace has of the population and of others. ``idle``: the recorded programs did nothing but start, as far
    as the trace tells: ``saw_block_events``.
    """

    ops: int
    incomplete_ops: int
    requests: int
    other_ops: int
    other_requests: int
    idle: bool
    programs: list[str]
    others: list[dict[str, Any]]
    saw_block_events: bool = True

    @property
    def counts_alone(self) -> bool:
        """Whether figures are of the population alone. Of a command that did nothing (`sleep`, to watch a machine) and
        of one whose ops other processes' tracepoints make (a client of a server) everything counts.
        """
        if self.idle:
            return False
        return self.ops > 0 if self.ops + self.other_ops > 0 else self.requests > 0

    def left_out(self) -> list[Program]:
        """The other programs, the one with the most I/Os first."""
        rows: dict[int, list[dict[str, Any]]] = {}
        for row in self.others:
            rows.setdefault(int(row["pid"]), []).append(row)
        found = [_program(pid, of_pid) for pid, of_pid in rows.items()]
        return sorted(found, key=lambda p: (-p.bios, -p.ops, p.pid))


def _program(pid: int, rows: list[dict[str, Any]]) -> Program:
    most = max(rows, key=lambda row: int(row["bios"]))
    comm = next((str(row["comm"]) for row in rows if row["comm"]), "?")
    dev = int(most["dev"]) if most["bios"] and pid else None
    return Program(pid, comm, sum(int(r["ops"]) for r in rows), sum(int(r["bios"]) for r in rows), dev)


def population_in(summary: Mapping[str, Any] | None) -> Population | None:
    """What the core's summary says; None where the recording does not tell which processes it is about."""
    found = (summary or {}).get("population")
    return Population(**found) if isinstance(found, dict) else None


def counts_alone(summary: Mapping[str, Any] | None) -> bool:
    """Whether figures are of the population alone."""
    found = population_in(summary)
    return found is not None and found.counts_alone


def recorded_commands(recording: Mapping[str, Any] | None) -> list[int]:
    """Of the recorded processes, the one that the recorder forked: the population begins at its exec."""
    command = (recording or {}).get("command")
    pid = command.get("pid") if isinstance(command, dict) else None
    return [pid] if isinstance(pid, int) and pid in (recorded_processes(recording) or ()) else []


def recorded_processes(recording: Mapping[str, Any] | None) -> list[int] | None:
    """The command's process and those that were attached to; none where the trace does not tell whom they forked: it
    has no kernel events, or an older recorder made it (which did not write down the command's process). None: the
    recording has no events of processes, even if the trace declares them, as where BPF is not permitted.
    """
    if recording is not None and recording.get("block_source") == "none":
        return None
    command = (recording or {}).get("command")
    if recording is None or not isinstance(command, dict) or "pid" not in command:
        return []
    if recording.get("block_source") not in ("bpf", "kernel"):
        return []
    return [pid for pid in (command["pid"], *recording.get("attached", ())) if isinstance(pid, int)]
