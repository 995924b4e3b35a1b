# SPDX-License-Identifier: MIT
"""The LTTng session daemon of a recording: the one that runs already, or a private one for this recording alone.

A private daemon has its own LTTNG_HOME, where the traced command finds its application socket (liblttng-ust looks there
besides the system-wide place, also as root). As root LTTng 2.13 hard-codes ``/run/lttng`` for everything else, so the
daemon gets a mount namespace with a ``/run/lttng`` of its own, and the ``lttng`` commands enter it with nsenter(1).
The traced command stays in the caller's namespace: what it mounts is mounted for everybody.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opline.capture.directory.state import State
from opline.capture.lttng import application
from opline.capture.machine import processes
from opline.capture.machine.patience import Patience
from opline.errors import OplineError
from opline.folder import OURS, Folder
from opline.packages import how_to_install

SYSTEM_RUNDIR = Path("/run/lttng")
_CLIENT_SOCKET = "client-lttng-sessiond"
_PROGRAMS = ("lttng-sessiond", "lttng-consumerd")
_APPS_SOCKET = "lttng-ust-sock-8"  # 8: the protocol of LTTng-UST 2.7 to 2.13
_BOUND = "bound"  # the folder in which the daemon makes that socket
_FOR_THE_DAEMON = Path(__file__).parent.with_name("libopline-sessiond.so")  # tracepoints/sessiond_peers.c
_GONE_WITHIN_S = 5.0
_READY_WITHIN_S = 20.0
_LOOK_S = 0.05

# Said by every daemon in a container; harmless.
_SOURCE_PLACE = re.compile(r" \(in \w+\(\) at [\w.-]+:\d+\)$")
_HARMLESS = ("set_ulimit", "failed to set open files limit")


def home_rundir() -> Path:
    """Where the daemon of a user who is not root has its sockets."""
    return Path(os.environ.get("LTTNG_HOME") or os.environ.get("HOME") or "/") / ".lttng"


def answers(client_socket: Path) -> bool:
    """Does a session daemon listen there?"""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(client_socket))
            return True
    except OSError:
        return False


def peer(client_socket: Path) -> int | None:
    """Who listens there: its PID, or None."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(client_socket))
            pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    except OSError:
        return None
    return pid if pid > 0 else None


def running() -> Path | None:
    """The socket of the daemon that ``lttng`` would talk to, if one runs."""
    candidates = [SYSTEM_RUNDIR / _CLIENT_SOCKET]
    if os.geteuid() != 0:
        candidates.append(home_rundir() / _CLIENT_SOCKET)
    return next((c for c in candidates if answers(c)), None)


@dataclass(slots=True)
class Sessiond:
    """A session daemon to talk to. ``child`` is None if it is not ours."""

    kind: str  # "private", "system"
    rundir: str
    child: subprocess.Popen[bytes] | None
    home: Path | None
    prefix: tuple[str, ...]
    mask: frozenset[int]
    log: Path | None = None
    has_modules: bool = False  # it loaded lttng-modules, and takes them out again
    started: processes.Process | None = None  # the child, with all that it and its helpers run

    def environment(self) -> dict[str, str]:
        """Environment for ``lttng`` and for everything that is to be traced."""
        env = dict(os.environ)
        if self.home is not None:
            env["LTTNG_HOME"] = str(self.home)
        # The application waits this long to be registered before main(); the default, 3 s, is short on a busy machine.
        env.setdefault("LTTNG_UST_REGISTER_TIMEOUT", "15000")
        return env

    def lttng(
        self,
        *arguments: str,
        check: bool = True,
        timeout_s: float = 60.0,
        going_on: Callable[[], bool] = lambda: False,
    ) -> subprocess.CompletedProcess[str]:
        """Run one ``lttng`` command; after ``timeout_s`` it is given up, unless it is ``going_on``. Raises OplineError
        with LTTng's own words if it fails and ``check`` is set.
        """
        with subprocess.Popen(
            [*self.prefix, "lttng", *arguments],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=processes.in_child(signal.SIGTERM, self.mask, new_session=True),
        ) as client:
            while True:
                try:
                    out, err = client.communicate(timeout=timeout_s)
                    break
                except subprocess.TimeoutExpired as error:
                    if not going_on():
                        client.kill()
                        raise OplineError(f"'lttng {arguments[0]}' did not answer within {timeout_s:.0f} s") from error
                except BaseException:
                    client.kill()
                    raise
        if check and client.returncode != 0:
            said = (err.strip() or out.strip() or "no reason given").splitlines()[-1]
            raise OplineError(f"'lttng {' '.join(arguments)}' failed: {said.removeprefix('Error: ')}")
        return subprocess.CompletedProcess(client.args, client.returncode, out, err)

    def processes(self) -> list[int]:
        """PIDs of the daemon and its consumers, as far as they are found: their I/O is not the application's."""
        if self.child is None:
            return [pid for name in _PROGRAMS for pid in processes.named(name)]
        namespace = Path(f"/proc/{self.child.pid}/ns/mnt")
        found = [self.child.pid]
        for name in _PROGRAMS:
            for pid in processes.named(name):
                with contextlib.suppress(OSError):
                    if Path(f"/proc/{pid}/ns/mnt").readlink() == namespace.readlink():
                        found.append(pid)
        return sorted(set(found))

    def tracers(self) -> dict[int, str]:
        """PIDs of the session daemon and its consumer daemons: without one of them nothing more is recorded."""
        if self.child is not None:
            daemon: int | None = self.child.pid
        else:
            daemon = peer(Path(self.rundir) / _CLIENT_SOCKET)
        if daemon is None:
            return {}
        consumers = [pid for pid in processes.named("lttng-consumerd") if processes.parent(pid) == daemon]
        return {daemon: "session daemon", **dict.fromkeys(consumers, "consumer daemon")}

    def complaints(self) -> list[str]:
        """Distinct error lines that a private daemon and its consumers logged."""
        if self.log is None:
            return []
        lines: dict[str, None] = {}
        for line in self.log.read_text(errors="replace").splitlines():
            if ("Error" in line or "ERROR" in line) and not any(h in line for h in _HARMLESS):
                lines[_without_time(line)] = None
        return [_SOURCE_PLACE.sub("", line) for line in lines]

    def dismiss(self) -> bool:
        """End the daemon at once, when all that it had is in the files; False where it must tidy up by itself.

        Asked to end, or to remove a session, LTTng closes the trace's folder for good first, and looks every half
        second whether that is done (lttng-tools 2.13, src/common/defaults.h, DEFAULT_ROTATE_PENDING_TIMER). What else
        it would remove goes with its mount namespace, or is in its home.
        """
        own_rundir = bool(self.prefix) or os.geteuid() != 0
        if self.child is None or self.has_modules or not own_rundir:
            return False
        consumers = processes.Watch(self.tracers())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        consumers.wait("consumer daemon", _GONE_WITHIN_S)
        consumers.close()
        self._end_helpers()
        return True

    def stop(self) -> None:
        """End the daemon if it is ours; its consumers and helpers end with it, however it ended."""
        if self.child is not None:
            processes.end_child(self.child, patience_s=10.0)
            self._end_helpers()

    def _end_helpers(self) -> None:
        """The daemon and its consumers each have a process ``lttng-runas``, and do not end it if they are killed."""
        self.child = None
        if self.started is not None:
            processes.kill_session(self.started)


