# SPDX-License-Identifier: MIT
"""Record a command: one LTTng session around it, its output, and a manifest.

Takes :class:`~opline.capture.recorder.options.Options`; leaves ``DIR/trace`` (CTF), ``DIR/recording.json``,
``DIR/stdout.txt``, ``DIR/stderr.txt``, and gives the exit status to pass on. Whatever goes wrong once the command has
started, the trace is kept. No threads.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from opline.capture.directory import leftovers, recording
from opline.capture.directory.buffers import Buffers
from opline.capture.directory.output import Output
from opline.capture.directory.place import Place
from opline.capture.directory.recording import Recording
from opline.capture.directory.state import State
from opline.capture.lttng import application, recipe
from opline.capture.lttng.session import Session, kernel_domain_works
from opline.capture.lttng.sessiond import Sessiond, attach
from opline.capture.machine import devices, machine, processes, space
from opline.capture.machine.signals import Signals
from opline.capture.recorder import attach as attaching
from opline.capture.recorder import first_manifest
from opline.capture.recorder.clock_log import ClockLog
from opline.capture.recorder.keeper import Keeper
from opline.capture.recorder.measure import measure
from opline.capture.recorder.options import Options, check_subbuf, find_command
from opline.capture.recorder.sources import Sources, nothing_left
from opline.capture.recorder.supervisor import Limits, Supervisor
from opline.capture.sources import blocksource
from opline.capture.sources.shims import shims
from opline.errors import OplineError
from opline.folder import TRACERS, Folder, sync_tree

_TICK_S = 0.1
_DEVICES_EVERY_S = 0.5
_MARGIN_BYTES = 32 << 20
_MOST_RESERVE_BYTES = 1 << 30
INCOMPLETE = 3  # exit status: the command is well, its recording is not
UNWRITTEN = 1  # exit status: the command's output could not be passed on


class Recorder:
    """One recording, used once: ``Recorder(options, say).run()``. ``say`` gets one line at a time for the user."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self.options = options
        self.say = say
        self.recording: Recording | None = None
        self.directory = options.directory  # another name, if that one was taken
        self.signals = Signals()
        self._command: subprocess.Popen[bytes] | None = None
        self._session: Session | None = None
        self._daemon: Sessiond | None = None
        self._notes: list[str] = []
        self._sources = Sources(options, self.signals, self._notes)
        self._pids: list[int] = []  # what is attached to
        self._begun = False  # recording is on
        self._unwritten = False  # of the command's output
        self._folder: Folder | None = None  # the output directory
        self._supervisor: Supervisor | None = None
        self._buffers: Buffers | None = None
        self._reserve_bytes = 0

    def run(self) -> int:
        """Record; the command's exit status (130 after Ctrl-C). Raises OplineError if the command could not start."""
        check_subbuf(self.options.subbuf_bytes, self.options.subbuf_count)
        program = find_command(self.options.command[0]) if self.options.command else None
        self._pids = attaching.targets(self.options.pids, self.options.comms, self.options.cgroups)
        with self.signals.blocked():
            place = Place.claim(self.options.directory, self.options.any_name)
            self.directory = place.path
            try:
                self._folder = Folder(place.path)
                place.hold()
                for line in leftovers.sweep_seen():
                    self.say(f"note: {line}")
                state = State.create(place.path)
                try:
                    return self._record(program, place, state)
                finally:
                    self._tear_down()
                    state.remove()
            finally:
                if not self._begun:
                    place.forget()
                place.let_go()
                if self._folder is not None:
                    self._folder.close()

    def _record(self, program: str | None, place: Place, state: State) -> int:
        directory = place.path
        started = time.monotonic_ns()
        note = self._set_up(program, directory, state)
        place.reserve()
        note.took_ns["start"] = time.monotonic_ns() - started
        if (ending := self.signals.pending()) is not None:
            return 128 + ending
        code = self._attend() if program is None else self._run_command(program)
        note.completed_after = devices.completed()
        stopping = time.monotonic_ns()
        assert self._supervisor is not None
        tracer = self._supervisor.finish()
        if note.collector and note.collector.get("followed"):
            note.command.pid = note.collector["followed"]  # as the events number it
        self._tear_down()
        note.took_ns["stop"] = time.monotonic_ns() - stopping
        self._note_devices(last=True)
        for line in measure(
            directory, note, tracer, self.options.count_budget_s, lambda: self.signals.pending() is not None
        ):
            self._complain(line)
        from_ns = time.monotonic_ns()
        self._sync(directory)
        note.took_ns["sync"] = time.monotonic_ns() - from_ns
        place.release()
        try:
            assert self._folder is not None
            note.write(self._folder)
        except OSError as error:
            self.say(f"warning: {directory / recording.FILE_NAME} could not be written: {error.strerror}")
            note.state = "incomplete"
        return code or (INCOMPLETE if note.state == "incomplete" else UNWRITTEN if self._unwritten else 0)

    def _sync(self, directory: Path) -> None:
        """A manifest that says how the recording ended is never on the disk before what it is about."""
        try:
            sync_tree(directory)
        except OSError as error:
            self._complain(f"the trace may not survive a power cut: {error.strerror}")

    def _tear_down(self) -> None:
        """Remove session, collector and daemon, as far as they are there. Never raises."""
        self._sources.kill()
        if self._session is not None:
            self._session.destroy()
        if self._daemon is not None:
            self._daemon.stop()
        if self._supervisor is not None:
            self._supervisor.close()
        if self._buffers is not None:
            self._buffers.remove()

    # ---- before ----------------------------------------------------------------------------------------------------

    def _set_up(self, program: str | None, directory: Path, state: State) -> Recording:
        """Session daemon, session, block events: everything traces when this returns."""
        options = self.options
        claims = [*options.globs]
        if options.model is not None:
            from opline.model import lttng_claims  # without a model nothing of the models' readers is needed

            claims = [*lttng_claims(options.model), *claims]
        may_kernel = options.block and os.geteuid() == 0
        app_asked = bool(claims and recipe.sort_globs(claims).app)
        if options.model is None and options.calls and may_kernel:
            claims = [*(claims or recipe.DEFAULT_GLOBS), *recipe.CALL_GLOBS]
        probes = options.model.placed_probes(options.probes) if options.model else ()
        globs = recipe.sort_globs(claims or (() if probes else recipe.DEFAULT_GLOBS))
        if probes and not options.block and not globs.app:
            globs = recipe.sort_globs([*claims, *recipe.DEFAULT_GLOBS])  # a session needs a channel
        notes, sources = self._notes, self._sources
        if probes:
            sources.place_probes(probes, program, self._pids)
        modules = may_kernel and machine.lttng_modules() is not None
        daemon = self._daemon = attach(options.sessiond, state, self.signals.mask, modules, globs.kernel_probes)
        for shim in shims().values():
            if shim.library in options.preload:
                notes += shim.warnings(daemon.child is not None)
        kernel = may_kernel and kernel_domain_works(daemon)
        self._check_keep(kernel)
        sources.choose_block(globs, kernel, self._pids, app_asked)
        sources.start_rings(daemon, state, globs)
        channels = recipe.plan_channels(
            globs, kernel=kernel, bpf=sources.block is not None, rings=sources.rings is not None, states=options.states,
            tcp=options.tcp, subbuf_bytes=options.subbuf_bytes, subbuf_count=options.subbuf_count,
            contexts=options.contexts,
        )  # fmt: skip
        if not channels:
            raise nothing_left(blocksource.lacking() if options.block else "--no-block")
        notes += application.warnings(globs.app, program, self._pids)
        self._note_shortfalls(notes, globs, channels, kernel)
        self._check_room(directory, channels)
        state.session = state.session_name
        state.write()
        buffers = Buffers(state.name)
        self._buffers = buffers if buffers.make() else None
        path = None if self._buffers is None else buffers.path
        session = self._session = Session(daemon, state.session, directory / recording.TRACE_NAME, path)
        session.create()
        channels = [session.enable(channel, globs.exclude) for channel in channels]
        if kernel:
            has = {name for channel in channels for name in (*channel.events, *channel.syscalls)}
            lacking = [name for name in (*globs.kernel_events, *globs.syscalls) if name not in has]
            if lacking:
                notes.append(f"not recorded, this kernel's lttng-modules do not have it: {', '.join(lacking)}")
        session.start()
        if sources.block is not None:
            sources.start_block(daemon, state, globs, session.output)
            if sources.block is None:
                channels = [channel for channel in channels if channel.name != recipe.CONTROL_CHANNEL]
        if sources.probes is not None:
            sources.start_probes(session.output, state)
        if kernel or sources.block is not None:
            sources.start_files(directory, state)
        session.rotate(options.rotate_ns)  # now: each chunk has its part of what collectors write
        for line in notes:
            self.say(f"warning: {line}")
        source = "kernel" if kernel else "bpf" if sources.block is not None else "none"
        promised = sources.promises(globs)
        placed, records = bool(sources.probes), sources.records
        about = first_manifest.About(session.name, daemon.kind, source, placed, self._pids, promised, records)
        self.recording = first_manifest.of(options, about, channels, notes)
        assert self._folder is not None
        first_manifest.write(self.recording, options, self._folder)
        clocks = ClockLog(self._folder, TRACERS)
        self._supervisor = Supervisor(
            directory, self.recording, daemon, session, self._buffers, sources.listed(),
            Limits(options.size_limit, self._reserve_bytes), clocks, self._complain,
            self._keeper(session, clocks),
        )  # fmt: skip
        return self.recording

    def _check_keep(self, kernel: bool) -> None:
        if kernel and self.options.keep is not None:
            raise OplineError(
                "--keep does not work with lttng-modules, which tell of processes only once. "
                "Record with --no-block, or without --keep."
            )

    def _keeper(self, session: Session, clocks: ClockLog) -> Keeper | None:
        assert self.recording is not None and self._folder is not None
        if self.options.keep is None:
            return None
        return Keeper(self.options.keep, session.output, self.recording, self._folder, clocks, self._complain)

    def _note_shortfalls(
        self, notes: list[str], globs: recipe.Globs, channels: list[recipe.Channel], kernel: bool
    ) -> None:
        smallest = min(c.subbuf_bytes for c in channels)
        if smallest < self.options.subbuf_bytes:
            notes.append(f"sub-buffers reduced to {space.format_bytes(smallest)}: there is little memory for buffers")
        known = recipe.BPF_SYSCALLS if self._sources.block is not None else ()
        left_out = [*globs.kernel_events, *(f"syscall {s}" for s in globs.syscalls if s not in known)]
        if left_out and not kernel:
            hint = " (a program's events are PROVIDER:EVENT)" if globs.kernel_events else ""
            notes.append(f"lttng-modules are not there; left out: {', '.join(left_out)}{hint}")

    def _check_room(self, directory: Path, channels: list[recipe.Channel]) -> None:
        """Stopping must find room for what is still in the buffers."""
        buffers = sum(c.memory_bytes(recipe.possible_cpus()) for c in channels)
        self._reserve_bytes = min(buffers, _MOST_RESERVE_BYTES) + _MARGIN_BYTES
        free, needed = space.free_bytes(directory), self._reserve_bytes
        if free < needed:
            raise OplineError(
                f"{self.options.directory}: {space.format_bytes(free)} free, {space.format_bytes(needed)} needed for "
                "the tracer's buffers alone; choose another directory with -o, or a smaller --subbuf-size."
            )

    # ---- while the command runs ------------------------------------------------------------------------------------

    def _attend(self) -> int:
        """Record what runs, without a command; 0, or what a signal but Ctrl-C says: that one is how it is ended."""
        assert self.recording is not None and self._supervisor is not None
        note, self._begun = self.recording.command, True
        self.recording.completed_before = devices.completed()
        note.begin_monotonic_ns = time.monotonic_ns()
        why = attaching.attend(self.signals, self._supervisor.look, self._pids, self.options.duration_s)
        note.end_monotonic_ns = time.monotonic_ns()
        if why is not None:
            self.say(f"note: {why}")
        return 0 if self.signals.ending in (None, signal.SIGINT) else 128 + self.signals.ending

    def _run_command(self, program: str) -> int:
        assert self.recording is not None and self._daemon is not None
        assert self._folder is not None and self._supervisor is not None
        note = self.recording.command
        names = recording.STDOUT_NAME, recording.STDERR_NAME
        output = Output(self._folder, names, (sys.stdout.fileno(), sys.stderr.fileno()))
        # Its environment leads liblttng-ust to the session daemon; see opline.capture.lttng.sessiond.
        env = self._daemon.environment()
        for channel in self.recording.channels:
            if channel.name == recipe.APP_CHANNEL:
                env = application.environment(env, channel.events)
        env = application.preloaded(self.options.preload, env)
        argv, more = [program, *self.options.command[1:]], processes.from_caller()
        try:
            self.recording.completed_before = devices.completed()
            note.begin_monotonic_ns = time.monotonic_ns()
            try:
                child = processes.start(
                    argv, env=env, stdout=output.out.sink, stderr=output.err.sink,
                    mask=self.signals.mask, pass_fds=more,
                    last=self._sources.block.announce if self._sources.block is not None else None,
                )  # fmt: skip
            except OSError as error:
                raise OplineError(f"{self.options.command[0]}: {error.strerror}", exit_code=126) from error
            self._command, self._begun, note.pid = child, True, child.pid
            devices_at = time.monotonic()
            while child.poll() is None:
                self.signals.wait(0 if output.more else _TICK_S, child)
                output.copy()
                for name in output.end_writers():
                    self.say(
                        f"note: nothing reads the command's output any more, and the command goes on into "
                        f"{self.directory / name}; Ctrl-C ends it"
                    )
                self._supervisor.look()
                if time.monotonic() >= devices_at:
                    self._note_devices()
                    devices_at = time.monotonic() + _DEVICES_EVERY_S
            note.end_monotonic_ns = time.monotonic_ns()
            while not output.copy(patience_s=0.2) and self.signals.ending is None:
                self.signals.wait(0)
            for name, why in output.unwritten():
                self._unwritten = True
                self._complain(f"cannot write the command's output: {why}. {self.directory / name} has all of it")
        finally:
            output.close()
            if self._command is not None:
                processes.end_child(self._command)  # it is running still only if something has gone wrong here
        code = child.returncode
        note.exit_code, note.signal = (code, None) if code >= 0 else (None, -code)
        if self.signals.ending is not None:
            return 128 + self.signals.ending
        return processes.shell_status(code)

    def _note_devices(self, last: bool = False) -> None:
        """Add what has appeared since: benchmarks make loop and device-mapper devices of their own, and remove them.

        At the end also loop devices that have no file: one that had it between two looks shall have its name.
        """
        assert self.recording is not None
        known = {(device.name, device.backing) for device in self.recording.devices}
        names = {device.name for device in self.recording.devices}
        for device in devices.list_devices(idle=last):
            if (device.name, device.backing) not in known and (device.backing or device.name not in names):
                self.recording.devices.append(device)

    def _complain(self, text: str) -> None:
        assert self.recording is not None
        self.recording.notes.append(text)
        self.say(f"warning: {text}")
