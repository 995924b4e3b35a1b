# SPDX-License-Identifier: MIT
"""Hosts with a real sshd each: on a port of the loopback, with a host name, a /run and a /tmp of their own.

setup-env unpacks Debian's openssh-server into .venv/openssh: nothing is installed, and no daemon starts by itself.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPENSSH = ROOT / ".venv" / "openssh"
SSHD = OPENSSH / "usr" / "sbin" / "sshd"
PROPAGATION = "unchanged" if subprocess.run(["mountpoint", "-q", "/"], check=False).returncode else "slave"
# sshd as root wants a user sshd and a /run/sshd; sshd -D stays in the foreground, -e writes to standard error
START = """
set -e
mount --bind "$1/passwd" /etc/passwd
mount -t tmpfs none /run && mkdir -m 755 /run/sshd
hostname "$2"
export LD_LIBRARY_PATH="$3"
exec "$4" -D -e -f "$1/$2.config"
"""


class SshHosts:
    """``names``: of the hosts. ``folder``: for keys, settings and logs. ``bin`` has an ``ssh`` that knows them.
    ``environments``: of sessions, by host, as SetEnv of sshd has it. ``ahead_s``: by how much its CLOCK_MONOTONIC is
    ahead of this machine's, by host.
    """

    def __init__(
        self, folder: Path, names: list[str], environments: dict[str, str], ahead_s: dict[str, int] | None = None
    ) -> None:
        self.folder = folder
        self.ahead_s = ahead_s or {}
        self.servers: dict[str, subprocess.Popen[bytes]] = {}
        for key in ("user", "host"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        (folder / "passwd").write_text(
            f"{Path('/etc/passwd').read_text()}sshd:x:64999:65534::/run/sshd:/usr/sbin/nologin\n"
        )
        lines = []
        for name in names:
            with socket.create_server(("127.0.0.1", 0)) as found:
                port = found.getsockname()[1]
            self.servers[name] = self._start(name, port, environments.get(name))
            lines.append(f"Host {name}\n HostName 127.0.0.1\n Port {port}\n")
        lines.append(
            f"Host *\n IdentityFile {folder}/user\n UserKnownHostsFile /dev/null\n StrictHostKeyChecking no\n"
            " LogLevel ERROR\n"
        )
        (folder / "ssh.config").write_text("".join(lines))
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {folder}/ssh.config "$@"\n')
        (self.bin / "ssh").chmod(0o755)

    def _start(self, name: str, port: int, environment: str | None) -> subprocess.Popen[bytes]:
        (self.folder / f"{name}.config").write_text(
            f"ListenAddress 127.0.0.1:{port}\nHostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/user.pub\n"
            "StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n"
            f"{'' if environment is None else f'SetEnv {environment}'}\n"
        )
        library = OPENSSH / "usr" / "lib" / f"{os.uname().machine}-linux-gnu"
        with (self.folder / f"{name}.log").open("wb") as log:
            server = subprocess.Popen(
                ["unshare", "--mount", "--uts", "--propagation", PROPAGATION, *self._clock(name), "sh", "-c", START,
                 "sh", self.folder, name, library, SSHD],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        end = time.monotonic() + 20
        while server.poll() is None and time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return server
            time.sleep(0.02)
        raise AssertionError((self.folder / f"{name}.log").read_text())

    def _clock(self, name: str) -> list[str]:
        """For unshare: a time namespace has a child, not the process itself, which ends with it."""
        ahead_s = self.ahead_s.get(name)
        return [] if ahead_s is None else ["--fork", "--kill-child", "--time", f"--monotonic={ahead_s}"]

    def close(self) -> None:
        for server in self.servers.values():
            server.kill()
            server.wait()
