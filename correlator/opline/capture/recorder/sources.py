# SPDX-License-Identifier: MIT
"""The collectors of one recording: started before the command, each with what the recording can do without it, and the
promises that follow from those that run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from opline.capture.directory import promises
from opline.capture.directory.promises import Promise
from opline.capture.directory.state import State
from opline.capture.lttng import recipe
from opline.capture.lttng.sessiond import Sessiond
from opline.capture.machine.signals import Signals
from opline.capture.recorder import proof
from opline.capture.recorder.options import Options
from opline.capture.recorder.supervisor import Source
from opline.capture.sources import blocksource
from opline.capture.sources.blocksource import BlockSource
from opline.capture.sources.filesource import FileSource
from opline.capture.sources.shims import ShimSource, shims
from opline.errors import OplineError

if TYPE_CHECKING:
    from opline.capture.sources.probesource import ProbeSource
    from opline.model import Probe

_HITS_LAG_NS = 1_100_000_000  # what collectors have that write a trace themselves is in its file within a second
_BLOCK_LAG_NS = 500_000_000  # and the collector of block events within half of that
_RINGS_LAG_NS = 600_000_000  # the shim's waits half a second for a thread in the midst of a record


class Sources:
    """Those of one recording; ``notes`` gets a line for each that could not be had."""

    def __init__(self, options: Options, signals: Signals, notes: list[str]) -> None:
        self._options, self._signals, self._notes = options, signals, notes
        self.block: BlockSource | None = None
        self.probes: ProbeSource | None = None  # those that the model declares
        self.rings: ShimSource | None = None
        self.files: FileSource | None = None
        self.kernel = False  # lttng-modules are there
        self._app_asked = False
        self._not_had: list[Promise] = []

    @property
    def records(self) -> bool:
        """Do block requests have a record each, instead of single events?"""
        return self.block is not None and self.block.wants_records

    def kill(self) -> None:
        """End all that are there. Never raises."""
        for source in (self.files, self.probes, self.block, self.rings):
            if source is not None:
                source.kill()

    def listed(self) -> list[Source]:
        """Those that run, in the order in which they are to be stopped."""
        found = (
            ("files", promises.FILES, self.files, 0, False),
            ("probes", promises.PROBES, self.probes, _HITS_LAG_NS, True),
            ("collector", promises.BLOCK, self.block, _BLOCK_LAG_NS, True),
            ("rings", promises.SHIM, self.rings, _RINGS_LAG_NS, True),
        )
        return [
            Source(report, promises.WORDS[what], child, lag, events)
            for report, what, child, lag, events in found
            if child
        ]

    def promises(self, globs: recipe.Globs) -> list[Promise]:
        """What the recording promises, now that all are ready."""
        block = self.block
        collector = []
        if block is not None:
            collector = [promises.BLOCK, *([promises.CALLS] if block.calls and globs.calls else ())]
            collector += [promises.STATES] if block.states else []
            collector += [promises.TCP] if block.tcp else []
        made = proof.made(
            app=bool(globs.app), kernel=self.kernel, states=self._options.states, collector=collector,
            probes=self.probes is not None, shim=self.rings is not None, files=self.files is not None,
        )  # fmt: skip
        return [*self._not_had, *made]

    def choose_block(self, globs: recipe.Globs, kernel: bool, pids: list[int], app_asked: bool) -> None:
        """Whence block events are to come: from lttng-modules (``kernel``), else from the BPF collector.

        A user who is not root can never have them, and is promised none; a root who lacks something is told so.
        ``app_asked``: the application's events were asked for, by a model or by name. Raises OplineError where nothing
        that was asked for is left.
        """
        self.kernel, self._app_asked = kernel, app_asked
        if kernel and self._options.tcp:
            self._lack_tcp("opline's collector is not used where lttng-modules are")
        if kernel and self._options.user_stacks:
            self._notes.append("no user stacks: opline's collector is not used where lttng-modules are")
        if not self._options.block or kernel:
            return
        why = blocksource.lacking()
        if why is None:
            # one record per request; who asks for single events gets them
            self.block = BlockSource(
                bool(globs.calls), self._options.states, self._options.chains, self._options.stack_ns, pids,
                not globs.block, self._options.tcp, self._options.rotate_ns is not None, self._options.user_stacks,
            )  # fmt: skip
            return
        self._need_another(why)
        self._notes.append(f"no block events: {why}; the application's events only")
        if os.geteuid() == 0:
            self._lack_block(why, globs)
        elif self._options.tcp:
            self._lack_tcp(why)

    def _need_another(self, why: str) -> None:
        """Raises OplineError if block events are all that was asked for."""
        if not self._app_asked and self.probes is None and self._signals.pending() is None:
            raise nothing_left(why)

    def _lack_block(self, why: str, globs: recipe.Globs) -> None:
        kinds = [promises.BLOCK, *([promises.CALLS] if globs.calls else ())]
        kinds += [promises.TCP] if self._options.tcp else []
        self._not_had += [proof.not_had(kind, "bpf", why) for kind in kinds]

    def _lack_tcp(self, why: str) -> None:
        self._notes.append(f"no positions in TCP streams: {why}")
        self._not_had.append(proof.not_had(promises.TCP, "bpf", why))

    def start_block(self, daemon: Sessiond, state: State, globs: recipe.Globs, trace: Path) -> None:
        """Start the BPF collector, or go on without: the application's events are worth having by themselves. Raises
        OplineError where there are none, and nothing that was asked for is left.
        """
        block = self.block
        assert block is not None
        try:
            block.start(daemon, state, self._signals.mask, [os.getpid(), *daemon.processes()], trace)
        except OplineError as error:
            self.block = None
            why = error.message.rstrip(".")
            self._notes.append(f"no block events: {why}")
            self._lack_block(why, globs)
            self._need_another(why)
            return
        if block.wants_calls and not block.calls:
            why = "BPF does not know this architecture's"
            self._notes.append(f"no system calls: {why}")
            self._not_had.append(proof.not_had(promises.CALLS, "bpf", why))
        if block.wants_tcp and not block.tcp:
            self._lack_tcp("this kernel lacks a tracepoint for them (Linux 6.16 has both)")
        if block.wants_states and not block.states:
            self._notes.append("no states of threads: this kernel's scheduler has other events")
        elif block.wants_chains and not block.chains:
            self._notes.append("no chains of wake-ups: this kernel does not tell when it is in an interrupt")
        elif block.no_stacks is not None:
            self._notes.append(f"no stacks of waits: this kernel cannot: {block.no_stacks}")
        elif block.no_user_stacks is not None:
            self._notes.append(f"no user stacks: {block.no_user_stacks}")

    def place_probes(self, probes: tuple[Probe, ...], program: str | None, pids: list[int]) -> None:
        """Find the files that the model's probes are for. Raises OplineError."""
        from opline.capture.sources.probesource import ProbeSource

        given = [*self._options.programs, *([Path(program).resolve()] if program else [])]
        self.probes = ProbeSource(probes, given, pids, self._options.probe_budget, self._options.rotate_ns is not None)

    def start_probes(self, trace: Path, state: State) -> None:
        """Place the model's probes. Raises OplineError if none can be placed: the model is about them."""
        probes = self.probes
        assert probes is not None
        probes.start(trace, state, self._signals.mask)
        name = self._options.model.path if self._options.model else ""
        self._notes += [f"{name}:{line}: no probe {event}: {why}" for line, event, why in probes.absent()]
        if stepped := probes.stepped():
            self._notes.append(
                f"the kernel single-steps the instructions at {', '.join(stepped)}: "
                "a hit there costs some ten times as much as elsewhere"
            )

    def start_rings(self, daemon: Sessiond, state: State, globs: recipe.Globs) -> None:
        """Let the threads of the first shim whose events are asked for write into rings, or go on without: they call
        LTTng by themselves then.
        """
        wanted = [shim for shim in shims().values() if recipe.ring_events(globs.app, shim.relayed)]
        if not wanted:
            return
        rings = wanted[0].source()
        without = "the shim's threads write their events by themselves"
        if self._starts(lambda: rings.start(daemon, state, self._signals.mask), without):
            self.rings = rings

    def start_files(self, directory: Path, state: State) -> None:
        """Watch which files the command opens, or go on without."""
        files = FileSource()
        if self._starts(lambda: files.start(directory, state, self._signals.mask), "no maps of files"):
            self.files = files

    def _starts(self, start: Callable[[], None], without: str) -> bool:
        """Start something that a recording can do without; if it can't be, the notes say so, and why."""
        try:
            start()
        except OplineError as error:
            self._notes.append(f"{without}: {error.message}")
            return False
        return True


def nothing_left(why: str | None) -> OplineError:
    """What to raise where all that was asked for is missing: before the command starts."""
    return OplineError(
        f"Nothing to record: no user-space events are asked for, and no block events can be had ({why}). "
        "`opline doctor` says what this machine can capture; --events 'opline:*' records the application alone."
    )
