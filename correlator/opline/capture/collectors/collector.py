# SPDX-License-Identifier: MIT
"""The BPF collector's process: events from BPF into a running LTTng session, until SIGTERM.

    python -P -m opline.capture.collectors.collector --ready-fd N [--session-env NAME=VALUE]... [--exclude-pid PID]...
                                          [--ring-bytes N] [--period-us N] [--wait-enabled SECONDS]
                                          [--follow-fd N [--calls] [--tcp]
                                           [--states [--chains [--stacks FILE [--user-stacks]]]]]
                                          [--attach-pid PID]... [--probes FILE --trace DIR] [--records-fd N]
                                          [--requests DIR] [--trace DIR] [--rotated]
    python -P -m opline.capture.collectors.collector --check

Block events; with ``--probes`` instead the hits of the probes that FILE declares
(:mod:`opline.capture.probes.declared`), as a trace of its own.

Contract with whoever starts it (``opline record`` does):

- It registers with the session daemon that ``LTTNG_HOME`` leads to, as any application: from the environment, or from
  ``--session-env LTTNG_HOME=...``. Start it when the session is *started*, with ``block:*`` enabled in a channel of
  its own.
- One line of JSON comes on descriptor N (``--ready-fd``; standard output without it). ``{"ready": true, ...}``: the
  programs are attached and the session records; from here on no block event is missed. With ``"enabled": false`` they
  are attached, but no session has enabled ``block:*`` within ``--wait-enabled`` seconds (default 5); events flow as
  soon as one does. ``{"error": "..."}``: it ends with status 1. End of file without a line: it died.
- With ``--follow-fd N``, a socket: of one process and its descendants the forks, execs and exits
  (``sched:process_*``); with ``--calls`` their system calls (``syscall:*``), with ``--states`` when their threads ran,
  waited for a CPU and slept (``sched:off_cpu``), with ``--chains`` also who woke them, and the same of these threads
  (``sched:follow``); in the same channel. With ``--stacks`` the kernel stacks of waits of ``--stack-ns`` and more are
  in that file at the end. With ``--tcp`` their calls that send and receive in TCP streams (``tcp:*``). When it is ready
  the collector waits for that process' number as a line of text, and answers with a line once the process will be
  recorded from its next call, switch, fork or exec on; end of file: there will be none. ``--attach-pid``: the same
  of this process, which runs already, and of whom it forks from now on.
- With ``--records-fd N``, a pipe: block events go into it as they are (opline.readers.ring), and not into a session,
  of which there is none; the end of file comes with the end.
- With ``--trace DIR``: its events are a trace of its own in ``DIR/block``, while the session has them enabled. Without
  there are none.
- With ``--rotated``: when the session daemon begins a chunk, its traces go on there.
- With ``--requests DIR``: whole requests, as a trace of their own in that folder, while the session records
  ``block:watermark``; the session has no single steps then.
- Left out is the I/O of the processes given by ``--exclude-pid``, of every ``lttng-consumerd``, and its own.
- ``begin_ns`` and ``end_ns`` of its two lines are the monotonic times between which it recorded: with them the
  recorder knows whether it was told to end too early, by whomever.
- SIGTERM (without ``--ready-fd`` Ctrl-C as well; with it Ctrl-C is the recorder's business): detach, pass on what is
  left, write the final counts as one line of JSON to standard output, end with status 0. That takes some 0.1 s. Do it
  before the session is stopped: what comes after is ``not_enabled``.
- It gets SIGTERM when its parent dies (PR_SET_PDEATHSIG), and does the same. Programs and maps are its descriptors:
  killed in whatever way, it leaves none.

``--check`` loads and attaches everything, and ends: status 0 if block events can be captured here, else 1 and one
line why.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opline.capture.bpf import bpf, event_trace
from opline.capture.bpf.bridge import OWN_TGIDS, PERIOD_NS, RING_BYTES, pid_namespace
from opline.capture.bpf.stacks import THRESHOLD_NS, StackWish
from opline.capture.collectors.rotation import LOOK_NS, Rotation
from opline.capture.probes.budget import WINDOW_NS
from opline.errors import OplineError

if TYPE_CHECKING:
    from opline.capture.probes.declared import Declared

_TRIAL_WINDOWS = 2  # of the probes' budget
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent: int) -> None:
    """SIGTERM to this process when its parent ends; at once if ``parent`` is gone already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def consumer_daemons() -> list[int]:
    """PIDs of LTTng's consumer daemons, who write the traces."""
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == "lttng-consumerd":
                found.append(int(comm.parent.name))
        except OSError:
            continue
    return sorted(found)


