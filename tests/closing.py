# SPDX-License-Identifier: MIT
"""The closing line of test runs, from pytest's JUnit reports: `N passed, N failed`; exit status 1 if any failed.

usage: closing.py REPORT...      a report that is missing counts as one failure
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def counts(report: Path) -> tuple[int, int]:
    """Passed and failed tests of a report; errors are failures."""
    if not report.exists():
        return 0, 1
    passed = failed = 0
    for suite in ET.parse(report).iter("testsuite"):
        tests, *others = (int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped"))
        passed += tests - sum(others)
        failed += sum(others[:2])
    return passed, failed


def main() -> int:
    passed, failed = (sum(column) for column in zip(*map(counts, map(Path, sys.argv[1:])), strict=True))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
