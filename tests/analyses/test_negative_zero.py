# SPDX-License-Identifier: MIT
"""What rounds to nothing has no sign."""

from __future__ import annotations

import pytest

from opline_analyses.base.text import duration, percent, us
from opline_analyses.compare.verdicts import by, change


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (us(-0.4, 1), "0.0"),
        (us(-0.0, 3), "0.000"),
        (us(-60.0, 1), "-0.1"),
        (us(-60), "-0.060"),
        (percent(-0.001, 100.0), "0.0"),
        (percent(-1e-6, 1.0, 2), "0.00"),
        (percent(-1.0, 100.0), "-1.0"),
        (duration(-0.2), "0 ns"),
        (change(-1e-9), "+0 %"),
        (change(-0.05), "-4.9 %"),
        (by(0.05, -1e-9, 0.1), "by 5.1 % [0, 11]"),
    ],
)
def test_what_rounds_to_nothing_has_no_sign(text: str, wanted: str) -> None:
    assert text == wanted
