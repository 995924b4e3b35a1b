# SPDX-License-Identifier: MIT
"""The core reads no plan that says something it has no rule for: the first mistake comes with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from opline import _core
from opline.model import load_model

SOUND: dict[str, Any] = load_model("demo").plan()


def changed(path: tuple[str | int, ...], value: object) -> str:
    plan = json.loads(json.dumps(SOUND))
    place = plan
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return json.dumps(plan)


def test_a_sound_plan_is_read() -> None:
    _core.Core(json.dumps(SOUND))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("points", 1, "role"), "soft_begin", r"points\[1\].*: a soft begin needs a key"),
        (("points", 1, "role"), "starts", r"points\[1\].role: \"starts\" is none of its words"),
        (("points", 2, "find"), [{"space": 99, "fields": ["x"]}], "no such key space"),
        (("points", 2, "find"), [{"space": 0, "fields": []}], "a key needs a field"),
        (("points", 2, "find"), [{"space": 0, "fields": ["x"], "facts": [7]}], "no such fact"),
        (("points", 2, "learn"), 3, r"points\[2\].*learn: no such fact"),
        (("points", 2, "object"), 3, r"points\[2\].object: a string or null is wanted"),
        (("points", 2, "after"), [3], r"points\[2\].after: a list of strings is wanted"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(path: tuple[str | int, ...], value: object, said: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=said):
        _core.Core(changed(path, value))


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"version": 99}', "null", "[" * 100_000])
def test_no_plan_at_all(text: str) -> None:
    with pytest.raises((ValueError, RuntimeError, KeyError)):
        _core.Core(text)
