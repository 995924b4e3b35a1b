# SPDX-License-Identifier: MIT
"""No regular expression takes more than linear time, whatever the text (linear.py finds the texts)."""

from __future__ import annotations

import pytest
from tests.house.linear import Pattern, patterns_of, slow_text

FOUND_AT_LEAST = 50  # patterns in each package


@pytest.mark.parametrize("package", ["opline", "opline_analyses"])
def test_patterns_are_linear(package: str) -> None:
    patterns = list(patterns_of(package))
    assert len(patterns) >= FOUND_AT_LEAST
    slow = [text for pattern in patterns if (text := slow_text(pattern))]
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize(
    ("text", "method"),
    [(r"\s*(.*?)\s*", "fullmatch"), (r"(\w+) = 1", "findall"), (r"a.*?b=\s*1.*?c=1", "match"), (r"(a+)+b", "match")],
)
def test_patterns_that_are_not_linear_are_found(text: str, method: str) -> None:
    assert slow_text(Pattern("here", text, 0, (method,)))
