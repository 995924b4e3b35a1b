# SPDX-License-Identifier: MIT
"""A session daemon's SIGUSR1 finds a process whose other threads take signals: it is heard of, and ends nothing."""

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


def test_the_signal_of_a_daemon_that_is_ready_ends_no_process_with_threads() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
