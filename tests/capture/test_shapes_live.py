# SPDX-License-Identifier: MIT
"""The lab application in the shapes in which programs run: on the host, in containers, forked, beside another one. The
same ops, points, stages and links in all of them, and no op has the requests of another process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lib.block_capture import dev_of, loop_device
from tests.lib.lab import build_lab
from tests.lib.recorded import LAB
from tests.lib.recorder import status, wait_for
from tests.lib.shapes import CONTAINER, COUNT, SHAPES, OfOpline, Shape, check, rows

from opline.capture.lttng import application

OPLINE = str(Path(sys.executable).with_name("opline"))
LINUX = tuple(int(number) for number in os.uname().release.split("-")[0].split(".")[:2])
CLOCK = ["unshare", "--time", "--monotonic", "1000", "--fork"]

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def disks() -> Iterator[tuple[str, str]]:
    with loop_device() as one, loop_device() as other:
        yield one, other


HERE = {
    **SHAPES,
    "time namespace, recorder outside": Shape(program_in=CLOCK),
    "time namespace, recorder inside": Shape(recorder_in=CLOCK),
}


@pytest.mark.parametrize("name", HERE)
def test_the_same_ops_stages_and_links(
    name: str, lab: Path, disks: tuple[str, str], opline: OfOpline, tmp_path: Path
) -> None:
    shape, run = HERE[name], tmp_path / "run"
    record = [OPLINE, "record", "--sessiond", "private", "-o", str(run), "--model", str(LAB), "--"]
    with tempfile.TemporaryDirectory(prefix="opl-") as runtime:  # other recorders see no processes of a container
        env = {**os.environ, "OPLINE_RUNTIME_DIR": runtime}
        argv = [*shape.recorder_in, *record, *shape.command(str(lab), disks)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, env=env)
    assert status(done) == 0, done.stderr
    check(opline, run, shape, [dev_of(disk) for disk in disks])


@pytest.mark.parametrize("around", [[], CLOCK], ids=["same clock", "another clock"])
def test_a_running_application_with_another_clock_is_a_warning(around: list[str]) -> None:
    """LTTng-UST has read that clock since it started: nothing can change it from outside."""
    program = (
        "import ctypes, os, sys; ctypes.CDLL('liblttng-ust.so.1'); print(os.getpid(), flush=True); sys.stdin.read()"
    )
    argv = [*around, sys.executable, "-c", program]
    env = {**os.environ, "LTTNG_UST_REGISTER_TIMEOUT": "0"}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        said = application.warnings(["opline:*"], None, [pid])
        process.communicate()
    assert ["another time namespace" in line for line in said] == ([True, False] if around else [False])


def test_applications_in_other_containers(lab: Path, disks: tuple[str, str], opline: OfOpline, tmp_path: Path) -> None:
    """The recorder in one container, two applications in two others: PID 1 in each of them, and none that the
    recorder's session daemon can see. Before Linux 6.9 the daemon refuses them: one line says so, and their block
    requests belong to no op.
    """
    run, here, done = tmp_path / "run", tmp_path / "environment", tmp_path / "done"
    waits = f"env > {here}.part; mv {here}.part {here}; until [ -e {done} ]; do sleep 0.05; done"
    record = [OPLINE, "record", "--sessiond", "private", "-o", str(run), "--model", str(LAB), "--", "sh", "-c", waits]
    with tempfile.TemporaryDirectory(prefix="opl-") as runtime:
        env = {**os.environ, "OPLINE_RUNTIME_DIR": runtime}
        argv = [*CONTAINER, *record]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, env=env) as recorder:
            wait_for(here.exists)
            home = dict(line.split("=", 1) for line in here.read_text().splitlines() if line.startswith("LTTNG_HOME="))
            beside = Shape(program_in=CONTAINER, programs=2)
            program = beside.command(str(lab), disks)
            subprocess.run(program, check=True, timeout=120, env={**os.environ, **home})
            done.touch()
            _, said = recorder.communicate(timeout=120)
    devs = [dev_of(disk) for disk in disks]
    if LINUX >= (6, 9):
        assert "no events" not in said
        check(opline, run, beside, devs)
        return
    assert "no events in channel app" in said and "record on the host, or in that container" in said
    query = f"SELECT count(*) AS n FROM all_requests WHERE dev IN ({devs[0]}, {devs[1]})"
    assert rows(opline, run, query) == [{"n": 2 * COUNT}]
    assert rows(opline, run, "SELECT count(*) AS n FROM all_ops") == [{"n": 0}]
