# SPDX-License-Identifier: MIT
"""Fixtures for all tests: the recorded traces, unpacked, and the program as a user would run it.

Tests marked `live` record on this machine; they are skipped where there is no root. Of the workers (workers.py) the
first has these and then the house's checks; the others compute meanwhile, with a lower priority.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from tests.lib.beside import Beside
from tests.lib.recorded import Correlated, RunOf, model_of, unpack
from tests.workers import RecordersFirst

from opline.capture.directory.leftovers import sweep
from opline.correlation import correlate
from opline.errors import OplineError

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT / "tests" / "traces"

# How long an example takes hangs on what else the machine does.
hypothesis.settings.register_profile("opline", deadline=None)
hypothesis.settings.load_profile("opline")

# A shell's background job ignores Ctrl-C, and so would everything that we start: tests of Ctrl-C need it back.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def targets_of(items: list[pytest.Item]) -> list[str]:
    """The targets of make that the chosen tests of test_house.py ask for."""
    return [
        str(item.callspec.params["target"]) for item in items if isinstance(item, pytest.Function) and is_house(item)
    ]


def is_house(item: pytest.Item) -> bool:
    return item.path.name == "test_house.py"


def is_live(item: pytest.Item) -> bool:
    return item.get_closest_marker("live") is not None


FIRST_WORKER = "gw0"
NICE = 10  # of the other workers


def worker_of(config: pytest.Config) -> str:
    """The name of this process among several workers; that of the first one where there is only one process."""
    return str(getattr(config, "workerinput", {}).get("workerid", FIRST_WORKER))


def pytest_configure(config: pytest.Config) -> None:
    if worker_of(config) != FIRST_WORKER:
        os.nice(NICE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What records comes first, the house's checks last: the first worker's. Skip what records unless we may."""
    items.sort(key=lambda item: (is_house(item), not is_live(item)))
    if os.geteuid() == 0:
        return
    for item in items:
        if is_live(item):
            item.add_marker(pytest.mark.skip(reason="records on this machine: needs root"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> RecordersFirst:
    return RecordersFirst(config, log)


BESIDE = pytest.StashKey[Beside]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Starts the house's checks before the first test."""
    if not session.config.option.collectonly and worker_of(session.config) == FIRST_WORKER:
        session.config.stash[BESIDE] = Beside(targets_of(session.items))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (running := session.config.stash.get(BESIDE, None)) is not None:
        running.close()


@pytest.fixture(scope="session")
def beside(request: pytest.FixtureRequest) -> Beside:
    """The house's checks, which run since the first test. Another worker than the first starts them here."""
    stash = request.config.stash
    if BESIDE not in stash:
        stash[BESIDE] = Beside(targets_of(request.session.items))
    return stash[BESIDE]


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the folder of a recorded trace of tests/traces, unpacked once per session. Don't write into it."""
    unpacked: dict[str, Path] = {}
    target = tmp_path_factory.mktemp("traces")

    def get(name: str) -> Path:
        if name not in unpacked:
            unpacked[name] = unpack(name, target)
        return unpacked[name]

    return get


@pytest.fixture(scope="session")
def run_of(trace: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> RunOf:
    """Give the run of a recorded trace by its own model, correlated once per session for all tests."""
    done: dict[tuple[str, str, str], Correlated] = {}

    def get(name: str, *, match: str = "pointer", reader: str = "native") -> Correlated:
        key = (name, match, reader)
        if key not in done:
            out = tmp_path_factory.mktemp("run")
            manifest = correlate(trace(name), model_of(name), out, match=match, reader=reader, progress=False)
            done[key] = Correlated(out, manifest)
        return done[key]

    return get


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime directory of the test's own: other recordings on this machine are none of its business. What a test
    that failed has left is cleaned up: its buffers would be in the way of other tests.
    """
    folder = Path(tempfile.mkdtemp(prefix="oplrt-", dir="/tmp"))  # short: sockets go below it
    monkeypatch.setenv("OPLINE_RUNTIME_DIR", str(folder))
    yield folder
    with contextlib.suppress(OplineError):
        sweep()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def opline() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the program in a process of its own: `opline("ops", run).stdout`; never raises for an exit status."""

    def run(*args: str | Path, cwd: Path | None = None, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).with_name("opline")
        return subprocess.run(
            [program, *map(str, args)],
            cwd=cwd,
            timeout=timeout,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    return run
