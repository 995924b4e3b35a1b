# SPDX-License-Identifier: MIT
"""The house's checks: formatting, lint, types, generated docs, and the native tests.

Each is a target of the Makefile, so that `make lint` and the test command can't differ. They run beside the other tests
(beside.py) and are asked for last.
"""

from __future__ import annotations

import pytest
from tests.lib.beside import Beside

# the longest first: they are under way while the rest of the tests is
TARGETS = ("native-test", "mypy", "docs-check", "ruff", "format-check")


@pytest.mark.parametrize("target", TARGETS)
def test_make(target: str, beside: Beside) -> None:
    done = beside.result(target)
    if done.returncode != 0:
        pytest.fail(f"make {target}:\n{done.stdout[-8000:]}{done.stderr[-8000:]}", pytrace=False)
