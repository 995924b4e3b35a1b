# SPDX-License-Identifier: MIT
"""What `opline --version` says: our version, the readers, and the babeltrace2 and LTTng that they meet."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess

from opline import __version__
from opline.errors import OplineError


def _first_line(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout.strip() or done.stderr.strip()).partition("\n")[0] or None


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def version_lines() -> list[str]:
    """One line per thing, ours first."""
    try:
        from opline.readers.babeltrace import version

        library = f"bt2 (libbabeltrace2 {version()})"
    except OplineError:
        library = "no bt2: install python3-bt2"
    return [
        f"opline {__version__}",
        f"readers      native, {library}",
        f"babeltrace2  {_first_line('babeltrace2', '--version') or 'not installed'}",
        f"lttng        {_first_line('lttng', '--version') or 'not installed'}",
        ", ".join(f"{name} {_installed(name)}" for name in ("duckdb", "pyarrow", "networkx", "matplotlib")),
    ]
