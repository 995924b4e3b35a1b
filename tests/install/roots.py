# SPDX-License-Identifier: MIT
"""Root file systems of a bare Debian, and what runs in them: nothing is installed there but apt's own needs.

The bare system of a release is made once; each `Root` is a layer above it, in which what one test installs stays apart.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("OPLINE_INSTALL_CACHE", "/var/tmp/opline-install"))
INCLUDED = "ca-certificates"
#: How this machine reaches its package registries.
SETTINGS = ("/etc/resolv.conf", "/etc/pip.conf")
VARIABLES = ("PIP_", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")

# In a mount namespace of its own: /proc, /sys and /dev are the machine's (BPF and loop devices work), /run, /tmp and
# /dev/shm are private. All mounts end with the namespace.
ENTER = r"""
set -e
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$BASE,upperdir=$LAYER/upper,workdir=$LAYER/work" "$LAYER/root"
cd "$LAYER/root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount --bind "$PACKAGES" var/cache/apt/archives
mkdir -p root/.cache shared
mount --bind "$FETCHED" root/.cache
mount --bind "$SHARED" shared
exec chroot . /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive "$@"
"""


@dataclass(frozen=True)
class Root:
    """A layer above a bare Debian. ``shared`` is the host's folder that is /shared inside."""

    suite: str
    layer: Path
    shared: Path

    def run(self, script: str, timeout_s: float = 1200) -> str:
        """What bash prints that runs the script there; fails with all that it printed if a command of it fails."""
        folder = CACHE / self.suite
        places = {
            "BASE": folder / "base",
            "LAYER": self.layer,
            "PACKAGES": folder / "archives",
            "FETCHED": CACHE / "fetched",
            "SHARED": self.shared,
        }
        kept = [f"{name}={value}" for name, value in os.environ.items() if name.startswith(VARIABLES)]
        argv = ["unshare", "--mount", "bash", "-c", ENTER, "bash", *kept, "bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(
            argv,
            env={**os.environ, **{name: str(path) for name, path in places.items()}},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def install(self, packages: Sequence[str]) -> None:
        """Debian packages, without those that they only recommend."""
        names = shlex.join(packages)
        self.run(f"apt-get -qq update && apt-get -qq -y install --no-install-recommends {names} >/tmp/log || "
                 "{ tail -n 30 /tmp/log >&2; exit 1; }")  # fmt: skip


def sources(suite: str) -> list[str]:
    """What apt reads of a release, from where this machine gets its own packages."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    uris = sorted(set(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()))
    mirror = next(uri for uri in uris if "security" not in uri)
    security = [f"deb {uri} {suite}-security main" for uri in uris if "security" in uri]
    return [f"deb {mirror} {suite} main", *security[:1]]


def make_base(suite: str) -> None:
    """The bare system of a release, if it is not there yet."""
    folder = CACHE / suite
    base = folder / "base"
    (folder / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (CACHE / "fetched").mkdir(exist_ok=True)
    if not (folder / "made").exists():
        if shutil.which("mmdebstrap") is None:
            for words in (["update"], ["-y", "install", "--no-install-recommends", "mmdebstrap"]):
                subprocess.run(["apt-get", "-qq", *words], check=True, stdin=subprocess.DEVNULL, capture_output=True)
        shutil.rmtree(base, ignore_errors=True)
        made = ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", "--format=directory"]
        subprocess.run([*made, f"--include={INCLUDED}", suite, base, *sources(suite)], check=True)
        (base / "etc/dpkg/dpkg.cfg.d/fast").write_text("force-unsafe-io\n")
        keep = 'APT::Keep-Downloaded-Packages "true";\nBinary::apt::APT::Keep-Downloaded-Packages "true";\n'
        (base / "etc/apt/apt.conf.d/99keep").write_text(keep)
        (base / "etc/apt/apt.conf.d/docker-clean").unlink(missing_ok=True)
        (folder / "made").touch()
    for name in filter(os.path.exists, SETTINGS):
        shutil.copy(name, base / name[1:])
    subprocess.run(["cp", "-a", "/etc/ssl/certs/.", base / "etc/ssl/certs/"], check=True)


@contextmanager
def root(suite: str, shared: Path) -> Iterator[Root]:
    """A fresh one, removed afterwards."""
    make_base(suite)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=f"{suite}-") as layer:
        for name in ("upper", "work", "root"):
            (Path(layer) / name).mkdir()
        yield Root(suite, Path(layer), shared)
