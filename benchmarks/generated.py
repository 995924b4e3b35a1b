# SPDX-License-Identifier: MIT
"""Generated traces for the benchmarks: real LTTng-UST events of benchmarks/generator.c, recorded without a loss.

A trace of N streams has N / CPUs channels with a buffer per CPU; a filter on the field `lane` gives each channel the
events of its own pair of pinned threads. The channels block instead of discarding, so every trace is whole.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from opline.capture.directory.state import State
from opline.capture.lttng.session import Session
from opline.capture.lttng.sessiond import attach
from opline.capture.machine.signals import Signals

HERE = Path(__file__).resolve().parent
MODEL = HERE / "bench.toml"
EVENTS_PER_OP = 18
CPUS = 2


def compile_generator(folder: Path) -> Path:
    """The generator program, compiled into ``folder``."""
    program = folder / "generator"
    sources = [HERE / "generator.c", HERE / "bench_tp.h"]
    if not program.exists() or program.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        flags = ["-O2", "-Wall", "-Wextra", f"-I{HERE}"]
        libraries = ["-llttng-ust", "-ldl", "-lpthread"]
        subprocess.run(["cc", *flags, "-o", program, HERE / "generator.c", *libraries], check=True)
    return program


def trace_of(folder: Path, events: int, streams: int) -> Path:
    """The trace with so many events and streams; recorded into ``folder`` at first need."""
    trace = folder / f"ust-{events}-{streams}"
    if not (trace / "complete").exists():
        shutil.rmtree(trace, ignore_errors=True)
        _record(compile_generator(folder), trace, events, streams)
        (trace / "complete").touch()
    return trace / "trace"


def _record(generator: Path, trace: Path, events: int, streams: int) -> None:
    cpus = min(CPUS, streams)
    channels = max(1, streams // CPUS)
    if events % EVENTS_PER_OP or channels * cpus != streams:
        raise SystemExit(f"events: a multiple of {EVENTS_PER_OP}; streams: 1, or a multiple of {CPUS}")
    trace.mkdir(parents=True)
    signals = Signals()
    with signals.blocked():
        state = State.create(trace)
        daemon = attach("private", state, signals.mask, False)
        session = Session(daemon, "bench", trace / "trace")
        try:
            session.create()
            for number in range(channels):
                channel = f"lane{number:03}"
                size = "1M" if channels == 1 else "256k"
                daemon.lttng(
                    "enable-channel", "--userspace", "--session=bench", channel, "--blocking-timeout=inf",
                    f"--subbuf-size={size}", "--num-subbuf=4",
                )  # fmt: skip
                to = ("--userspace", "--session=bench", f"--channel={channel}")
                daemon.lttng("enable-event", *to, "bench:*", f"--filter=lane == {number}")
                daemon.lttng("add-context", *to, "--type=vpid", "--type=vtid", "--type=procname")
            session.start()
            arguments = [str(n) for n in (events // EVENTS_PER_OP, streams, cpus)]
            env = {**daemon.environment(), "LTTNG_UST_ALLOW_BLOCKING": "1"}
            subprocess.run([generator, *arguments], env=env, check=True)
            session.stop()
            if any(c.discarded_events or c.lost_packets for c in session.counts()):
                raise SystemExit("the generated trace has losses")
        finally:
            session.destroy()
            daemon.stop()
            state.remove()
