# SPDX-License-Identifier: MIT
"""Signals in processes with several threads: a session daemon's SIGUSR1 is heard of and ends nothing, and a collector's
threads hold back what ends it.
"""

from __future__ import annotations

import subprocess
import sys

CODE = """
import os, signal, threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
from opline.capture.lttng.sessiond import _Ready
ready = _Ready()
os.kill(os.getpid(), signal.SIGUSR1)  # while this thread is not waiting: the other one gets it
print(ready.wait(30))
"""
THREADS = "import os, opline.capture.collectors.collector; print(len(os.listdir('/proc/self/task')))"


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_signal_of_a_daemon_that_is_ready_ends_no_process_with_threads() -> None:
    assert run(CODE) == "True\n"


def test_a_collector_has_no_thread_before_it_holds_its_signals_back() -> None:
    """A thread that does not hold SIGTERM back ends the process, without its report, when the first one is at work."""
    assert run(THREADS) == "1\n"
