# SPDX-License-Identifier: MIT
"""Where in its program a recorded thread waits, through BPF: programs that wait at known places (tests/waiting_app)."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.capture.test_waits_live import Op, Recorded, events
from tests.lib.recorder import record_well

from opline.readers.stacks import read_stacks
from opline_analyses.ops.user_places import place_of

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="user stacks are taken on x86-64"),
]
ROOT = Path(__file__).resolve().parents[2]
OPLINE = str(Path(sys.executable).with_name("opline"))
WAITS = 60  # of each program, 3 ms each: what leads up a stack is known after some 40 ms
SEEN = 0.5  # of them with the whole stack; of the first ones some callers are not known yet
#: Flags of the compiler, by program. All are called differently: the name of a frame's file tells them apart.
BUILDS = {
    "pointers": ("-O1", "-fno-omit-frame-pointer"),
    "lean": ("-O2", "-fomit-frame-pointer"),
    "bare": ("-O2", "-s"),
    "jailed": ("-O1", "-static"),
    "removed": ("-O1",),
}
FRAME = re.compile(r"(\w+)\+0x[0-9a-f]+ \[([^\]]+)\]")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("places")
    source = str(ROOT / "tests" / "waiting_app" / "places.c")
    jail = folder / "jail"
    (jail / "tmp").mkdir(parents=True)
    for name, flags in BUILDS.items():
        subprocess.run(["cc", *flags, source, "-o", str(folder / name)], check=True)
    shutil.move(folder / "jailed", jail / "jailed")
    steps = [
        f"{folder}/pointers plain {WAITS}", f"{folder}/lean plain {WAITS}", f"{folder}/pointers child {WAITS}",
        f"{folder}/lean becomes:after {WAITS}", f"{folder}/bare plain {WAITS}", f"chroot {jail} /jailed plain {WAITS}",
        f"{folder}/removed plain {WAITS} & rm {folder}/removed; wait",
    ]  # fmt: skip
    argv = [OPLINE, "record", "-o", str(folder / "run"), "--model", "syscalls", "--user-stacks", "--"]
    done = subprocess.run([*argv, "sh", "-c", "; ".join(steps)], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 3), done.stderr
    if "no user stacks" in done.stderr or "no stacks of waits" in done.stderr:
        pytest.skip("this kernel gives no user stacks")
    ops: dict[str, list[Op]] = {}
    lines = (folder / "run" / "stdout.txt").read_text().splitlines()
    names = ["pointers plain", "lean plain", "pointers child", "lean before", "lean after", "bare", "jailed", "removed"]
    for number, line in enumerate(lines):
        _, tid, begin, end = line.split()
        ops.setdefault(names[number // WAITS], []).append(Op(int(tid), int(begin), int(end)))
    assert len(lines) == WAITS * len(names)
    trace = folder / "run" / "trace" / "block"
    return Recorded(ops, 0, events(trace, "sched:off_cpu"), [], read_stacks(folder / "run" / "stacks.json"))


def stacks_of(recorded: Recorded, what: str) -> list[tuple[str, ...]]:
    """The user frames of each planted wait that has a stack."""
    assert recorded.stacks is not None
    waits = [recorded.main_wait(op) for op in recorded.ops[what]]
    numbers = [wait["stack"] for wait in waits if wait is not None and wait["stack"] >= 0]
    assert len(numbers) >= WAITS / 2
    return [recorded.stacks.of[number].user for number in numbers]


@pytest.mark.parametrize(
    ("what", "file", "callers"),
    [
        ("pointers plain", "pointers", ["plain", "main"]),
        ("lean plain", "lean", ["plain", "main"]),
        ("pointers child", "pointers", ["child", "main"]),
        ("lean before", "lean", ["before", "main"]),
        ("lean after", "lean", ["after", "main"]),
        ("removed", "removed", ["plain", "main"]),
        ("jailed", "jailed", ["plain", "main"]),
    ],
)
def test_a_stack_has_the_functions_of_the_program_and_no_others(
    recorded: Recorded, what: str, file: str, callers: list[str]
) -> None:
    """`sleep_ms` may be inlined, and a static program has the C library's functions."""
    planted = ["innermost", "middle", *callers]
    whole = 0
    found = stacks_of(recorded, what)
    for stack in found:
        named = [match.groups() for frame in stack if (match := FRAME.fullmatch(frame))]
        own = [function for function, of in named if of == file and function in {*planted, "before", "after", "child"}]
        assert own == planted[: len(own)], stack
        assert {of for _, of in named} <= {file, "libc.so.6"}, stack
        whole += own == planted
    assert whole >= SEEN * len(found)


def test_where_no_symbol_tells_there_is_no_name(recorded: Recorded) -> None:
    found = stacks_of(recorded, "bare")
    own = [frame for stack in found for frame in stack if "bare" in frame]
    assert own and all(re.fullmatch(r"\[bare\+0x[0-9a-f]+\]|_start\+0x[0-9a-f]+ \[bare\]", frame) for frame in own)


def test_the_place_of_a_wait_is_not_in_the_c_library(recorded: Recorded) -> None:
    assert recorded.stacks is not None
    waits = [recorded.main_wait(op) for op in recorded.ops["lean plain"]]
    numbers = {wait["stack"] for wait in waits if wait is not None and wait["stack"] >= 0}
    assert {place_of(recorded.stacks.of[number]) for number in numbers} <= {"innermost (lean)", "sleep_ms (lean)", None}


def test_without_the_option_there_are_none(tmp_path: Path) -> None:
    argv = [OPLINE, "record", "-o", str(tmp_path / "run"), "--model", "syscalls", "--stacks", "0", "--"]
    record_well([*argv, "sleep", "0.1"], timeout=60)
    stacks = json.loads((tmp_path / "run" / "stacks.json").read_text())["stacks"]
    assert stacks and not any("user" in stack for stack in stacks.values())


def test_what_user_stacks_need_cannot_be_left_out(tmp_path: Path) -> None:
    for without in ("--no-chains", "--no-states", "--no-block"):
        argv = [OPLINE, "record", "-o", str(tmp_path / "run"), "--user-stacks", without, "--", "true"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "--user-stacks needs" in done.stderr
        assert not (tmp_path / "run").exists()
