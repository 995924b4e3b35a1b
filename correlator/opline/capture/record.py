# SPDX-License-Identifier: MIT
"""Record a command: one LTTng session around it, its output, and a manifest.

Takes :class:`~opline.capture.options.Options`; leaves ``DIR/trace`` (CTF), ``DIR/recording.json``, ``DIR/stdout.txt``,
``DIR/stderr.txt``, and gives the exit status to pass on. Whatever goes wrong
once the command has started, the trace is kept. No threads.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opline.capture import (
    blocksource,
    ceph,
    devices,
    leftovers,
    machine,
    preload,
    processes,
    recipe,
    recording,
    space,
)
from opline.capture.blocksource import BlockSource
from opline.capture.childsource import ChildSource
from opline.capture.filesource import FileSource
from opline.capture.measure import measure
from opline.capture.options import Options, check_subbuf, find_command
from opline.capture.output import Follower
from opline.capture.recording import ChannelNote, ModelNote, Recording
from opline.capture.ringsource import RingSource
from opline.capture.session import Session, kernel_domain_works
from opline.capture.sessiond import Sessiond, attach
from opline.capture.signals import Signals
from opline.errors import OplineError, UsageError

_TICK_S = 0.1
_SPACE_EVERY_S = 0.25
_DEVICES_EVERY_S = 0.5
_MARGIN_BYTES = 32 << 20
_MOST_RESERVE_BYTES = 1 << 30
_WRITE_FAILED = re.compile(r"No space left|Error consuming|Error in write|Input/output error")


def _starts(start: Callable[[], None], without: str, notes: list[str]) -> bool:
    """Start something that a recording can do without; if it can't be, the notes say so, and why."""
    try:
        start()
    except OplineError as error:
        notes.append(f"{without}: {error.message}")
        return False
    return True


