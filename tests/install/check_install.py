# SPDX-License-Identifier: MIT
"""What a user installs works on a bare Debian 12 and a bare Debian 13, without a compiler: the wheel and the package.

`./check --install` runs it, as root. Not collected by itself: it fetches what two releases need (tests/install/roots.py
keeps that) and takes minutes. Debian 13's wheel and package are made there by `./demo` and `make deb`, so a demo on a
bare Debian 13 is tested as well.
"""

from __future__ import annotations

import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.install.roots import Root, root
from tests.lib.block_capture import loop_device

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("bookworm", "trixie")
WRITES = 256
#: What docs/install.md names for the wheel.
PACKAGES = ("python3-venv", "lttng-tools", "liblttng-ust1", "python3-bpfcc", "babeltrace2")
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "make")


@pytest.fixture(scope="module", params=SUITES)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A release, and the folder with its wheel and its package."""
    suite = request.param
    dist = tmp_path_factory.mktemp(suite)
    if platform.freedesktop_os_release().get("VERSION_CODENAME") == suite:
        subprocess.run(["make", "-s", "deb"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        for file in (ROOT / "dist").iterdir():
            shutil.copy(file, dist)
    else:
        with root(suite, dist) as bare:
            listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
            pack = ["tar", "--null", "-T", "-", "-cf", str(dist / "source.tar")]
            subprocess.run(pack, cwd=ROOT, input=listed, check=True)
            # without link-time optimisation, which takes a minute: what is tested is the packaging
            said = bare.run(
                "mkdir /src && cd /src && tar -xf /shared/source.tar && export LTO= && ./demo 500 && make -s deb && "
                "cp dist/* /shared/"
            )
            assert "$ .venv/bin/opline compare runs/demo-qd1 runs/demo-qd16" in said
            (dist / "source.tar").unlink()
    yield suite, dist


def answers(bare: Root, opline: str, device: str) -> None:
    """record, ops, why, live, report, and what looks at a run by numpy and DuckDB."""
    assert not bare.run(f"command -v {' '.join(COMPILERS)} || true")
    write = f"dd if=/dev/zero of={device} bs=4k count={WRITES} oflag=direct"
    # 3: the kernel ran no BPF program for more than 0.1 % of the completions, which is chance
    bare.run(f"cd /shared && rm -rf run1 && {{ {opline} record -o run1 -- {write} || [ $? = 3 ]; }}")
    query = "SELECT count(*) AS n FROM requests WHERE population AND kind = 'write' AND nr_sectors = 8"
    counted = bare.run(f"cd /shared && {opline} sql run1 {shlex.quote(query)} --csv")
    assert counted.split() == ["n", str(WRITES)]
    assert bare.run(f"cd /shared && {opline} why run1").startswith("The slowest")
    assert "= attributed " in bare.run(f"cd /shared && {opline} ops run1 --slowest 1")
    bare.run(f"cd /shared && {opline} report run1 -o page.html")
    assert (bare.shared / "page.html").read_bytes().startswith(b"<!DOCTYPE html>")
    live = bare.run(
        f"while :; do {write} 2>/dev/null; done & writer=$!; trap 'kill $writer' EXIT; "
        f"{opline} live hist 1 1 -d {Path(device).name}"
    )
    assert "I/Os" in live
    bare.run(f"{opline} doctor")


@pytest.fixture(scope="module")
def device() -> Iterator[str]:
    with loop_device() as path:
        yield path


def test_wheel(built: tuple[str, Path], device: str) -> None:
    suite, dist = built
    with root(suite, dist) as bare:
        bare.install(PACKAGES)
        bare.run("python3 -m venv --system-site-packages /opt/opline && "
                 "/opt/opline/bin/pip install --quiet --disable-pip-version-check /shared/opline-*.whl")  # fmt: skip
        answers(bare, "/opt/opline/bin/opline", device)


def test_package(built: tuple[str, Path], device: str) -> None:
    suite, dist = built
    with root(suite, dist) as bare:
        bare.install([f"/shared/{file.name}" for file in dist.glob("*.deb")])
        answers(bare, "opline", device)
        bare.run("cd /shared && opline plot run1 -o run1.png && opline graph run1 -o run1.dot")
        assert "opline record" in bare.run("opline help record")
        installed = bare.run("dpkg -L opline").splitlines()
        wanted = {
            "/usr/bin/opline",
            "/usr/share/man/man1/opline-record.1.gz",
            "/usr/share/bash-completion/completions/opline",
            "/usr/share/zsh/vendor-completions/_opline",
            "/usr/share/doc/opline/docs/install.md",
        }
        assert wanted <= set(installed)
        # nothing lies in the way of other packages
        ours = ("/usr/lib/opline/", "/usr/share/doc/opline/", "/usr/share/man/man1/opline")
        others = [path for path in installed if not path.startswith(ours) and path not in wanted]
        assert not bare.run(f"for path in {shlex.join(others[1:])}; do test -d $path || echo $path; done")
        bare.run("apt-get -qq -y remove opline >/dev/null && test ! -e /usr/bin/opline && test ! -e /usr/lib/opline")
