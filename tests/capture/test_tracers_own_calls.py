# SPDX-License-Identifier: MIT
"""The calls of a program with LTTng-UST are the program's: LTTng-UST's reads of the libraries' files, which tell where
they lie in memory, are made only where their events are recorded.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.block_capture import loop_device
from tests.lib.lab import build_lab
from tests.lib.recorder import status

from opline.capture.lttng.application import environment

WRITES = 40
OF_LIBRARIES = "LTTNG_UST_WITHOUT_BADDR_STATEDUMP"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab(tmp_path_factory.mktemp("lab"))


@pytest.mark.live
def test_calls_are_the_programs(
    lab: Path, opline: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Where its events are asked for, LTTng-UST reads each library, and the program's own file, in many small calls."""
    reads = {}
    for number, events in enumerate(("lab:*", "lttng_ust_statedump:*")):
        run = tmp_path / f"run{number}"
        with loop_device() as device:
            done = opline(
                "record", "-o", run, "--model", "syscalls", "--events", events, "--",
                lab, "direct", device, WRITES, 1, 4,
            )  # fmt: skip
            assert status(done) == 0, done.stderr
        found = json.loads(opline("sql", run, "SELECT class, object FROM ops WHERE population", "--json").stdout)
        assert sum(row["object"] == device for row in found) >= WRITES
        reads[events] = sum(row["class"] == "read" for row in found)
    assert reads["lttng_ust_statedump:*"] > 4 * reads["lab:*"], reads


def test_what_the_user_says_counts() -> None:
    assert environment({}, ["lab:*"])[OF_LIBRARIES] == "1"
    assert environment({OF_LIBRARIES: "0"}, ["lab:*"])[OF_LIBRARIES] == "0"
    for glob in ("*", "lttng_ust*", "lttng_ust_statedump:bin_info"):
        assert OF_LIBRARIES not in environment({}, [glob])


@pytest.mark.live
def test_a_program_without_tracepoints_reads_no_library_of_the_tracers_but_one(
    opline: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """It forks three times and starts another program: each exec reads the library that is preloaded."""
    run = tmp_path / "run"
    done = opline("record", "-o", run, "--", "sh", "-c", "(:); (:); (:); /bin/cat /etc/hostname; :")
    assert status(done) == 0, done.stderr
    found = json.loads(opline("sql", run, "SELECT object FROM ops WHERE population", "--json").stdout)
    names = [Path(row["object"] or "").name for row in found]
    assert names.count("libopline-ust.so") == 2 and "hostname" in names
    assert not [name for name in names if name.startswith("liblttng")]
