# SPDX-License-Identifier: MIT
"""The descriptors of a recorded command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.recorder import APP_ONLY

pytestmark = pytest.mark.live


def test_the_command_has_the_descriptors_that_its_caller_gives_it(runtime: Path, tmp_path: Path) -> None:
    """A file, a pipe of the shell's <(...), a socket of systemd or the jobs of a make: as without the recorder."""
    given = tmp_path / "given"
    given.write_text("given\n")
    with given.open("rb") as file:
        number = file.fileno()
        shell = f"cat /proc/self/fd/{number}; ls /proc/self/fd | wc -l"
        plain = subprocess.run(["sh", "-c", shell], pass_fds=[number], capture_output=True, text=True, check=True)
        argv = [sys.executable, "-m", "opline_analyses", "record", *map(str, ("-o", tmp_path / "run", *APP_ONLY))]
        done = subprocess.run(
            [*argv, "--", "sh", "-c", shell], pass_fds=[number], capture_output=True, text=True, check=True
        )
    assert done.stdout == plain.stdout and plain.stdout.startswith("given\n")
