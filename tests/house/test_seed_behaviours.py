# SPDX-License-Identifier: MIT
"""What the well-known tools for block latency do, by number (C1.1 to C7.19): each behaviour is named by a test that
shows it, or by a sentence of docs/coming-from.md (in a comment there) that says what to do instead.
"""

from __future__ import annotations

import re
from pathlib import Path

TESTS = next(folder for folder in Path(__file__).resolve().parents if folder.name == "tests")
#: How many behaviours each group has: latencies of ops, SystemTap's scripts, PyLatencyMap, iolatency, iosnoop and
#: its neighbours, DTrace's rows at 10 Hz, heat maps from perf.
GROUPS = (14, 18, 20, 13, 6, 8, 19)


def test_each_behaviour_is_named_where_it_is_shown() -> None:
    sources = [path for path in TESTS.rglob("test_*.py") if path.name != Path(__file__).name]
    named = set()
    for path in (*sources, TESTS.parent / "docs" / "coming-from.md"):
        named |= {f"C{group}.{n}" for group, n in re.findall(r"(?:\b|_)[Cc]([1-7])[._](\d+)", path.read_text())}
    known = {f"C{group}.{n}" for group, many in enumerate(GROUPS, 1) for n in range(1, many + 1)}
    assert sorted(known - named) == [], "named nowhere"
    assert not named - known, "there is no such behaviour"
