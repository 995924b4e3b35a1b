# SPDX-License-Identifier: MIT
"""What CI's last line counts: tests/closing.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import closing

HEAD, END = '<testsuites><testsuite name="pytest">', "</testsuite></testsuites>"
CASES = {
    "passed": '<testcase classname="a" name="{}"/>',
    "failed": '<testcase classname="a" name="{}"><failure message="no"/></testcase>',
    "broken": '<testcase classname="a" name="{}"><error message="no"/></testcase>',
    "skipped": '<testcase classname="a" name="{}"><skipped/></testcase>',
}


def report(path: Path, **results: str) -> Path:
    path.write_text(HEAD + "".join(CASES[result].format(name) for name, result in results.items()) + END)
    return path


def test_failures_and_errors_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = report(tmp_path / "r.xml", one="passed", two="failed", three="broken", four="skipped")
    assert closing.main([path]) == 1
    assert capsys.readouterr().out == "1 passed, 2 failed\n"


def test_a_test_whose_fixture_breaks_at_its_end_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.xml"
    path.write_text(HEAD + CASES["passed"].format("one") + CASES["broken"].format("one") + END)
    assert closing.main([path]) == 1
    assert capsys.readouterr().out == "0 passed, 1 failed\n"


def test_what_passed_when_it_was_tried_again_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = report(tmp_path / "1.xml", one="passed", two="failed")
    again = report(tmp_path / "2.xml", two="passed")
    assert closing.main([first, again]) == 0
    last = "2 passed, 0 failed, 1 of the passed at the second try"
    assert capsys.readouterr().out == f"passed only when it was tried again: a::two\n{last}\n"


def test_what_failed_twice_has_failed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = [report(tmp_path / f"{number}.xml", one="failed") for number in (1, 2)]
    assert closing.main(reports) == 1
    assert capsys.readouterr().out == "0 passed, 1 failed\n"


def test_a_report_that_is_missing_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert closing.main([report(tmp_path / "r.xml", one="passed"), tmp_path / "none.xml"]) == 1
    assert capsys.readouterr().out.endswith("1 passed, 1 failed\n")
