# SPDX-License-Identifier: MIT
"""`message` in a model: what the language takes, and the rows of the table `messages`."""

from __future__ import annotations

import pytest
from tests.lib.core_driver import run

from opline.model.lint import check
from opline.model.reader import parse

HEAD = """
version = 2
[keys]
number = { fields = ["client", "seq"], scope = "global" }
other = { fields = "seq", scope = "global" }
own = "handle"
[points]
"""
CLIENT = """
submit = { event = "app:submit", role = "begin", key = "own", thread = "enter" }
send = { event = "app:send", bind = "number", message = "send" }
done = { event = "app:done", key = "number", role = "end", thread = "leave", message = "receive" }
"""


def problems(points: str) -> list[str]:
    model, found = parse(HEAD + points, "m", "m.toml")
    return [p.message for p in [*found, *check(model)] if p.severity == "error"]


def test_both_ends_have_one_identity_and_messages_of_no_op_are_told() -> None:
    driver = run(
        HEAD + CLIENT,
        [
            "100 app:submit handle=1 tid=7 pid=5",
            "110 app:send client=3 seq=9 tid=7 pid=5",
            "150 app:done client=3 seq=9 tid=8 pid=5",
            "190 app:done client=3 seq=10 tid=8 pid=5",
        ],
    )
    rows = driver.tables()["messages"]
    assert [(r["ts_ns"], r["point"], r["direction"], r["tid"], r["pid"]) for r in rows] == [
        (110, "send", "send", 7, 5),
        (150, "done", "receive", 8, 5),
        (190, "done", "receive", 8, 5),
    ]
    assert rows[0]["identity"] == rows[1]["identity"] != rows[2]["identity"]


def test_a_named_key_is_the_identity() -> None:
    points = CLIENT.replace('message = "send"', 'message = { send = "other" }')
    rows = run(
        HEAD + points,
        [
            "100 app:submit handle=1 tid=7 pid=5",
            "110 app:send client=3 seq=9 tid=7 pid=5",
            "120 app:send client=4 seq=9 tid=7 pid=5",
        ],
    ).tables()["messages"]
    assert len({r["identity"] for r in rows}) == 1


@pytest.mark.parametrize(
    ("points", "error"),
    [
        ('a = { event = "x:y", role = "begin", key = "own", message = "send" }', "point a: `message` needs a key of"),
        (
            'a = { event = "x:y", role = "begin", key = "number", message = { send = "own" } }',
            'point a: `message`: the key space own is not of scope "global"',
        ),
        ('a = { event = "x:y", role = "begin", key = "number", message = "sent" }', '`message = "sent"`: one of'),
        ('a = { event = "x:y", role = "begin", key = "number", message = { sent = "x" } }', "`message` has no field"),
    ],
)
def test_mistakes_are_named(points: str, error: str) -> None:
    assert any(found.startswith(error) for found in problems(points)), problems(points)


def test_a_direction_without_its_other_end_is_a_warning() -> None:
    points = CLIENT.replace(', message = "receive"', "")
    model, _ = parse(HEAD + points, "m", "m.toml")
    assert 'point send: no point has message = "receive" with the key number' in [p.message for p in check(model)]


def test_a_point_may_be_called_message() -> None:
    model, found = parse(
        HEAD
        + 'server.message = "app:message"\nserver.got = { event = "app:got", role = "begin", key = "own" }\n'
        + 'client.message = { event = "app:sent", key = "own" }\n',
        "m",
        "m.toml",
    )
    assert not found
    assert [rule.name for rule in model.rules] == ["server.message", "server.got", "client.message"]
