# SPDX-License-Identifier: MIT
"""How far apart the page's colours are for readers who see them in another way: distances in CIELAB (ΔE of 1976).

Dichromatic vision is simulated in linear RGB by the matrices of Machado, Oliveira and Fernandes (2009) at severity 1;
grey is the luminance.
"""

from __future__ import annotations

import re
from itertools import combinations, product

import pytest

from opline_analyses.base.colours import HUES, STATES, shades
from opline_analyses.report.document import asset

Vision = tuple[tuple[float, float, float], ...]
VISIONS: dict[str, Vision] = {
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "grey": ((0.2126, 0.7152, 0.0722),) * 3,
}
#: A difference of 2.3 is just noticeable; ten is seen at a glance in bars that do not touch.
AT_A_GLANCE = 10.0
WHITE = (0.95047, 1.0, 1.08883)
XYZ: Vision = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))


def times(matrix: Vision, vector: list[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def linear(value: int) -> float:
    share = value / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def lab(colour: str, vision: Vision) -> tuple[float, float, float]:
    """A colour #RRGGBB as it is seen: lightness, red against green, yellow against blue."""
    rgb = [linear(int(colour[i : i + 2], 16)) for i in (1, 3, 5)]
    seen = [min(1.0, max(0.0, part)) for part in times(vision, rgb)]
    x, y, z = (
        part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116
        for part in (value / white for value, white in zip(times(XYZ, seen), WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one: str, other: str, vision: Vision) -> float:
    squares = ((a - b) ** 2 for a, b in zip(lab(one, vision), lab(other, vision), strict=True))
    return float(sum(squares) ** 0.5)


def closest(colours: dict[str, str], vision: Vision) -> tuple[float, str, str]:
    return min((apart(a, b, vision), one, other) for (one, a), (other, b) in combinations(colours.items(), 2))


def test_the_measure() -> None:
    """White against black is 100 in any vision; in deuteranopia red and green of one lightness come together."""
    for vision in VISIONS.values():
        assert apart("#FFFFFF", "#000000", vision) == pytest.approx(100, abs=0.5)
    red, green = "#D02020", "#508000"
    assert apart(red, green, VISIONS["deuteranopia"]) < apart(red, green, ((1, 0, 0), (0, 1, 0), (0, 0, 1))) / 3


@pytest.mark.parametrize("name", VISIONS)
def test_states_of_threads_stay_apart(name: str) -> None:
    assert closest(dict(STATES.values()), VISIONS[name])[0] > AT_A_GLANCE


@pytest.mark.parametrize("name", ["deuteranopia", "protanopia"])
def test_the_hues_of_kinds_stay_apart(name: str) -> None:
    """In grey they do not: six kinds with six shades each are too many for one axis, so names are printed."""
    assert closest({kind: hues[0] for kind, hues in HUES.items()}, VISIONS[name])[0] > AT_A_GLANCE


@pytest.mark.parametrize("name", VISIONS)
def test_no_shade_of_a_wait_looks_like_time_at_the_device(name: str) -> None:
    nearest = min(apart(wait, device, VISIONS[name]) for wait in shades("wait") for device in shades("device"))
    assert nearest > 1.5 * AT_A_GLANCE


@pytest.mark.parametrize("name", VISIONS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_more_and_fewer_ops_than_the_other_run_stay_apart(theme: str, name: str) -> None:
    """Any colour of one side from any of the other, and all of them from the ground."""
    told = re.search(rf"{theme}: {{ less: \[(.*?)\], more: \[(.*?)\] }}", asset("scales.js"))
    assert told
    less, more = (re.findall(r"#\w{6}", side) for side in told.groups())
    assert len(less) == len(more) == 4
    ground = re.findall(r"--plot: (#\w{6});", asset("page.css"))[theme == "dark"]
    assert min(apart(a, b, VISIONS[name]) for a, b in product(less, more)) > AT_A_GLANCE
    assert min(apart(colour, ground, VISIONS[name]) for colour in less + more) > AT_A_GLANCE
    strengths = [[apart(colour, ground, VISIONS[name]) for colour in side] for side in (less, more)]
    assert strengths == [sorted(side) for side in strengths], "more difference, further from the ground"
