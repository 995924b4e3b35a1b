# SPDX-License-Identifier: MIT
"""`opline doctor`: the report as text and as JSON, and what it tells to install."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from opline import packages
from opline.capture import doctor
from opline.capture.doctor import Report
from opline.capture.machine import machine
from opline.capture.machine.checks import Check, Status
from opline_analyses.commands.doctor import lines


def _doctor(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    env = dict(os.environ, COLUMNS="80") if path is None else dict(os.environ, PATH=path, COLUMNS="80")
    argv = [sys.executable, "-m", "opline_analyses", "doctor", *arguments]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)


def test_doctor_says_in_80_columns_what_it_says_as_json() -> None:
    done = _doctor("--json")
    document = json.loads(done.stdout)
    assert done.returncode == (0 if document["main_job"] else 1) and done.stderr == ""
    checks = tuple(Check(**check) for check in document["checks"])
    report = Report(checks, document["app_events"], document["block_source"], document["can_read"])
    text = lines(report, 80)
    assert all(len(line) <= 80 or " " not in line.strip() for line in text)  # a path can not be broken
    for check in document["checks"]:
        assert f"{check['status']:<9} {check['name']} " in "\n".join(text)
    assert ("can record" in text[-1]) == document["main_job"]


def test_a_module_of_debians_python_is_not_to_be_installed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a virtual environment of its own Debian's packages are there and not seen."""
    monkeypatch.setattr(machine, "_DEBIANS", tmp_path)
    assert machine.how_to_get("bcc", "python3-bpfcc") == "apt install python3-bpfcc"
    (tmp_path / "bcc").mkdir()
    said = machine.how_to_get("bcc", "python3-bpfcc")
    assert said.startswith("python3-bpfcc is installed") and "--system-site-packages" in said


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ({"ID": "debian"}, ["apt install lttng-tools", "apt install python3-bpfcc", "apt install lttng-modules-dkms"]),
        ({"ID": "ubuntu", "ID_LIKE": "debian"}, ["apt install lttng-tools", "apt install python3-bpfcc", None]),
        ({"ID": "fedora"}, ["dnf install lttng-tools", "dnf install python3-bcc", "build lttng-modules"]),
        ({"ID": "arch"}, ["install lttng-tools (Debian's name", "install python3-bpfcc (Debian's name", None]),
        (None, ["apt install lttng-tools", None, None]),
    ],
)
def test_packages_have_the_distributions_names(
    release: dict[str, str] | None, said: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> dict[str, str]:
        if release is None:
            raise OSError("no os-release")
        return release

    monkeypatch.setattr(platform, "freedesktop_os_release", read)
    packages._relatives.cache_clear()
    try:
        for name, begin in zip(("lttng-tools", "python3-bpfcc", "lttng-modules-dkms"), said, strict=True):
            assert packages.how_to_install(name).startswith(begin or "")
    finally:
        packages._relatives.cache_clear()


def test_doctor_names_the_package_where_lttng_is_not_installed(tmp_path: Path) -> None:
    done = _doctor(path=str(tmp_path))
    assert done.returncode == 1
    assert "-> apt install lttng-tools" in done.stdout
    assert "This machine cannot record" in done.stdout


def test_doctor_goes_on_where_this_user_may_not_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tracefs is root's alone (mode 700) on many machines."""
    closed = tmp_path / "tracing"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(doctor, "_TRACEFS", (closed, tmp_path / "nowhere"))
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    else:
        closed.chmod(0)
    try:
        found = doctor._tracefs()
        other = doctor._tried(lambda: Check("sums", Status.OK, str(list(closed.iterdir()))))
    finally:
        os.seteuid(me)
    assert found.status == "optional" and "is not open to user" in found.detail and "as root" in found.advice
    assert other.status == "warning" and "Permission denied" in other.detail
