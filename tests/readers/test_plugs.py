# SPDX-License-Identifier: MIT
"""Plug statistics of `opline btt`: btt 2.09's own figures of each case, from blktrace's files and blkparse's text."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.readers.test_blktrace import REAL

from opline_analyses.cli import main

A, B = 8 << 20 | 16, 8 << 20 | 32
QUEUE, GETRQ, ISSUE, COMPLETE, PLUG, UNPLUG, TIMER, INSERT, SPLIT = 1, 4, 7, 8, 9, 10, 11, 12, 13
LETTERS = {QUEUE: "Q", GETRQ: "G", ISSUE: "D", COMPLETE: "C", PLUG: "P", UNPLUG: "U", TIMER: "UT", INSERT: "I"}
START_US = 1_000_000
Happening = tuple[int, int, int, int]  # us, action, device, sector or requests


def io(us: int, dev: int = A) -> list[Happening]:
    """One write, of 100 us."""
    steps = ((0, QUEUE), (1, GETRQ), (2, INSERT), (3, ISSUE), (100, COMPLETE))
    return [(us + after, action, dev, us * 8) for after, action in steps]


# device: plugs, timers, requests for each plug and for each timer (None: none), share of the time in percent
CASES: dict[str, tuple[list[Happening], dict[int, tuple[Any, ...]]]] = {
    "one": ([*io(0), (200, PLUG, A, 0), (300, UNPLUG, A, 3), *io(1000)], {A: (1, 0, 3, None, 100 / 11)}),
    "of two threads": (
        [*io(0), (200, PLUG, A, 0), (250, PLUG, A, 0), (300, UNPLUG, A, 3), (400, UNPLUG, A, 2), *io(1000)],
        {A: (1, 0, 3, None, 100 / 11)},
    ),
    "no plug": ([*io(0), (300, UNPLUG, A, 3), *io(1000)], {}),
    "timer": (
        [*io(0), (200, PLUG, A, 0), (300, TIMER, A, 3), (400, PLUG, A, 0), (500, UNPLUG, A, 5), *io(1000)],
        {A: (1, 1, 5, 3, 200 / 11)},
    ),
    "open": ([*io(0), (200, PLUG, A, 0), *io(1000)], {A: (1, 0, 0, None, 900 / 11)}),
    "begun before the first I/O": ([(-500, PLUG, A, 0), *io(0), (200, UNPLUG, A, 4), *io(1000)], {}),
    "after the last I/O": (
        [*io(0), *io(1000), (1200, PLUG, A, 0), (1400, UNPLUG, A, 4)],
        {A: (1, 0, 4, None, 200 / 11)},
    ),
    "two devices": (
        [
            *io(0), (200, PLUG, A, 0), (300, UNPLUG, A, 3), *io(400, B), (600, PLUG, B, 0), (700, UNPLUG, B, 5),
            *io(1000),
        ],
        {A: (1, 0, 3, None, 100 / 11), B: (1, 0, 5, None, 100)},
    ),
    # 1.1 % in btt for the queue event, 10 % for a split: the device's time does not go on with it
    "an event after": (
        [*io(0), (20, PLUG, A, 0), (30, UNPLUG, A, 1), (900, QUEUE, A, 800)],
        {A: (1, 0, 1, None, 1000 / 900)},
    ),
    "a split after": ([*io(0), (20, PLUG, A, 0), (30, UNPLUG, A, 1), (900, SPLIT, A, 4)], {A: (1, 0, 1, None, 10)}),
}  # fmt: skip


def binary(happened: list[Happening], path: Path) -> Path:
    """As blktrace writes it."""
    out = b""
    for number, (us, action, dev, value) in enumerate(sorted(happened), 1):
        plug = action in (PLUG, UNPLUG, TIMER)
        more = struct.pack(">Q", value) if action in (UNPLUG, TIMER, SPLIT) else b""
        category = 1 << 4 if plug else 2
        place = (0, 0) if plug else (value if action != SPLIT else 0, 4096)
        out += struct.pack(
            "<IIQQIIIIIHH", 0x65617407, number, (START_US + us) * 1000, *place, action | category << 16, 7, dev, 0, 0,
            len(more),
        ) + more  # fmt: skip
    path.write_bytes(out)
    return path


def text(happened: list[Happening], path: Path) -> Path:
    """As blkparse prints it."""
    lines = []
    for number, (us, action, dev, value) in enumerate(sorted(happened), 1):
        head = (
            f"{dev >> 20:3},{dev & 0xFFFFF:<3} 0 {number:8} {(START_US + us) / 1e6:14.9f} {7:5} {LETTERS[action]:>2}  "
        )
        if action in (PLUG, UNPLUG, TIMER):
            lines.append(f"{head} N [fio]" + (f" {value}" if action != PLUG else ""))
        else:
            lines.append(f"{head} W {value} + 8 " + ("[0]" if action == COMPLETE else "[fio]"))
    path.write_text("\n".join(lines) + "\n")
    return path


def figures(path: Path, capfd: pytest.CaptureFixture[str]) -> dict[int, tuple[Any, ...]]:
    capfd.readouterr()
    assert main(["btt", str(path), "--json"]) == 0
    found = {}
    for device in json.loads(capfd.readouterr().out)["devices"]:
        if (p := device["plugs"]) is not None:
            of_plugs = p["ios"] / p["plugs"] if p["plugs"] else None
            of_timers = p["timer_ios"] / p["timers"] if p["timers"] else None
            found[device["dev"]] = (
                p["plugs"], p["timers"], of_plugs, of_timers, pytest.approx(100 * p["plugged_ns"] / p["observed_ns"]),
            )  # fmt: skip
    return found


@pytest.mark.parametrize("name", CASES)
def test_btts_rules(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    happened, expected = CASES[name]
    assert figures(binary(happened, tmp_path / "trace"), capfd) == expected
    if all(action in LETTERS for _, action, *_ in happened):
        assert figures(text(happened, tmp_path / "text"), capfd) == expected


def test_a_plug_begun_after_the_last_event_counts_without_time(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """btt prints -50 %."""
    path = binary([*io(0), (150, PLUG, A, 0)], tmp_path / "trace")
    assert figures(path, capfd) == {A: (1, 0, 0, None, 0)}


def test_btts_own_line(trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    """Of files that a kernel wrote: what btt 2.09 prints, digit by digit."""
    folder = trace(REAL)
    capfd.readouterr()
    assert main(["btt", str(folder)]) == 0
    lines = capfd.readouterr().out.splitlines()
    (at,) = (n for n, line in enumerate(lines) if line.startswith("plugs"))
    assert lines[at + 2].split() == ["7:0", "500", "0", "0.209532415", "1.0"]


def test_without_plugs_there_is_no_table(trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    """Of LTTng's events, which do not name a plug's device."""
    capfd.readouterr()
    assert main(["btt", str(trace("demo-kernel"))]) == 0
    assert "plug" not in capfd.readouterr().out
