# SPDX-License-Identifier: MIT
"""The closing line of test runs, from pytest's JUnit reports; exit status 1 if any failed.

`N passed, N failed`, and where a test passed only at the second try `, N of the passed at the second try`.

usage: closing.py REPORT...      a report that is missing counts as one failure

A test that is in several reports was tried again: the last one counts, and a line names who passed only then.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def results(report: Path) -> dict[str, str]:
    """What became of each test of a report; errors, of a test's fixtures too, are failures."""
    found: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            found[name] = FAILED
        elif case.find("skipped") is not None:
            found.setdefault(name, SKIPPED)
        else:
            found.setdefault(name, PASSED)
    return found


def main(reports: list[Path]) -> int:
    last: dict[str, str] = {}
    missing, again = 0, 0
    for report in reports:
        if not report.exists():
            print(f"{report}: there is no such report")
            missing += 1
            continue
        for name, result in results(report).items():
            if last.get(name) == FAILED and result == PASSED:
                print(f"passed only when it was tried again: {name}")
                again += 1
            last[name] = result
    passed, failed = (list(last.values()).count(what) for what in (PASSED, FAILED))
    print(
        f"{passed} passed, {failed + missing} failed" + (f", {again} of the passed at the second try" if again else "")
    )
    return 1 if failed + missing else 0


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]]))
