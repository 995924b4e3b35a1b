# SPDX-License-Identifier: MIT
"""Who can put events into root's running recording: processes below the recorded command, and no others.

The path of the application socket is a secret of the command's environment. Another user sees none of it: not in
/proc/net/unix, not in the arguments of a process, not in a listing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.capture.test_record import ticker
from tests.lib.recorder import APP_ONLY, finish, manifest, start, wait_for_ticks

__all__ = ["ticker"]
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user"),
]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
LOOK = """
import os, pathlib
print(pathlib.Path("/proc/net/unix").read_text())
for entry in pathlib.Path("/proc").glob("[0-9]*"):
    for name in ("cmdline", "environ", "cwd", "mountinfo"):
        try:
            file = entry / name
            print(os.readlink(file) if name == "cwd" else file.read_bytes().decode())
        except (OSError, ValueError):
            pass
for folder, folders, files in os.walk(os.environ["OPLINE_RUNTIME_DIR"]):
    print(folder, folders, files)
"""


@pytest.fixture
def program(ticker: Path) -> Iterator[Path]:
    """The ticker where any user may run it."""
    folder = Path(tempfile.mkdtemp(prefix="oplt-", dir="/tmp"))
    folder.chmod(0o755)
    yield Path(shutil.copy(ticker, folder / "ticker"))
    shutil.rmtree(folder)


def test_a_user_who_is_not_recorded_gets_no_event_in(
    ticker: Path, program: Path, runtime: Path, tmp_path: Path
) -> None:
    """With all paths that this user can see as LTTNG_HOME, and with those that the recorder's folder can be guessed
    from.
    """
    runtime.chmod(0o711)
    run = tmp_path / "run"
    process = start("-o", run, *APP_ONLY, "--", ticker, 3001, 1_000)
    wait_for_ticks(run)
    (folder,) = runtime.iterdir()
    (home,) = (path for path in folder.iterdir() if (path / ".lttng").is_dir())
    seen = subprocess.run([*NOBODY, "/usr/bin/python3", "-c", LOOK], capture_output=True, text=True, check=True).stdout
    assert home.name not in seen
    paths = {Path(path) for path in re.findall(re.escape(str(runtime)) + r"[\w/.-]*", seen)}
    guesses = {runtime, folder, folder / "home", *paths, *(p.parent for p in paths), *(p.parent.parent for p in paths)}
    for guess in guesses:
        env = {"PATH": os.environ["PATH"], "LTTNG_HOME": str(guess), "LTTNG_UST_REGISTER_TIMEOUT": "200"}
        subprocess.run([*NOBODY, program, "7"], env=env, capture_output=True, check=True, timeout=60)
    time.sleep(0.5)
    done = finish(process)
    assert done.returncode == 0, done.stderr
    assert manifest(run)["event_count"] == 3001


def test_a_command_that_becomes_another_user_is_recorded(program: Path, runtime: Path, tmp_path: Path) -> None:
    """It has the path from its environment."""
    runtime.chmod(0o711)
    run = tmp_path / "run"
    done = finish(start("-o", run, *APP_ONLY, "--", *NOBODY, program, 101))
    assert done.returncode == 0, done.stderr
    assert manifest(run)["event_count"] == 101
