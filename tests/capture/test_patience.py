# SPDX-License-Identifier: MIT
"""A helper process on a busy machine is waited for as long as it works."""

from __future__ import annotations

import pytest

from opline.capture.machine import patience
from opline.capture.machine.patience import Patience


@pytest.mark.parametrize(
    ("share", "waited_s"),
    [
        (1.0, 30),  # it has the CPU and does not get ready
        (0.25, 120),  # of four that want the CPU
        (0.4, 90),  # more than 30 s of CPU time after the third look
        (0.0, 30),  # it hangs
        (0.005, 30),
    ],
)
def test_it_is_waited_for_by_what_it_gets_done(share: float, waited_s: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr(patience, "_spent_s", lambda _: 7.0 + share * (now - 1000))
    waits = Patience(1, 30)
    while waits.left_s > 0:
        now += 1
    assert now - 1000 == waited_s


def test_a_process_that_is_gone_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Patience(2**22, 0).left_s == 0