def wait_enabled(collector: bpf.Collector, patience_s: float) -> bool:
    """Until the programs record what a session enabled; False after ``patience_s`` or if this process is to end.

    LTTng enables the events one after the other: it is all when nothing was added for a while.
    """
    until = time.monotonic() + patience_s
    before = 0
    while True:
        mask = collector.enabled()
        if mask and mask == before:
            return True
        if time.monotonic() >= until or signal.sigpending() & {signal.SIGTERM, signal.SIGINT}:
            return bool(mask)
        before = mask
        time.sleep(0.02)


def follow(collector: bpf.Collector, descriptor: int) -> None:
    """Wait for the number of the process whose calls and states are wanted, or until this process is to end."""
    with socket.socket(fileno=descriptor) as peer:
        peer.settimeout(0.05)
        while not signal.sigpending() & {signal.SIGTERM, signal.SIGINT}:
            try:
                line = peer.recv(32)
                if line:
                    collector.follow(int(line))
                    peer.sendall(b"followed\n")
                return
            except TimeoutError:
                continue
            except (OSError, ValueError):
                return


def _say(descriptor: int | None, document: dict[str, Any]) -> None:
    """One line of JSON; a reader who is gone is no error."""
    line = (json.dumps(document) + "\n").encode()
    try:
        os.write(1 if descriptor is None else descriptor, line)
        if descriptor is not None:
            os.close(descriptor)
    except OSError:
        return


def _collect(options: argparse.Namespace) -> None:
    started = time.monotonic_ns()
    own = list(dict.fromkeys([os.getpid(), *options.exclude_pid, *consumer_daemons()]))[:OWN_TGIDS]
    period_ns = options.period_us * 1000
    collector: bpf.Collector | Declared
    if options.probes is not None:
        from opline.capture.probes.declared import Declared, from_json  # who records block events alone needs no models

        probes, programs = from_json(options.probes.read_text())
        collector = Declared(probes, programs, options.trace, options.ring_bytes, period_ns, options.budget)
    else:
        records, tree = options.records_fd, options.follow_fd is not None or bool(options.attach_pid)
        collector = bpf.Collector(
            own, options.ring_bytes, period_ns, options.calls, options.states, options.chains,
            options.stacks and StackWish(options.stack_ns, options.stacks, options.user_stacks), records, tree,
            options.requests,
             options.trace and options.trace / event_trace.CHANNEL, streams=options.tcp,
        )  # fmt: skip
        collector.attach(options.attach_pid)
    collector.start()
    ready: dict[str, Any] = {"ready": True}
    if isinstance(collector, bpf.Collector):
        ready["enabled"] = wait_enabled(collector, options.wait_enabled)
        try:
            collector.tell_threads()
        except OplineError as error:
            ready["threads_untold"] = error.message
        ready["tracepoints"], ready["excluded_pids"] = collector.tracepoints, own
        ready["tree"], ready["calls"], ready["states"] = collector.tree, collector.calls, collector.states
        ready["no_user_stacks"] = collector.no_user_stacks
        ready["chains"], ready["no_stacks"], ready["tcp"] = collector.chains, collector.no_stacks, collector.streams
    else:
        ready["placed"], ready["absent"], ready["stepped"] = collector.placed, collector.absent, collector.stepped
        ready["entry_ns"], ready["return_ns"] = collector.entry_ns, collector.return_ns
        ready["stepped_ns"], ready["measured"] = collector.stepped_ns, [one._asdict() for one in collector.measured]
        for _ in range(_TRIAL_WINDOWS if options.trial else 0):
            time.sleep(WINDOW_NS / 1e9)
            collector.look()
    ready["initial_pid_namespace"] = not pid_namespace()  # else threads outside of ours have tid -1
    ready["begin_ns"] = time.monotonic_ns()  # from here on all that the session enabled is recorded
    ready["setup_ns"] = ready["begin_ns"] - started
    _say(options.ready_fd, ready)
    if isinstance(collector, bpf.Collector) and options.follow_fd is not None:
        follow(collector, options.follow_fd)
    ending = (signal.SIGTERM, signal.SIGINT)  # SIGINT is ignored where it shall not end us
    rotation = Rotation(collector.traces[0].folder.parent, collector.traces) if options.rotated else None
    every_ns = (collector.look_ns if isinstance(collector, bpf.Collector) else None) or WINDOW_NS
    pause_ns = every_ns if rotation is None else min(every_ns, LOOK_NS)
    look_at_ns = time.monotonic_ns() + every_ns
    while signal.sigtimedwait(ending, pause_ns / 1e9) is None:
        if rotation is not None:
            rotation.look()
        if rotation is None or time.monotonic_ns() >= look_at_ns:
            collector.look()
            look_at_ns = time.monotonic_ns() + every_ns
    stopping = time.monotonic_ns()
    if rotation is not None:
        rotation.look()  # no chunk begins any more
    counts = collector.finish()
    if rotation is not None:
        counts["parts_failed"], counts["parts_untold"] = rotation.failed, rotation.untold
    _say(
        None, {**counts, "end_ns": stopping, "ran_ns": stopping - started, "finish_ns": time.monotonic_ns() - stopping}
    )


