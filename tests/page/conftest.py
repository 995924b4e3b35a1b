# SPDX-License-Identifier: MIT
"""The browser of a module's tests, and pages of runs in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lib.browser import Browser, Page

from opline_analyses.cli import main


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as running:
        yield running


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens the page of a run. At the end: nothing was said on the console, nothing was asked for but the page."""
    pages: list[tuple[Page, str]] = []

    def get(run: Path, part: str = "", against: Path | None = None, **options: Any) -> Page:
        file = tmp_path / f"{run.name}.html"
        if not file.exists():
            assert main(["report", str(run), *([str(against)] if against else []), "-o", str(file)]) == 0
        page = browser.open(file, part, **options)
        pages.append((page, file.as_uri()))
        return page

    yield get
    for page, address in pages:
        assert page.errors == []
        assert page.requests == [address]
