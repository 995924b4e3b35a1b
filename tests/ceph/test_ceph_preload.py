# SPDX-License-Identifier: MIT
"""What ``opline record`` preloads, and what it and ``opline doctor`` say of a Ceph that runs or is configured here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opline.applications.ceph import installed as ceph
from opline.capture.doctor import examine
from opline.capture.lttng import application
from opline.capture.sources import preload
from opline.errors import OplineError, UsageError
from opline.model import check_text, load_model

ROOT = Path(__file__).resolve().parents[2]


def test_what_can_be_preloaded(tmp_path: Path) -> None:
    own = tmp_path / "own.so"
    own.touch()
    assert preload.find(["ceph", str(own), "ceph"]) == [ceph.SHIM, own]
    with pytest.raises(UsageError, match="opline has ceph"):
        preload.find(["cehp"])
    with pytest.raises(OplineError, match="is not there"):
        preload.find([str(tmp_path / "no.so")])
    blank = tmp_path / "a b.so"
    blank.touch()
    with pytest.raises(OplineError, match="no path with a blank"):
        preload.find([str(blank)])


def test_what_the_user_preloads_stays() -> None:
    libraries = [Path("/a.so"), Path("/b.so")]
    assert application.preloaded(libraries, {"X": "1", "LD_PRELOAD": "/u.so"}) == {
        "X": "1",
        "LD_PRELOAD": "/a.so:/b.so:/u.so",
    }
    assert application.preloaded([], {"X": "1"}) == {"X": "1"}


def test_a_model_says_what_to_preload() -> None:
    text = (
        'preload = ["ceph", "/opt/x.so"]\n[keys]\nk = "k"\n[points]\na = { event = "p:a", role = "begin", key = "k" }\n'
    )
    model, problems = check_text(text, "m", "m.toml")
    assert model.preload == ("ceph", "/opt/x.so") and not [p for p in problems if p.severity == "error"]
    assert load_model("demo").preload == ()
    _, problems = check_text(text.replace('["ceph", "/opt/x.so"]', "[1]"), "m", "m.toml")
    assert [p.message for p in problems if p.severity == "error"] == ["`preload`: a list of texts is wanted"]


@pytest.mark.live
@pytest.mark.parametrize(
    ("given", "expected"), [([], ["ceph"]), (["none"], []), (["none", "ceph"], ["ceph"]), (["ceph", "none"], [])]
)
def test_the_command_gets_it(runtime: Path, tmp_path: Path, given: list[str], expected: list[str]) -> None:
    model = tmp_path / "m.toml"
    model.write_text('preload = "ceph"\n[keys]\nk = "k"\n[points]\na = { event = "p:a", role = "begin", key = "k" }\n')
    options = [f"--preload={name}" for name in given]
    argv = [sys.executable, "-m", "opline_analyses", "record", "-o", str(tmp_path / "run"), "--no-block"]
    argv += [
        "--sessiond",
        "private",
        "--model",
        str(model),
        *options,
        "--",
        "sh",
        "-c",
        "echo $LD_PRELOAD; cat /proc/self/maps",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    libraries = [str({"ceph": ceph.SHIM}[name]) for name in expected]
    assert done.stdout.splitlines()[0] == ":".join([*libraries, str(application.LIBRARY)]), "ours stands last"
    assert all(library in done.stdout.partition("\n")[2] for library in libraries)
    assert "liblttng-ust.so" not in done.stdout  # a shell is left alone
    # a model is somebody's file, and what is preloaded is code that runs
    assert (f"note: the model {model} loads ceph into the command" in done.stderr) == (not given)
    assert json.loads((tmp_path / "run" / "recording.json").read_text())["preload"] == libraries


Start = Callable[..., int]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Start]:
    """Start a process that is called ceph-osd; gives its PID when it runs."""
    started: list[subprocess.Popen[str]] = []
    shutil.copy("/bin/cat", tmp_path / "ceph-osd")

    def start(env: dict[str, str]) -> int:
        process = subprocess.Popen(
            [str(tmp_path / "ceph-osd")],
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("up\n")
        process.stdin.flush()
        assert process.stdout.readline() == "up\n"
        return process.pid

    yield start
    for process in started:
        process.communicate(timeout=30)


def test_daemons_with_and_without_the_shim(daemon: Start) -> None:
    shim = ceph.SHIM
    without, with_shim = daemon({}), daemon({"LD_PRELOAD": str(shim)})
    found = {d.pid: (d.name, d.shim, d.lttng) for d in ceph.daemons()}
    assert found[without] == ("ceph-osd", False, False) and found[with_shim] == ("ceph-osd", True, False)
    lines = ceph.warnings(private_sessiond=True)
    assert any(f"PID {without}) runs without the shim" in line and str(shim) in line for line in lines)
    assert any(f"PID {with_shim}) has the shim, but no session daemon" in line for line in lines)
    assert not any(f"PID {with_shim})" in line for line in ceph.warnings(private_sessiond=False))


def test_options_that_end_ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "ceph.conf"
    conf.write_text(
        "[global]\nosd tracing = false\n[client.admin]\n\trados_tracing = true ; always\n[osd]\nbluestore tracing=1\n"
    )
    monkeypatch.setenv("CEPH_CONF", str(conf))
    monkeypatch.setenv("CEPH_ARGS", "--rbd-tracing=true --osd_tracing false")
    assert ceph.options_set() == ["bluestore_tracing", "rados_tracing", "rbd_tracing"]
    built = tmp_path / "ceph-osd"
    built.write_bytes(b"\0" * ((1 << 20) - 5) + b"libosd_tp.so\0")  # across what is read at once
    assert ceph.has_tracepoints(built)
    (tmp_path / "plain").write_bytes(b"osd_tracing\0")
    assert ceph.has_tracepoints(tmp_path / "plain") is False
    assert ceph.has_tracepoints(tmp_path / "none") is None
    monkeypatch.setattr(ceph, "_BINARIES", (str(built),))
    monkeypatch.setattr(ceph, "_FOLDERS", (str(tmp_path),))
    (tmp_path / "librados_tp.so").touch()
    assert ceph.deadly_options() == ["bluestore_tracing", "rbd_tracing"]
    assert [line.split(",")[0] for line in ceph.warnings(private_sessiond=False) if "configuration" in line] == [
        "Ceph's configuration sets bluestore_tracing",
        "Ceph's configuration sets rbd_tracing",
    ]
    checks = {check.name: check for check in examine().checks}
    assert "bluestore_tracing, rbd_tracing" in checks["Ceph's own events"].detail


def test_doctor_says_nothing_of_ceph_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceph, "_BINARIES", ())
    monkeypatch.setattr(ceph, "_DAEMONS", ())
    assert not [check.name for check in examine().checks if "Ceph" in check.name]