def _check() -> None:
    collector = bpf.Collector(ring_bytes=1 << 16, calls=True, states=True, chains=True, keep=False)
    collector.start()
    collector.finish()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="collector", description="Kernel events into LTTng.")
    parser.add_argument("--ready-fd", type=int, help="descriptor for the line that says it is ready (default: stdout)")
    parser.add_argument("--session-env", action="append", default=[], metavar="NAME=VALUE", help="set for LTTng-UST")
    parser.add_argument("--exclude-pid", type=int, action="append", default=[], help="leave out this process's I/O")
    parser.add_argument("--ring-bytes", type=int, default=RING_BYTES, help="size of the BPF ring buffer (64 MiB)")
    parser.add_argument("--period-us", type=int, default=PERIOD_NS // 1000, help="how often it is emptied (3000)")
    parser.add_argument("--wait-enabled", type=float, default=5.0, help="seconds to wait for a session's block:*")
    parser.add_argument("--follow-fd", type=int, help="socket on which to hear who is recorded")
    parser.add_argument("--attach-pid", type=int, action="append", default=[], help="who is recorded, too")
    parser.add_argument("--calls", action="store_true", help="system calls too")
    parser.add_argument("--tcp", action="store_true", help="positions in TCP streams too")
    parser.add_argument("--states", action="store_true", help="threads' states too")
    parser.add_argument("--chains", action="store_true", help="and who woke them")
    parser.add_argument("--stacks", type=Path, metavar="FILE", help="and the kernel stacks of long waits")
    parser.add_argument("--stack-ns", type=int, default=THRESHOLD_NS, help="what a long wait is (200000)")
    parser.add_argument("--user-stacks", action="store_true", help="and those of the threads' programs")
    parser.add_argument("--probes", type=Path, metavar="FILE", help="hits of the probes declared there instead")
    parser.add_argument("--trace", type=Path, metavar="DIR", help="where to make the trace of events, or of these hits")
    parser.add_argument("--budget", type=float, metavar="SHARE", help="what hits may cost, of a processor's time")
    parser.add_argument("--trial", action="store_true", help="look at what they cost for a second first")
    parser.add_argument("--records-fd", type=int, metavar="N", help="a pipe for the records, instead of a session")
    parser.add_argument("--requests", type=Path, metavar="DIR", help="whole requests, as a trace there")
    parser.add_argument("--rotated", action="store_true", help="its traces go on in each chunk of the session's")
    parser.add_argument("--check", action="store_true", help="say whether block events can be captured here, and end")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit status."""
    parent = os.getppid()
    options = _options(arguments)
    if options.ready_fd is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    # fetched with sigwait: no step is interrupted half-way
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
    die_with_parent(parent)
    for setting in options.session_env:
        name, _, value = setting.partition("=")
        os.environ[name] = value
    try:
        if options.check:
            _check()
        else:
            _collect(options)
    except OplineError as error:
        if options.check:
            sys.stderr.write(f"{error.message}\n")
        else:
            _say(options.ready_fd, {"error": error.message})
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
