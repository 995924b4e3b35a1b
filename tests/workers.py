# SPDX-License-Identifier: MIT
"""Shares the tests out to three workers (`pytest -n 3 --dist loadscope --no-loadscope-reorder`, as ./check does).

The first worker has the files of tests that record on this machine, one after the other, since two recordings at once
would disturb each other; then the house's checks. The others compute meanwhile, file by file: recordings wait for half
of their time.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from xdist.scheduler.loadscope import LoadScopeScheduling

ROOT = Path(__file__).resolve().parent.parent


@cache
def records(file: str) -> bool:
    """Whether a file's tests record, or are the house's checks."""
    return "mark.live" in (ROOT / file).read_text() or file.endswith("/test_house.py")


class RecordersFirst(LoadScopeScheduling):  # type: ignore[misc]  # it has no type hints
    """All files of tests marked `live` and test_house.py are one piece of work, any other file is one of its own."""

    @property
    def nodes(self) -> list[Any]:
        """In the order of their names, not of getting ready: the first one has the first piece of work."""
        return sorted(super().nodes, key=lambda node: str(node.gateway.id))

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "records" if records(file) else file
