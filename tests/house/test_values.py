# SPDX-License-Identifier: MIT
"""Values with named fields: what frozen dataclasses would do, without the code that those generate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from opline.values import Value

ROOT = Path(__file__).resolve().parents[2]


class Point(Value):
    x: int
    y: int = 0
    names: tuple[str, ...] = ()


class Other(Value):
    x: int
    y: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Data:
    x: int
    y: int = 0
    names: tuple[str, ...] = ()


GIVEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, 2), {"names": ("a",)}),
    ((), {"y": 3, "x": 1}),
    ((1, 0, ()), {}),
]
WRONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1, 2, (), 4), {}),
    ((1,), {"x": 1}),
    ((1,), {"z": 1}),
]


@pytest.mark.parametrize(("args", "named"), GIVEN)
def test_fields_are_those_of_a_dataclass(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    point, data = Point(*args, **named), Data(*args, **named)
    assert list(vars(point).items()) == list(vars(data).items())
    assert repr(point) == repr(data).replace("Data", "Point")
    for others_args, others in GIVEN:
        assert (point == Point(*others_args, **others)) == (data == Data(*others_args, **others))
    assert point != Other(*args, **named) and point != (point.x, point.y, point.names)
    assert len({point, Point(*args, **named), Point(7)}) == 2


@pytest.mark.parametrize(("args", "named"), WRONG)
def test_wrong_fields_are_refused(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Data(*args, **named)
    with pytest.raises(TypeError):
        Point(*args, **named)


def test_a_value_does_not_change() -> None:
    point = Point(1)
    for name in ("x", "z"):
        with pytest.raises(AttributeError):
            setattr(point, name, 2)
    with pytest.raises(AttributeError):
        del point.x
    assert point == Point(1)


def test_frozen_dataclasses_are_parts_of_the_manifest() -> None:
    """Every other immutable class is a `Value` or a `NamedTuple` (docs/internals/design.md)."""
    frozen = set()
    for path in (p for top in ("correlator", "analyses") for p in (ROOT / top).rglob("*.py")):
        frozen |= set(re.findall(r"@dataclass\([^)]*frozen=True[^)]*\)\nclass (\w+)", path.read_text()))
    assert frozen == {"BlockDevice", "ClockSample", "Host"}
