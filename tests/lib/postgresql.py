# SPDX-License-Identifier: MIT
"""A private PostgreSQL 15 in memory: what is asked of it is much in little time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

BIN = Path("/usr/lib/postgresql/15/bin")
AS_POSTGRES = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"]
needs_postgresql = pytest.mark.skipif(
    not (BIN / "initdb").exists(), reason="no PostgreSQL 15 (apt install postgresql-15)"
)


class Server(NamedTuple):
    """A running cluster with pgbench's tables."""

    pid: int
    socket: Path

    def client(self, *arguments: str) -> list[str]:
        """The command line of a client program."""
        return [*AS_POSTGRES, str(BIN / arguments[0]), "-h", str(self.socket), *arguments[1:]]


@contextmanager
def cluster_folder() -> Iterator[Path]:
    """A folder with a new cluster in ``data``; gone at the end."""
    folder = Path(f"/dev/shm/opline-postgresql-{os.getpid()}")
    folder.mkdir(mode=0o755)
    shutil.chown(folder, "postgres", "postgres")
    try:
        initdb = [*AS_POSTGRES, str(BIN / "initdb"), "-D", str(folder / "data"), "-A", "trust", "--no-sync"]
        subprocess.run(initdb, check=True, stdout=-3)
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def running() -> Iterator[Server]:
    """Starts a cluster, and stops it at the end."""
    with cluster_folder() as folder:
        argv = [*AS_POSTGRES, str(BIN / "postgres"), "-D", str(folder / "data"), "-c", "listen_addresses=", "-c",
                f"unix_socket_directories={folder}"]  # fmt: skip
        with subprocess.Popen(argv, stdout=-3, stderr=-3) as child:
            try:
                found = Server(child.pid, folder)
                for _ in range(100):
                    if subprocess.run(found.client("pg_isready", "-q"), check=False).returncode == 0:
                        break
                    time.sleep(0.1)
                init = found.client("pgbench", "-i", "-q", "postgres")
                subprocess.run(init, check=True, stderr=-3, stdout=-3)
                yield found
            finally:
                child.send_signal(signal.SIGINT)
