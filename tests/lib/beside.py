# SPDX-License-Identifier: MIT
"""Runs the house's checks beside the other tests, on what those leave of the CPUs.

Half of the tests wait for a recording; the checks only compute. They run one after the other in the scheduling class
`idle`, which any other thread preempts at once, until somebody waits for one.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Done = subprocess.CompletedProcess[str]


class Beside:
    """Targets of make, one after the other. `close` ends what runs and forgets what waits."""

    def __init__(self, targets: Iterable[str]) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="beside")
        self._running: subprocess.Popen[str] | None = None
        self._closed = False
        self._idle = True
        self._results: dict[str, Future[Done]] = {target: self._pool.submit(self._make, target) for target in targets}

    def result(self, target: str) -> Done:
        """Waits for it."""
        if self._idle:
            self._idle = False
            for _ in range(3):  # what was started meanwhile
                self._hurry()
        return self._results[target].result()

    def _hurry(self) -> None:
        if self._running is None:
            return
        for entry in Path("/proc").glob("[0-9]*"):
            pid = int(entry.name)
            try:
                if os.getpgid(pid) == self._running.pid:
                    os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
            except OSError:  # it has ended, or we may not: then it takes longer
                continue

    def _make(self, target: str) -> Done:
        # MAKEFLAGS of a make above us would hand down its job server
        env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        argv = [*(["chrt", "--idle", "0"] if self._idle else []), "make", "--no-print-directory", target]
        if self._closed:
            return subprocess.CompletedProcess(argv, 1, "", "closed")
        self._running = subprocess.Popen(
            argv, cwd=ROOT, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, process_group=0,
        )  # fmt: skip
        out, err = self._running.communicate()
        return subprocess.CompletedProcess(argv, self._running.returncode, out, err)

    def close(self) -> None:
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._running is not None and self._running.poll() is None:
            os.killpg(self._running.pid, signal.SIGTERM)
        self._pool.shutdown(wait=True)
