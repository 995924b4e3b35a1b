# SPDX-License-Identifier: MIT
"""`opline.record([...])`: a real recording from Python, opened as a run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import opline
from opline.errors import OplineError

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with the tracepoints of opline_tp.h: ``app FILE JOBS``."""
    binary = tmp_path_factory.mktemp("app") / "app"
    source = ROOT / "tracepoints"
    files = [source / "example" / "app.c", source / "opline_tp.c"]
    libraries = ["-llttng-ust", "-ldl", "-lpthread"]
    subprocess.run(["cc", "-O1", f"-I{source}", "-o", binary, *files, *libraries], check=True, timeout=120)
    return binary


def test_a_recording_is_a_run(jobs: Path, tmp_path: Path) -> None:
    found = opline.record(
        [str(jobs), str(tmp_path / "data"), "40"], tmp_path / "rec", model="generic", no_block=True, sessiond="private"
    )
    assert (found.path, found.status) == (tmp_path / "rec", 0)
    with found.open() as run:
        assert len(run.ops) == 40
        (complete,) = run.sql("SELECT count(*) AS n FROM ops WHERE complete").df()["n"]
        assert complete == 40
        sums = run.sql("SELECT sum(duration_ns)::BIGINT AS ns FROM stages").df()["ns"][0]
        whole = run.sql("SELECT sum(latency_ns - unattributed_ns)::BIGINT AS ns FROM ops").df()["ns"][0]
        assert sums == whole > 0


def test_the_commands_own_status_is_told(tmp_path: Path) -> None:
    found = opline.record(["sh", "-c", "exit 7"], tmp_path / "rec", model="generic", no_block=True, sessiond="private")
    assert found.status == 7
    with pytest.raises(OplineError, match="exists"):
        opline.record(["true"], tmp_path / "rec", model="generic", no_block=True, sessiond="private")
