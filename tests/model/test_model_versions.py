# SPDX-License-Identifier: MIT
"""The version of the model language, words that are gone, and the tables that say something for several points."""

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
    ("old", "word", "instead"),
    [
        ('role = "end", end_of = "read"', "end_of", 'role = { end = ["CLASS"] }'),
        ('key = "op", wait = "other", meet = "op"', "meet", 'join = { meet = "KEY" }'),
        ('sole = "op"', "sole", 'join = { sole = "KEY" }'),
        ('mark = "m"', "mark", 'stamp = { mark = "MARK" }'),
        ('key = "op", duration = "took"', "duration", "a point for an event at the begin of what took so long"),
        ('key = "op", stamp = { duration = "took", unit = "ms" }', "unit", "nothing: `duration` is gone as well"),
        ('key = "op", once = true', "once", "nothing: every time that an op passes the point is recorded"),
        ('key = "op", offset = "o"', "offset", 'io = { offset = "FIELD" }'),
        ('key = "op", sync_wait = "begin"', "sync_wait", 'io = { sync = "begin" }'),
        (
            'key = "op", batch = { open_or_work = "kv" }',
            "open_or_work",
            'work = "BATCH", and [batches] BATCH = { auto = true }',
        ),
    ],
)
def test_a_word_that_is_gone_has_one_line_that_says_what_to_write(old: str, word: str, instead: str) -> None:
    lines = found(KEYS + BEGIN + END + f'x = {{ event = "p:x", {old} }}\n')
    assert [line for line in lines if f"has no field `{word}`: write {instead}" in line and ": error: " in line], lines


def test_version_1_is_told_what_to_do() -> None:
    (line,) = [line for line in found(KEYS + BEGIN + END, 1) if ": error: " in line]
    what = "write `version = 2`, then `opline model lint` says what to write for each word that is gone"
    assert line == f"1: error: version 1 of the language is no longer read: {what}"
    model, problems = check_text(KEYS + BEGIN + END, "m", "m.toml")
    assert not [p for p in problems if p.severity == "error"] and model.plan()["points"], "version may be left out"


def test_a_batch_that_nothing_opens() -> None:
    def text(work: str, join: str) -> str:
        return (
            KEYS + BEGIN + END + f'work = {{ event = "p:work", batch = {{ {work} = "kv" }} }}\n'
            f'join = {{ event = "p:join", key = "op", batch = {{ {join} = "kv" }} }}\n'
            'close = { event = "p:close", batch = { close = "kv" } }\n'
        )

    points = plan(text("work", "join") + "[batches]\nkv = { auto = true }\n", 2)["points"]
    assert isinstance(points, list)
    assert [p["batch"]["do"] for p in points if "batch" in p] == ["open_or_work", "open_or_join", "close"]
    assert "[batches] none is not used" in "".join(found(text("open", "join") + "[batches]\nnone = { auto = true }\n"))


def test_groups_stand_for_their_points() -> None:
    text = KEYS + BEGIN + END + 'x = { event = "p:x", key = "op", after = ["both"] }\n'
    whole = text + '[stages]\ns = { from = "both", to = "x" }\n[groups]\nboth = ["begin", "end"]\n'
    points = plan(whole, 2)["points"]
    assert isinstance(points, list) and points[-1]["after"] == ["begin", "end"]
    assert plan(whole, 2)["stages"] == [{"name": "s", "from": name, "to": "x"} for name in ("begin", "end")]
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
    assert found(text, 3)[0] == "1: error: `version = 3`: this opline reads 2"
    assert "has no field `waits` (did you mean `wait`?)" in "".join(
        found(text + 'x = { event = "p:x", join = { waits = "op" } }\n')
    )
    assert "one of begin, end, begin?, end? is wanted" in "".join(
        found(text + 'x = { event = "p:x", role = "soft_end" }\n')
    )
    assert "is wanted" in "".join(found(text + 'x = { event = "p:x", key = "op", role = { begin = "a" } }\n'))
