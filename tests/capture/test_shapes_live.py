# SPDX-License-Identifier: MIT
"""The lab application in the shapes in which programs run: on the host, in containers, forked, beside another one. The
same ops, points, stages and links in all of them, and no op has the requests of another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lib.block_capture import dev_of, loop_device
from tests.lib.namespaces import PID_NAMESPACE
from tests.lib.recorded import LAB
from tests.lib.recorder import wait_for

SOURCES = Path(__file__).parents[1] / "lab_app"
OPLINE = str(Path(sys.executable).with_name("opline"))
COUNT = 53
POINTS = ["client_submit", "queue_enter", "dequeue", "io_begin", "io_end", "client_reply"]
CONTAINER = [*PID_NAMESPACE]
CLOCK = ["unshare", "--time", "--monotonic", "1000", "--fork"]

pytestmark = pytest.mark.live
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("lab") / "lab"
    argv = ["gcc", "-O2", f"-I{SOURCES}", "-rdynamic", "-o", str(binary), f"{SOURCES}/lab.c", "-llttng-ust", "-ldl"]
    subprocess.run(argv, check=True, timeout=120)
    return binary


@pytest.fixture(scope="module")
def disks() -> Iterator[tuple[str, str]]:
    with loop_device() as one, loop_device() as other:
        yield one, other


def _both(first: list[str], second: list[str]) -> list[str]:
    """Both commands at once."""
    quoted = [" ".join(f"'{word}'" for word in argv) for argv in (first, second)]
    return ["sh", "-c", f"{quoted[0]} & {quoted[1]} & wait"]


def _rows(opline: Run, run: Path, query: str) -> list[dict[str, Any]]:
    done = opline("sql", run, query, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


# around the recorder, around the program, the program's mode and shape, two of them at once
SHAPES: dict[str, tuple[list[str], list[str], str, list[str], bool]] = {
    "host": ([], [], "direct", [], False),
    "container, recorder outside": ([], CONTAINER, "direct", [], False),
    "container, recorder inside": (CONTAINER, [], "direct", [], False),
    "containers of two levels": (CONTAINER, CONTAINER, "direct", [], False),
    "two containers": ([], CONTAINER, "direct", [], True),
    "prefork": ([], [], "direct", ["prefork"], False),
    "double fork": ([], [], "direct", ["doublefork"], False),
    "prefork in a container": ([], CONTAINER, "direct", ["prefork"], False),
    "io_uring by a worker": ([], [], "uring", [], False),
    "RWF_NOWAIT": ([], [], "nowait", [], False),
    "two beside each other": ([], [], "direct", [], True),
    "time namespace, recorder outside": ([], CLOCK, "direct", [], False),
    "time namespace, recorder inside": (CLOCK, [], "direct", [], False),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_ops_stages_and_links(
    shape: str, lab: Path, disks: tuple[str, str], opline: Run, tmp_path: Path
) -> None:
    recorder_in, program_in, mode, more, two = SHAPES[shape]
    programs = [[*program_in, str(lab), mode, disk, str(COUNT), "2", "4", *more] for disk in disks[: 1 + two]]
    argv = _both(*programs) if two else programs[0]
    run = tmp_path / "run"
    record = [*recorder_in, OPLINE, "record", "--sessiond", "private", "-o", str(run), "--model", str(LAB), "--", *argv]
    with tempfile.TemporaryDirectory(prefix="opl-") as runtime:  # other recorders see no processes of a container
        env = {**os.environ, "OPLINE_RUNTIME_DIR": runtime}
        done = subprocess.run(record, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, env=env)
    assert done.returncode == 0, done.stderr
    ops = _rows(opline, run, "SELECT pid, key, complete, unattributed_ns FROM ops")
    assert len(ops) == len(programs) * COUNT and all(op["complete"] for op in ops)
    points = _rows(
        opline, run, "SELECT op_id, list(point ORDER BY seq) AS points FROM transitions WHERE NOT aside GROUP BY op_id"
    )
    assert [row["points"] for row in points] == [POINTS] * len(ops)
    names = _rows(opline, run, "SELECT DISTINCT stage FROM stages WHERE stage IN ('client', 'queue', 'worker', 'D2C')")
    assert len(names) == 4
    linked = _rows(
        opline,
        run,
        """SELECT o.pid, r.dev, count(DISTINCT o.op_id) AS ops, count(*) AS links, list(DISTINCT l.evidence) AS how
        FROM ops o JOIN links l ON l.op_id = o.op_id JOIN requests r ON r.request_id = l.request_id GROUP BY ALL""",
    )
    assert {row["dev"] for row in linked} == {dev_of(disk) for disk in disks[: len(programs)]}
    assert len({row["pid"] for row in linked}) == len(programs), "each process is one, whatever its namespace calls it"
    assert [(row["ops"], row["links"]) for row in linked] == [(COUNT, COUNT)] * len(programs), linked
    if mode != "uring":
        assert all("thread" in how for row in linked for how in row["how"])


def test_an_application_in_another_container_is_one_line(
    lab: Path, disks: tuple[str, str], opline: Run, tmp_path: Path
) -> None:
    """LTTng's session daemon refuses it; its block requests are recorded, and belong to no op."""
    run, here, done = tmp_path / "run", tmp_path / "environment", tmp_path / "done"
    waits = f"env > {here}.part; mv {here}.part {here}; until [ -e {done} ]; do sleep 0.05; done"
    record = [OPLINE, "record", "--sessiond", "private", "-o", str(run), "--model", str(LAB), "--", "sh", "-c", waits]
    with tempfile.TemporaryDirectory(prefix="opl-") as runtime:
        env = {**os.environ, "OPLINE_RUNTIME_DIR": runtime}
        argv = [*CONTAINER, *record]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, env=env) as recorder:
            wait_for(here.exists)
            home = dict(line.split("=", 1) for line in here.read_text().splitlines() if line.startswith("LTTNG_HOME="))
            program = [*CONTAINER, str(lab), "direct", disks[0], str(COUNT), "2", "4"]
            subprocess.run(program, check=True, timeout=120, env={**os.environ, **home})
            done.touch()
            _, said = recorder.communicate(timeout=120)
    assert "no events in channel app" in said and "record on the host, or in that container" in said
    query = f"SELECT count(*) AS n FROM all_requests WHERE dev = {dev_of(disks[0])}"
    assert _rows(opline, run, query) == [{"n": COUNT}]
    assert _rows(opline, run, "SELECT count(*) AS n FROM all_ops") == [{"n": 0}]
