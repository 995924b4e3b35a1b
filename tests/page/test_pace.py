# SPDX-License-Identifier: MIT
"""How often a recording that goes on is looked at: not more often than the answers about it can be made."""

from __future__ import annotations

from opline_analyses.view.pace import MOST_S, SHARE, Pace


def test_a_look_waits_until_the_last_ones_answers_have_paid_off() -> None:
    now = [100.0]
    pace = Pace(lambda: now[0])
    with pace.looking(), pace.answering():
        now[0] += 10  # libraries are loaded
    assert pace.due()
    with pace.looking():
        now[0] += 1  # it takes a second
    assert not pace.due()
    now[0] += SHARE - 1.5
    assert not pace.due()
    with pace.answering():
        now[0] += 0.5
        assert not pace.due()  # while it is being answered
    assert not pace.due()
    now[0] = 110 + SHARE * (1 + 0.5)
    assert pace.due()
    with pace.looking():
        pass
    assert pace.due()  # it cost nothing


def test_who_asks_without_a_pause_does_not_stop_the_looks() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    looks = 0
    for _ in range(100):  # each answer takes most of the time until the next question
        with pace.answering():
            now[0] += 0.4
        now[0] += 0.1
        if pace.due():
            looks += 1
            with pace.looking():
                now[0] += 0.1
    assert looks > 100 * 0.5 / (MOST_S + 1)
    with pace.looking():
        now[0] += MOST_S
    assert not pace.due()  # a look that takes long has its own rest
    with pace.answering():
        now[0] += SHARE * MOST_S
        assert pace.due()  # one answer that does not end does not stop them either


def test_what_fails_is_over_too() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    with pace.looking():
        pass
    for work in (pace.looking, pace.answering):
        try:
            with work():
                now[0] += 1
                raise ValueError
        except ValueError:
            pass
    assert not pace.due()
    now[0] = SHARE * 2
    assert pace.due()
