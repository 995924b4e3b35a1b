# SPDX-License-Identifier: MIT
"""How opline starts a helper in Python."""

from __future__ import annotations

import sys


def python(*arguments: str) -> list[str]:
    """What starts this interpreter as a helper. Its modules are ours and the system's: ``-P`` keeps the current
    directory, where anybody's ``bcc.py`` may lie, off the path of a helper that runs as root.
    """
    return [sys.executable, "-P", *arguments]
