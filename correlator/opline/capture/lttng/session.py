# SPDX-License-Identifier: MIT
"""One LTTng session: create, enable, start, stop, destroy, and what its tracer counted.

Drives the ``lttng`` command, which is LTTng's stable interface, and reads its machine interface (``--mi xml``).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from opline.capture.lttng.ctfindex import COUNT_MASK
from opline.capture.lttng.recipe import NOT_THE_TRACER, Channel
from opline.capture.lttng.sessiond import Sessiond
from opline.capture.machine.space import tree_bytes
from opline.errors import OplineError
from opline.values import Value

#: What a stream has is on disk after this time, however little it is; each costs an active stream 4 KiB at least.
SWITCH_TIMER_US = 500_000
METADATA_TIMER_US = 200_000
_STOP_PATIENCE_S = 10.0

_MI = {"mi": "https://lttng.org/xml/ns/lttng-mi"}


class TracerCount(Value):
    """What LTTng says about a channel after the session was stopped."""

    domain: str  # "ust" or "kernel"
    channel: str
    discarded_events: int
    lost_packets: int


class Session:
    """A recording session of ``daemon`` that writes CTF to ``output``."""

    def __init__(self, daemon: Sessiond, name: str, output: Path, buffers: Path | None = None) -> None:
        """``buffers``: an empty folder for what is shared with the traced programs."""
        self.daemon = daemon
        self.name = name
        self.output = output
        self.buffers = buffers
        self.exists = False
        self.active = False
        self._metadata = False
        self._written = False  # all data is in the files
        self._rotates = False

    def create(self) -> None:
        """Create it, without channels. Raises OplineError."""
        where = () if self.buffers is None else (f"--shm-path={self.buffers}",)
        self.daemon.lttng("create", self.name, f"--output={self.output}", *where)
        self.exists = True

    def _enable_metadata(self) -> None:
        """Without it LTTng writes the metadata when a traced process ends, or at stop: nothing could be read before.

        To LTTng it is a channel of that name, which must be there before the others.
        """
        if not self._metadata:
            to = ("--session", self.name, "--userspace", "metadata")
            self.daemon.lttng("enable-channel", *to, f"--switch-timer={METADATA_TIMER_US}")
            self._metadata = True

    def enable(self, channel: Channel, exclude: Mapping[str, tuple[str, ...]]) -> Channel:
        """Create a channel with its events and contexts; the channel as it is, without what this kernel does not have.

        Raises OplineError, also if the kernel has none of the channel's events.
        """
        if not channel.kernel:
            self._enable_metadata()
        domain = "--kernel" if channel.kernel else "--userspace"
        to = ("--session", self.name, domain)
        self.daemon.lttng(
            "enable-channel", *to, channel.name,
            f"--subbuf-size={channel.subbuf_bytes}", f"--num-subbuf={channel.subbuf_count}",
            f"--switch-timer={SWITCH_TIMER_US}",
        )  # fmt: skip
        inside = (*to, "--channel", channel.name)
        events = []
        for event in channel.events:
            exclusions = exclude.get(event)
            extra = (f"--exclude={','.join(exclusions)}",) if exclusions and not channel.kernel else ()
            done = self.daemon.lttng("enable-event", *inside, event, *extra, check=not channel.kernel)
            if done.returncode == 0:
                events.append(event)
        if not events:
            raise OplineError(f"This kernel's lttng-modules have none of: {', '.join(channel.events)}.")
        known = self._known_syscalls() if channel.syscalls else set()
        syscalls = [name for name in channel.syscalls if name in known]
        if syscalls:
            self.daemon.lttng("enable-event", *inside, "--syscall", ",".join(syscalls), f"--filter={NOT_THE_TRACER}")
        if channel.contexts:
            types = [part for context in channel.contexts for part in ("--type", context)]
            self.daemon.lttng("add-context", *inside, *types)
        return channel.replaced(events=tuple(events), syscalls=tuple(syscalls))

    def _known_syscalls(self) -> set[str]:
        """System calls that LTTng knows on this architecture: one unknown name would fail a whole command."""
        listing = self.daemon.lttng("--mi", "xml", "list", "--kernel", "--syscall").stdout
        return {event.findtext("mi:name", "", _MI) for event in ET.fromstring(listing).iterfind(".//mi:event", _MI)}

    def start(self) -> None:
        """Start tracing. Raises OplineError."""
        self.daemon.lttng("start", self.name)
        self.active = True

    def rotate(self, every_ns: int | None) -> None:
        """Let the daemon close a chunk of the trace each time; None: never. Raises OplineError."""
        if every_ns is None:
            return
        self.daemon.lttng("enable-rotation", "--session", self.name, f"--timer={every_ns // 1000}")
        self._rotates = True

    def rotate_no_longer(self) -> None:
        """The chunk that is open now is the last one, if the daemon is there."""
        if self._rotates and self.active:
            self._rotates = False
            with suppress(OplineError):
                self.daemon.lttng("disable-rotation", "--session", self.name, "--timer", check=False)

    def stop(self, wait: bool = True) -> None:
        """Stop tracing; with ``wait`` until all data is in the files, as long as they grow. Raises OplineError."""
        if self.active:
            self.active = False
            if wait:
                self.daemon.lttng("stop", self.name, timeout_s=_STOP_PATIENCE_S, going_on=_Growth(self.output).seen)
                self._written = True
            else:
                self.daemon.lttng("stop", self.name, "--no-wait", timeout_s=_STOP_PATIENCE_S)

    def counts(self) -> list[TracerCount]:
        """The tracer's own counts per channel, the top bit masked out. Empty if the daemon does not say."""
        done = self.daemon.lttng("--mi", "xml", "list", self.name, check=False, timeout_s=_STOP_PATIENCE_S)
        if done.returncode != 0:
            return []
        try:
            return parse_counts(done.stdout)
        except ET.ParseError:
            return []

    def destroy(self) -> None:
        """Remove the session from the daemon, if need be with the daemon; the trace stays. Never raises."""
        if self.exists:
            self.exists = self.active = False
            if self._written and self.daemon.dismiss():
                return
            try:
                growth = _Growth(self.output)
                self.daemon.lttng("destroy", self.name, check=False, timeout_s=_STOP_PATIENCE_S, going_on=growth.seen)
            except OplineError:
                return


class _Growth:
    """Tells whether files grow."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bytes = tree_bytes(folder)

    def seen(self) -> bool:
        """Have they grown since the last look?"""
        before, self._bytes = self._bytes, tree_bytes(self._folder)
        return self._bytes != before


def parse_counts(xml: str) -> list[TracerCount]:
    """Per channel counts from ``lttng --mi xml list SESSION``."""
    counts = []
    for domain in ET.fromstring(xml).iterfind(".//mi:domain", _MI):
        kind = "kernel" if domain.findtext("mi:type", "", _MI) == "KERNEL" else "ust"
        for channel in domain.iterfind("mi:channels/mi:channel", _MI):
            numbers = [
                int(channel.findtext(f"mi:attributes/mi:{name}", "0", _MI)) & COUNT_MASK
                for name in ("discarded_events", "lost_packets")
            ]
            counts.append(TracerCount(kind, channel.findtext("mi:name", "", _MI), *numbers))
    return counts


def kernel_domain_works(daemon: Sessiond) -> bool:
    """Does this daemon have a kernel tracer (lttng-modules loaded)?"""
    return daemon.lttng("list", "--kernel", check=False).returncode == 0
