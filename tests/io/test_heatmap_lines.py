# SPDX-License-Identifier: MIT
"""Percentiles in heat maps: exact for each column, at their height in the picture, as letters in the terminal."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.lib.io_runs import io_run

from opline_analyses.cli import main

IOS = [{"d": 1000 * n, "c": 1000 * n + 10 + (37 * n) % 400, "sector": 8 * n} for n in range(900)]


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Idle in the second half: columns of nothing."""
    return io_run(tmp_path_factory.mktemp("lines") / "run", IOS, seconds=2.0)


def ranked(percent: float) -> dict[int, int]:
    """By column of 0.1 s, the nearest rank, in ns."""
    columns: dict[int, list[int]] = defaultdict(list)
    for io in IOS:
        columns[int(io["c"] // 100_000)].append(round((io["c"] - io["d"]) * 1000))
    return {c: sorted(v)[max(1, math.ceil(len(v) * percent / 100)) - 1] for c, v in columns.items()}


def said(capfd: pytest.CaptureFixture[str], *words: str | Path) -> str:
    capfd.readouterr()
    assert main(["heatmap", *map(str, words)]) == 0
    return capfd.readouterr().out


def test_each_column_has_its_own(some: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = json.loads(said(capfd, some, "--stepsec=0.1", "--percentiles", "99,50,100", "--json"))
    assert list(found["percentiles"]) == ["p50", "p99", "p100"]
    for name, percent in (("p50", 50), ("p99", 99), ("p100", 100)):
        expected = ranked(percent)
        assert found["percentiles"][name] == [expected.get(c) for c in range(found["columns"])]
    assert found["percentiles"]["p50"][-1] is None, "nothing is not 0"


def test_of_two_columns_they_are_the_same(some: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(some), "--pairs"]) == 0
    file = tmp_path / "pairs.txt"
    file.write_text("0 0\n" + capfd.readouterr().out)  # so that columns begin where the run's do
    text = said(capfd, "--unitstime=us", "--stepsec=0.1", "--percentiles", "50,99", file, "--json")
    for name, percent in (("p50", 50), ("p99", 99)):
        ours = json.loads(text)["percentiles"][name][1:]
        assert ours == [ranked(percent)[column] for column in range(1, 9)]


def test_the_picture_has_a_line_at_the_values_height(
    some: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--stepsec=0.1", "--rows=10", "--percentiles=50", "-o", tmp_path / "x.svg")
    said(capfd, some, *words)
    found = json.loads(said(capfd, some, *words[:3], "--json"))
    root = ET.parse(tmp_path / "x.svg").getroot()
    (line,) = [e for e in root.iter() if e.get("class") == "percentile"]
    points = [tuple(map(float, p.split(","))) for p in line.get("points", "").split()]
    values = [v for v in found["percentiles"]["p50"] if v is not None]
    assert len(points) == len(values)
    low, high = (values.index(pick(values)) for pick in (min, max))
    for (_, y), value in zip(points, values, strict=True):  # a linear axis: as far up as the value says
        share = (value - values[low]) / (values[high] - values[low])
        assert y == pytest.approx(points[low][1] + share * (points[high][1] - points[low][1]), abs=0.01)
    boxes = [float(e.get("y", "nan")) for e in root.iter() if e.get("class") == "cell"]
    assert all(min(boxes) <= y <= max(boxes) + 8 for _, y in points)


def test_the_terminal_has_letters(some: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = said(capfd, some, "--log", "--percentiles=50,99")
    assert text.splitlines()[-1].strip() == "a p50, b p99"
    assert any("a" in line.partition("|")[2] for line in text.splitlines())
    coloured = said(capfd, some, "--log", "--percentiles=50,99", "--color", "256")
    assert "\x1b[30ma" in coloured


@pytest.mark.parametrize("text", ["", "0", "101", "p99", "50;99"])
def test_what_is_no_percentile_is_one_line(some: Path, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["heatmap", str(some), f"--percentiles={text}"]) == 2
    assert "--percentiles" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (("--rows=10", "--steplat=500", "--maxlat=5000"), [0, 1000, 2000, 3000, 4000]),
        (("--log",), [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]),
    ],
    ids=["linear", "log"],
)
def test_the_axis_has_round_labels(
    some: Path, tmp_path: Path, words: tuple[str, ...], labels: list[int], capfd: pytest.CaptureFixture[str]
) -> None:
    said(capfd, some, *words, "-o", tmp_path / "x.svg")
    texts = [e.text or "" for e in ET.parse(tmp_path / "x.svg").iter() if e.get("text-anchor") == "end"]
    found = sorted(int(text) for text in texts[1:] if text.isdecimal() and text != "1")
    assert found and (found == labels if words[0] != "--log" else set(found) <= set(labels) and len(found) > 2), found
