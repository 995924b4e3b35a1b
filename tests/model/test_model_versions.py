# SPDX-License-Identifier: MIT
"""The two versions of the model language: what the second writes otherwise means what the first said."""

from __future__ import annotations

import pytest

from opline.model import check_text

KEYS = """
[keys]
op = "id"
other = "id"
[points]
"""
BEGIN = 'begin = { event = "p:begin", role = "begin", key = "op", thread = "enter" }\n'
END = 'end = { event = "p:end", role = "end", key = "op", thread = "leave" }\n'


def plan(text: str, version: int) -> dict[str, object]:
    model, problems = check_text(f"version = {version}\n{text}", "m", "m.toml", advice=False)
    assert not [p for p in problems if p.severity == "error"], problems
    return model.plan()


def found(text: str, version: int = 2) -> list[str]:
    return [
        f"{p.line}: {p.severity}: {p.message}" for p in check_text(f"version = {version}\n{text}", "m", "m.toml")[1]
    ]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ('role = "soft_begin", key = "op"', 'role = "begin?", key = "op"'),
        ('role = "soft_end", key = "op"', 'role = "end?", key = "op"'),
        ('role = "soft_end", end_of = ["read", "stat"]', 'role = { "end?" = ["read", "stat"] }'),
        ('role = "end", end_of = "read"', 'role = { end = "read" }'),
        ('key = "op", wait = "other", meet = "op"', 'key = "op", join = { wait = "other", meet = "op" }'),
        ('sole = "op"', 'join = { sole = "op" }'),
        ('mark = "m"', 'stamp = { mark = "m" }'),
        ('key = "op", duration = "took"', 'key = "op", stamp = { duration = "took" }'),
        (
            'key = "op", duration = { field = "took", unit = "ms" }',
            'key = "op", stamp = { duration = "took", unit = "ms" }',
        ),
        (
            'key = "op", io = "begin", offset = "o", length = "l", direction = "read", file_by = "fd"',
            'key = "op", io = { in_flight = "begin", offset = "o", length = "l", direction = "read", file_by = "fd" }',
        ),
        ('key = "op", sync_wait = "begin"', 'key = "op", io = { sync = "begin" }'),
    ],
)
def test_what_is_written_otherwise_means_the_same(one: str, two: str) -> None:
    points = [KEYS + BEGIN + END + f'x = {{ event = "p:x", {fields} }}\n' for fields in (one, two)]
    assert plan(points[0], 1) == plan(points[1], 2)
    assert any("has no field" in line or "is wanted" in line for line in found(points[0]))


def test_a_batch_that_nothing_opens() -> None:
    def text(work: str, join: str) -> str:
        return (
            KEYS + BEGIN + END + f'work = {{ event = "p:work", batch = {{ {work} = "kv" }} }}\n'
            f'join = {{ event = "p:join", key = "op", batch = {{ {join} = "kv" }} }}\n'
            'close = { event = "p:close", batch = { close = "kv" } }\n'
        )

    assert plan(text("open_or_work", "open_or_join"), 1) == plan(
        text("work", "join") + "[batches]\nkv = { auto = true }\n", 2
    )
    assert "[batches] none is not used" in "".join(found(text("open", "join") + "[batches]\nnone = { auto = true }\n"))


def test_groups_stand_for_their_points() -> None:
    text = KEYS + BEGIN + END + 'x = { event = "p:x", key = "op", after = ["both"] }\n'
    whole = text + '[stages]\ns = { from = "both", to = "x" }\n[groups]\nboth = ["begin", "end"]\n'
    points = plan(whole, 2)["points"]
    assert isinstance(points, list) and points[-1]["after"] == ["begin", "end"]
    assert plan(whole, 2)["stages"] == [
        {"name": "s", "from": name, "to": "x", "kind": "work"} for name in ("begin", "end")
    ]
    assert any("group x: a point has this name" in line for line in found(whole.replace("both", "x")))
    assert any(
        "`after` names gone, which is no point" in line for line in found(whole.replace('"begin", "end"]', '"gone"]'))
    )


def test_defaults_are_of_events_and_a_point_may_say_otherwise() -> None:
    text = (
        KEYS + BEGIN + END + 'x = { event = "q:x", key = "op" }\ny = { event = "q:y", key = "op", optional = false }\n'
    )
    points = plan(text + '[defaults]\n"q:*" = { optional = true }\n', 2)["points"]
    assert isinstance(points, list)
    assert [p.get("optional") for p in points] == [None, None, True, None]
    assert any("[defaults] r:* is not used" in line for line in found(text + '[defaults]\n"r:*" = { aside = true }\n'))
    assert any(
        "defaults of q:* has no field `event`" in line for line in found(text + '[defaults]\n"q:*".event = "x"\n')
    )


def test_a_point_may_be_called_as_a_field_is() -> None:
    dotted = BEGIN + END + 'commit.join = { event = "p:join", key = "op" }\ncommit.io = "p:io"\n'
    points = plan(KEYS + dotted, 2)["points"]
    assert isinstance(points, list) and [p["name"] for p in points][2:] == ["commit.join", "commit.io"]


def test_mistakes_have_their_line_and_the_versions_words() -> None:
    text = KEYS + BEGIN + END
    assert found(text, 3)[0] == "1: error: `version = 3`: this opline reads 1 and 2"
    assert "has no field `waits` (did you mean `wait`?)" in "".join(
        found(text + 'x = { event = "p:x", join = { waits = "op" } }\n')
    )
    assert "one of begin, end, begin?, end? is wanted" in "".join(
        found(text + 'x = { event = "p:x", role = "soft_end" }\n')
    )
    assert "a model has no field `groups`" in "".join(found(text + "[groups]\na = []\n", 1))
    assert "`unit` goes with `duration`" in "".join(found(text + 'x = { event = "p:x", stamp = { unit = "s" } }\n'))
    assert "is wanted" in "".join(found(text + 'x = { event = "p:x", key = "op", role = { begin = "a" } }\n'))
