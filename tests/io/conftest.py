# SPDX-License-Identifier: MIT
"""What the tests of the block commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opline_analyses.cli import main


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that succeeds; gives its standard output."""

    def run(*words: str | Path) -> str:
        capfd.readouterr()
        assert main([str(word) for word in words]) == 0
        return capfd.readouterr().out

    return run


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    """Runs a command that succeeds; gives its standard output and error."""

    def run(*words: str | Path) -> tuple[str, str]:
        assert main([str(word) for word in words]) == 0
        out = capfd.readouterr()
        return out.out, out.err

    return run