class Recorder:
    """One recording, used once: ``Recorder(options, say).run()``. ``say`` gets one line at a time for the user."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self.options = options
        self.say = say
        self.recording: Recording | None = None
        self.signals = Signals()
        self._command: subprocess.Popen[bytes] | None = None
        self._session: Session | None = None
        self._daemon: Sessiond | None = None
        self._block: BlockSource | None = None
        self._uprobes: BlockSource | None = None
        self._rings: RingSource | None = None
        self._files: FileSource | None = None
        self._reserve_bytes = 0

    def run(self) -> int:
        """Record; the command's exit status (130 after Ctrl-C). Raises OplineError if the command could not start."""
        check_subbuf(self.options.subbuf_bytes, self.options.subbuf_count)
        program = find_command(self.options.command[0])
        directory = self._make_directory()
        try:
            with self.signals.blocked():
                for line in leftovers.sweep():
                    self.say(f"note: {line}")
                state = leftovers.State.create(directory)
                try:
                    return self._record(program, directory, state)
                finally:
                    self._tear_down()
                    state.remove()
        finally:
            if self._command is None:
                self._forget(directory)

    def _record(self, program: str, directory: Path, state: leftovers.State) -> int:
        started = time.monotonic_ns()
        note = self._set_up(directory, state)
        note.took_ns["start"] = time.monotonic_ns() - started
        if self.signals.pending():
            return 130
        code = self._run_command(program, directory)
        stopping = time.monotonic_ns()
        assert self._daemon is not None
        if self._files is not None:  # first: what the file systems still have to write is recorded as well
            note.files = self._stop_source(self._files, "maps of files")
        if self._uprobes is not None:
            note.uprobes = self._stop_source(self._uprobes, "hits of uprobes")
        if self._block is not None:
            note.collector = self._stop_source(self._block, "block events")
        if self._rings is not None:
            note.rings = self._stop_source(self._rings, "events of the shim")
        tracer = self._stop_session()
        self._note_complaints(self._daemon.complaints())
        self._tear_down()
        note.took_ns["stop"] = time.monotonic_ns() - stopping
        self._note_devices(last=True)
        for line in measure(directory, note, tracer, self.options.count_budget_s, self.signals.pending):
            self._complain(line)
        try:
            note.write(directory)
        except OSError as error:
            self.say(f"warning: {directory / recording.FILE_NAME} could not be written: {error.strerror}")
        return code

    def _tear_down(self) -> None:
        """Remove session, collector and daemon, as far as they are there. Never raises."""
        for source in (self._files, self._uprobes, self._block, self._rings):
            if source is not None:
                source.kill()
        if self._session is not None:
            self._session.destroy()
        if self._daemon is not None:
            self._daemon.stop()

    # ---- before ----------------------------------------------------------------------------------------------------

    def _make_directory(self) -> Path:
        directory = self.options.directory.absolute()
        try:
            if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
                raise UsageError(f"{self.options.directory} exists and is not empty: choose another directory with -o.")
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OplineError(f"{self.options.directory} cannot be made: {error.strerror}") from error
        return directory

    @staticmethod
    def _forget(directory: Path) -> None:
        """The command never ran: leave nothing. The directory was empty or not there when we came."""
        shutil.rmtree(directory / recording.TRACE_NAME, ignore_errors=True)
        for name in (recording.FILE_NAME, recording.STDOUT_NAME, recording.STDERR_NAME):
            (directory / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            directory.rmdir()

    def _set_up(self, directory: Path, state: leftovers.State) -> Recording:
        """Session daemon, session, block events: everything traces when this returns."""
        options = self.options
        claims = [*(options.model.claims if options.model else ()), *options.globs]
        globs = recipe.sort_globs(claims or recipe.DEFAULT_GLOBS)
        notes: list[str] = []
        may_kernel = options.block and os.geteuid() == 0
        modules = may_kernel and machine.lttng_modules() is not None
        if options.uprobes:
            self._uprobes = blocksource.for_uprobes()
        daemon = self._daemon = attach(options.sessiond, state, self.signals.mask, modules)
        if ceph.SHIM in options.preload:
            notes += ceph.warnings(daemon.child is not None)
        kernel = may_kernel and kernel_domain_works(daemon)
        if options.block and not kernel:
            why = blocksource.lacking()
            if why is None:
                self._block = BlockSource(calls=bool(globs.calls))
            else:
                notes.append(f"no block events: {why}; the application's events only")
        if recipe.ring_events(globs.app):
            self._start_rings(daemon, state, notes)
        channels = recipe.plan_channels(
            globs, kernel=kernel, bpf=self._block is not None, uprobes=options.uprobes, rings=self._rings is not None,
            subbuf_bytes=options.subbuf_bytes, subbuf_count=options.subbuf_count, contexts=options.contexts,
        )  # fmt: skip
        if not channels:
            raise OplineError("Nothing to record: no user-space events asked for and no block events possible here.")
        self._note_shortfalls(notes, globs, channels, kernel)
        self._check_room(directory, channels)
        state.session = f"opline-{state.recorder.pid}-{state.recorder.start_ticks}"
        state.write()
        session = self._session = Session(daemon, state.session, directory / recording.TRACE_NAME)
        session.create()
        channels = [session.enable(channel, globs.exclude) for channel in channels]
        if kernel:
            has = {name for channel in channels for name in (*channel.events, *channel.syscalls)}
            lacking = [name for name in (*globs.kernel_events, *globs.syscalls) if name not in has]
            if lacking:
                notes.append(f"not recorded, this kernel's lttng-modules do not have it: {', '.join(lacking)}")
        session.start()
        if self._block is not None:
            self._start_collector(self._block, state, notes)
        if self._uprobes is not None:
            self._uprobes.start(daemon, state, self.signals.mask, [])
        if kernel or self._block is not None:
            self._start_files(directory, state, notes)
        for line in notes:
            self.say(f"warning: {line}")
        self.recording = self._first_manifest(daemon.kind, session.name, channels, kernel, notes)
        self.recording.write(directory)
        return self.recording

    def _start_collector(self, block: BlockSource, state: leftovers.State, notes: list[str]) -> None:
        """Start it, or go on without: the application's events are worth having by themselves."""
        daemon = self._daemon
        assert daemon is not None

        def start() -> None:
            block.start(daemon, state, self.signals.mask, [os.getpid(), *daemon.processes()])

        if not _starts(start, "no block events", notes):
            self._block = None
        elif block.wants_calls and not block.calls:
            notes.append("no system calls: BPF does not know this architecture's")

    def _start_rings(self, daemon: Sessiond, state: leftovers.State, notes: list[str]) -> None:
        """Let the shim's threads write into rings, or go on without: they call LTTng by themselves then."""
        rings = RingSource()
        without = "the shim's threads write their events by themselves"
        if _starts(lambda: rings.start(daemon, state, self.signals.mask), without, notes):
            self._rings = rings

    def _start_files(self, directory: Path, state: leftovers.State, notes: list[str]) -> None:
        """Watch which files the command opens, or go on without."""
        files = FileSource()
        if _starts(lambda: files.start(directory, state, self.signals.mask), "no maps of files", notes):
            self._files = files

    def _note_shortfalls(
        self, notes: list[str], globs: recipe.Globs, channels: list[recipe.Channel], kernel: bool
    ) -> None:
        smallest = min(c.subbuf_bytes for c in channels)
        if smallest < self.options.subbuf_bytes:
            notes.append(f"sub-buffers reduced to {space.format_bytes(smallest)}: there is little memory for buffers")
        known = recipe.BPF_SYSCALLS if self._block is not None else ()
        left_out = [*globs.kernel_events, *(f"syscall {s}" for s in globs.syscalls if s not in known)]
        if left_out and not kernel:
            notes.append(f"lttng-modules are not there; left out: {', '.join(left_out)}")

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

    def _first_manifest(
        self, sessiond: str, session: str, channels: list[recipe.Channel], kernel: bool, notes: list[str]
    ) -> Recording:
        model = self.options.model
        return Recording(
            command=recording.Command(list(self.options.command), str(Path.cwd())),
            host=machine.host(),
            versions=machine.versions(),
            clocks_before=machine.sample_clocks(),
            session=session,
            sessiond=sessiond,
            block_source="kernel" if kernel else "bpf" if self._block is not None else "none",
            model=ModelNote(model.name, self.options.model_argument, recording.digest(model.text)) if model else None,
            channels=[
                ChannelNote(
                    c.name, "kernel" if c.kernel else "ust", list(c.events), list(c.syscalls), list(c.contexts),
                    c.subbuf_bytes, c.subbuf_count,
                )
                for c in channels
            ],
            devices=devices.list_devices(),
            preload=[str(path) for path in self.options.preload],
            notes=notes,
        )  # fmt: skip

    # ---- while the command runs ------------------------------------------------------------------------------------

    def _run_command(self, program: str, directory: Path) -> int:
        assert self.recording is not None and self._daemon is not None
        note = self.recording.command
        out = Follower(directory / recording.STDOUT_NAME, sys.stdout.fileno())
        err = Follower(directory / recording.STDERR_NAME, sys.stderr.fileno())
        # Its environment leads liblttng-ust to the session daemon; see opline.capture.sessiond.
        env = preload.environment(self.options.preload, self._daemon.environment())
        argv = [program, *self.options.command[1:]]
        try:
            note.begin_monotonic_ns = time.monotonic_ns()
            try:
                child = processes.start(
                    argv, env=env, stdout=out.sink, stderr=err.sink, mask=self.signals.mask,
                    last=self._block.announce if self._block is not None else None,
                )  # fmt: skip
            except OSError as error:
                raise OplineError(f"{self.options.command[0]}: {error.strerror}", exit_code=126) from error
            self._command = child
            space_at = devices_at = time.monotonic()
            while child.poll() is None:
                self.signals.wait(_TICK_S, child)
                out.copy()
                err.copy()
                if time.monotonic() >= space_at:
                    self._check_children()
                    self._check_space(directory)
                    space_at = time.monotonic() + _SPACE_EVERY_S
                if time.monotonic() >= devices_at:
                    self._note_devices()
                    devices_at = time.monotonic() + _DEVICES_EVERY_S
            note.end_monotonic_ns = time.monotonic_ns()
            for follower in (out, err):
                while not follower.copy(patience_s=0.2) and self.signals.ending is None:
                    self.signals.wait(0)
        finally:
            out.close()
            err.close()
            if self._command is not None:
                processes.end_child(self._command)  # it is running still only if something has gone wrong here
        code = child.returncode
        note.exit_code, note.signal = (code, None) if code >= 0 else (None, -code)
        if self.signals.ending is not None:
            return 128 + self.signals.ending
        return code if code >= 0 else 128 - code

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

    def _check_children(self) -> None:
        """Say so when our session daemon or the collector has died; the command goes on."""
        assert self.recording is not None and self._session is not None and self._daemon is not None
        if self._block is not None and self._block.ended():
            self.recording.collector = self._stop_source(self._block, "block events")
            self._block = None
        if self._uprobes is not None and self._uprobes.ended():
            self.recording.uprobes = self._stop_source(self._uprobes, "hits of uprobes")
            self._uprobes = None
        if self._rings is not None and self._rings.ended():
            self.recording.rings = self._stop_source(self._rings, "events of the shim")
            self._rings = None
        child = self._daemon.child
        if self._session.active and child is not None and child.poll() is not None:
            self._session.exists = self._session.active = False
            self.recording.tracing_ended = "sessiond_died"
            self.recording.write_failed = True
            self._complain("tracing stopped: the session daemon has died; the command goes on, untraced")

    def _check_space(self, directory: Path) -> None:
        """Stop tracing, not the command, when the trace is as large as allowed or the disk is nearly full."""
        assert self.recording is not None and self._session is not None
        if not self._session.active:
            return
        limit = self.options.size_limit
        size = space.tree_bytes(self._session.output) if limit is not None else 0
        free = space.free_bytes(directory)
        if limit is not None and size >= limit:
            self.recording.tracing_ended = "size_limit"
            why = f"the trace has reached {space.format_bytes(size)} (--size-limit)"
        elif free < self._reserve_bytes:
            self.recording.tracing_ended = "disk_space"
            self.recording.write_failed = free == 0
            why = f"only {space.format_bytes(free)} left on the disk of {self.options.directory}"
        else:
            return
        self._complain(f"tracing stopped: {why}; the command goes on, untraced")
        try:
            self._session.stop(wait=False)
        except OplineError as error:
            self._complain(error.message)

    def _complain(self, text: str) -> None:
        assert self.recording is not None
        self.recording.notes.append(text)
        self.say(f"warning: {text}")

    # ---- after -----------------------------------------------------------------------------------------------------

    def _stop_source(self, source: ChildSource, what: str) -> dict[str, Any] | None:
        try:
            return source.stop()
        except OplineError as error:
            self._complain(f"{what} are missing: {error.message}")
            return None

    def _stop_session(self) -> dict[tuple[str, str], int]:
        """Stop; the tracer's own discarded counts. A daemon that fails now costs counts, never the trace."""
        assert self._session is not None
        if not self._session.exists:
            return {}
        try:
            self._session.stop()
            return {(c.domain, c.channel): c.discarded_events for c in self._session.counts()}
        except OplineError as error:
            self._complain(f"the session did not stop cleanly: {error.message}")
            return {}

    def _note_complaints(self, lines: list[str]) -> None:
        """What the daemon and its consumers logged. After a failed write nobody knows how many events are missing."""
        assert self.recording is not None
        self.recording.notes += [f"session daemon: {line}" for line in lines]
        failed = next((line for line in lines if _WRITE_FAILED.search(line)), None)
        if failed is not None:
            self.recording.write_failed = True
            self.say(f"warning: events are missing, LTTng could not write them: {failed}")
