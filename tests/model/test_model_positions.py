# SPDX-License-Identifier: MIT
"""The line of every key in a TOML text: held against tomllib on generated texts."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opline.model.positions import Path, positions

_WORDS = st.text(alphabet="ab #[]{}=,.", max_size=4)
_STRINGS = st.one_of(
    _WORDS.map(lambda s: f'"{s}"'),
    _WORDS.map(lambda s: f"'{s}'"),
    st.sampled_from([r'"a\"b"', r'"\\"', r'"é \t"', '""', "''"]),
    st.sampled_from(
        ['"""x"""', '"""\na "quoted" word\n"""', '"""two at the end\\""""', '""""a"""', '""""""', '"""a"""""']
    ),
    st.sampled_from(["'''x'''", "'''\n# no comment\n[no.header]\n'''", "''''a'''", "''''''", "'''a'''''"]),
)
_LEAVES = st.one_of(
    _STRINGS,
    st.sampled_from(["1", "0x1f", "1_000", "1.5e3", "inf", "true", "1979-05-27 07:32:00", "1979-05-27", "07:32:00.5"]),
)
_GAPS = st.sampled_from(["", " ", "\n", " # a comment, with [brackets]\n", "\n\n  "])


def _arrays(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.lists(st.tuples(_GAPS, values, _GAPS)), st.booleans(), _GAPS).map(
        lambda a: "[" + ",".join("".join(part) for part in a[0]) + ("," if a[1] and a[0] else "") + a[2] + "]"
    )


def _inline(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=3).map(
        lambda vs: "{ " + ", ".join(f"n{i}.'x y' = {v}" if i % 2 else f'"q{i}"={v}' for i, v in enumerate(vs)) + " }"
    )


_VALUES = st.recursive(_LEAVES, lambda v: st.one_of(_arrays(v), _inline(v)), max_leaves=8)
_STATEMENTS = st.one_of(
    st.tuples(st.sampled_from(["a", "a.b", '"a.b"', "'c'", "d . e", r'"\u00e9"', "1"]), _VALUES).map(
        lambda p: f"{p[0]} = {p[1]}"
    ),
    st.sampled_from(["[t]", "[t.u]", "[ t . 'v' ]", "[[l]]", "[[l.m]]", "[l.n]", "[[t.l]]", "# comment", "", "  "]),
)
_TEXTS = st.tuples(st.lists(_STATEMENTS, max_size=12), st.sampled_from(["\n", "\r\n", " # c\n"])).map(
    lambda t: t[1].join(t[0])
)


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _paths(inner, (*path, key))


@settings(max_examples=60)
@given(_TEXTS)
def test_every_key_of_a_text_has_a_place(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    assert set(positions(text)) == set(_paths(document))


@settings(max_examples=40)
@given(st.lists(st.tuples(_GAPS, _VALUES), min_size=1, max_size=6))
def test_a_key_stands_on_the_line_where_it_is_written(parts: list[tuple[str, str]]) -> None:
    text = ""
    expected: dict[Path, int] = {}
    for i, (gap, value) in enumerate(parts):
        text += ("" if gap.strip(" \n") and not gap.endswith("\n") else gap) + f"\nkey{i} = "
        expected[(f"key{i}",)] = text.count("\n") + 1
        text += value
    tomllib.loads(text)
    places = positions(text)
    assert {path: places[path].line for path in expected} == expected


def test_the_places_of_a_model() -> None:
    text = """\
title = "x"

[points]
a = { event = "p:a",
      }
""".replace(",\n      }", " }")
    text += 'b.c = [\n  "p:b",\n  { event = "p:c" },\n]\n\n[points.d]\nevent = "p:d"\n'
    places = positions(text)
    assert places[("points",)].line == 3
    assert places[("points", "a", "event")].line == 4
    assert [places[("points", "b", "c", i)].line for i in (0, 1)] == [6, 7]
    assert places[("points", "d", "event")].line == 11
    assert places[("points", "a")].inline and not places[("points", "d")].inline
