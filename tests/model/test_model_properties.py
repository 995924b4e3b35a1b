# SPDX-License-Identifier: MIT
"""Nothing that a file can contain makes the model's parser fall over: it gives problems with lines, or a plan."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lib.recorded import OWN_MODELS

from opline.model import check_text, load_model, shipped_models
from opline.model.language import GONE, POINT_FIELDS

_SOURCES = [load_model(name).text for name in shipped_models()] + [path.read_text() for path in OWN_MODELS]
_NAMES = [
    "points",
    "keys",
    "stages",
    "title",
    "fields",
    "scope",
    "from",
    "to",
    "kind",
    "open",
    "op",
    "p:x",
    "begin",
    "enter",
    "{f}",
    "a.b",
    "op(a)",
    "s",
    "Q",
    "x#2",
    "é",
]
_WORDS = st.sampled_from([*POINT_FIELDS, *GONE, *_NAMES, ""])
_SCALARS = st.one_of(_WORDS, st.integers(-(2**70), 2**70), st.booleans(), st.floats())
_TREES = st.recursive(_SCALARS, lambda t: st.one_of(st.lists(t, max_size=3), st.dictionaries(_WORDS, t, max_size=4)))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _sane(text: str) -> None:
    model, problems = check_text(text, "m", "m.toml")
    assert all(0 <= p.line <= text.count("\n") + 1 and p.severity in ("error", "warning", "note") for p in problems)
    if not [p for p in problems if p.severity == "error"]:
        plan = json.loads(model.plan_json())
        assert model.bios or model.requests or any(p["role"] == "begin" for p in plan["points"])


@settings(max_examples=75)
@given(
    st.dictionaries(_WORDS, _TREES, max_size=4),
    st.dictionaries(_WORDS, _TREES, max_size=4),
    st.dictionaries(_WORDS, _TREES),
)
def test_any_tree_gives_problems_or_a_plan(points: dict[str, Any], keys: dict[str, Any], rest: dict[str, Any]) -> None:
    tables = {"keys": keys, "points": points, **rest}
    _sane("".join(f"{json.dumps(k, ensure_ascii=False)} = {_toml(v)}\n" for k, v in tables.items()))


@settings(max_examples=60)
@given(st.sampled_from(_SOURCES), st.data())
def test_a_damaged_model_gives_problems_or_a_plan(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        line = lines[at]
        cut = data.draw(st.integers(0, len(line)))
        lines[at] = data.draw(
            st.sampled_from(
                [
                    line[:cut],
                    line[cut:],
                    "",
                    line + "\n" + line,
                    line[:cut] + '"' + line[cut:],
                    line[:cut] + "x" + line[cut:],
                    line.replace("=", "", 1),
                ]
            )
        )
    _sane("\n".join(lines))


@settings(max_examples=50)
@given(st.text())
def test_any_text_gives_problems(text: str) -> None:
    _sane(text)