def _without_time(line: str) -> str:
    """``PERROR - 10:27:10.583 [Main]: text (in f() at x.c:1)`` without the time: equal messages are equal."""
    head, separator, rest = line.partition(" - ")
    return f"{head}: {rest.partition(']: ')[2] or rest}" if separator and "]: " in rest else line


def may_unshare() -> bool:
    """May this process make a mount namespace? Containers often forbid it, root or not."""
    return _propagation() is not None


def _propagation() -> str | None:
    """What to tell unshare(1), so that a mount on /run/lttng stays in its namespace; None if there can be none.

    In a chroot whose root is no mount point ``slave`` fails; there ``unchanged`` does, where the mount that has
    /run/lttng is not shared.
    """
    kinds = ["slave"] if _is_shared(SYSTEM_RUNDIR) else ["slave", "unchanged"]
    for kind in kinds:
        try:
            done = subprocess.run(
                ["unshare", "--mount", "--propagation", kind, "true"], capture_output=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode == 0:
            return kind
    return None


def _is_shared(path: Path) -> bool:
    """Do mounts on ``path`` show in other mount namespaces? proc(5), mountinfo: the field ``shared:N``."""
    best, shared = "", True
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        point = fields[4]
        if len(point) >= len(best) and path.is_relative_to(point):
            best, shared = point, any(f.startswith("shared:") for f in fields[6 : fields.index("-")])
    return shared


def attach(mode: str, state: State, mask: Iterable[int], kernel: bool, probes: Sequence[str] = ()) -> Sessiond:
    """The daemon for a recording. ``mode``: ``auto`` (the running one, else a private one), ``private``, ``system``.

    ``kernel``: the private daemon shall load lttng-modules; ``probes``: the modules with
    events that it loads; empty: all. SIGUSR1 must be blocked by the caller.
    """
    if shutil.which("lttng") is None or shutil.which("lttng-sessiond") is None:
        raise OplineError(f"lttng and lttng-sessiond are not installed: {how_to_install('lttng-tools')}")
    client = None if mode == "private" else running()
    if client is not None:
        state.shared_sessiond = True
        state.write()
        return Sessiond("system", str(client.parent), None, None, (), frozenset(mask))
    if mode == "system":
        raise OplineError("no session daemon is running: start one (lttng-sessiond -d), or leave out --sessiond system")
    return _start_private(state, frozenset(mask), kernel, probes)


def _start_private(state: State, mask: frozenset[int], kernel: bool, probes: Sequence[str]) -> Sessiond:
    home = state.folder / secrets.token_urlsafe(16)
    rundir = home / ".lttng"
    rundir.mkdir(parents=True)
    for folder in (home, rundir):
        # Processes of other users below the command must reach the application socket, and no other process: the path
        # is a secret that the command's environment has, and nobody can list the folder that it is in.
        folder.chmod(0o711)
    apps = rundir / _APPS_SOCKET
    if len(str(apps)) > 107:
        raise OplineError(f"{apps} is too long for a Unix socket: set OPLINE_RUNTIME_DIR to a shorter path")
    root = os.geteuid() == 0
    propagation = _propagation() if root else None
    isolated = propagation is not None
    # /proc/net/unix shows the path by which a socket was bound, and /proc/PID/cmdline the arguments, to everybody: the
    # path that the daemon knows is in a folder that no other user can enter, and the socket has a second, secret name.
    bound = state.folder / _BOUND / _APPS_SOCKET if root else apps
    bound.parent.mkdir(mode=0o700, exist_ok=True)
    argv = ["lttng-sessiond", "--sig-parent", f"--apps-sock={bound}"]
    if root:  # its clients are ours alone; the group `tracing` may have no number in our user namespace
        argv.append("--group=root")
    if not kernel:
        argv.append("--no-kernel")
    elif probes:
        argv.append(f"--kmod-probes={','.join(probes)}")
    if root and not isolated and answers(SYSTEM_RUNDIR / _CLIENT_SOCKET):
        raise OplineError("a second session daemon needs a mount namespace, forbidden here: use --sessiond system")
    if propagation is not None:
        # unshare and sh exec the next one: the daemon keeps the PID and stays our child.
        script = f'mkdir -p {SYSTEM_RUNDIR} && mount -t tmpfs -o mode=755 opline {SYSTEM_RUNDIR} && exec "$@"'
        argv = ["unshare", "--mount", "--propagation", propagation, "sh", "-c", script, "sh", *argv]
    library = application.for_all_users(_FOR_THE_DAEMON)
    env = application.preloaded([library] if library else [], {**os.environ, "LTTNG_HOME": str(home)})
    log = state.folder / "sessiond.log"
    ready = _Ready()
    with Folder(state.folder, follow=False) as ours, os.fdopen(ours.create(log.name, OURS), "wb") as sink:
        child = processes.start(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, mask=mask, new_session=True
        )
    started = state.add("sessiond", child.pid, ("unshare", "sh", "lttng-sessiond", *_consumers()))  # one runs the next
    prefix = _enter(child.pid) if isolated else ()
    where = str(SYSTEM_RUNDIR) if root else str(rundir)
    daemon = Sessiond("private", where, child, home, prefix, mask, log, kernel, started)
    _await_ready(daemon, ready)
    if bound != apps:
        try:
            os.link(bound, apps)
        except OSError as error:
            daemon.stop()
            why = f"{error.strerror}: set OPLINE_RUNTIME_DIR to a folder with hard links"
            raise OplineError(f"{apps}: {why}") from error
    return daemon


def _consumers() -> list[str]:
    """Where distributions have the program of consumer daemons: it is on no path (lttng-tools, ``libexec``)."""
    places = ("lib/lttng/libexec", "lib/*/lttng/libexec", "libexec/lttng", "local/lib/lttng/libexec")
    return [str(found) for place in places for found in Path("/usr").glob(f"{place}/lttng-consumerd")]


def _enter(pid: int) -> tuple[str, ...]:
    """A command's prefix: into the daemon's mount namespace, and its root: setns(2) alone would leave a chroot."""
    return ("nsenter", f"--mount=/proc/{pid}/ns/mnt", f"--root=/proc/{pid}/root", f"--wd=/proc/{pid}/root")


class _Ready:
    """Whether SIGUSR1 has come, which ``--sig-parent`` sends when the daemon takes commands. The calling thread blocks
    the signal. A thread of a library (DuckDB's, a notebook's) may not, and gets the signal whenever the calling thread
    is not in sigtimedwait(2): the default action would end the process, so there is a handler. Python runs the handler
    in the main thread, and may do so while that thread waits: ``wait`` looks for both, in short turns.
    """

    def __init__(self) -> None:
        self._came = False
        signal.signal(signal.SIGUSR1, self._take)

    def _take(self, *_: object) -> None:
        self._came = True

    def wait(self, seconds: float) -> bool:
        """True: the signal has come. False: not within this time."""
        until = time.monotonic() + seconds
        while not self._came and (left := until - time.monotonic()) > 0:
            self._came = signal.sigtimedwait({signal.SIGUSR1}, min(left, _LOOK_S)) is not None or self._came
        return self._came


def _await_ready(daemon: Sessiond, ready: _Ready) -> None:
    assert daemon.child is not None
    patience = Patience(daemon.child.pid, _READY_WITHIN_S)
    while not ready.wait(_LOOK_S):
        if daemon.child.poll() is not None or patience.left_s <= 0:
            lines = daemon.complaints() or ["it gave no reason"]
            daemon.stop()
            raise OplineError(f"lttng-sessiond did not start: {lines[-1]}")
