# SPDX-License-Identifier: MIT
"""What files of programs tell of an address: the function's name, and how the stack goes on, beside nm and readelf."""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from opline.capture.bpf.user_names import UserNames
from opline.capture.machine.code_names import CodeNames, Demangler, follows_call
from opline.capture.machine.elf import Elf
from opline.capture.machine.unwinding import BY_FRAME_POINTER, Row, Unwinding

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("readelf"), reason="x86-64's code, and readelf"
)
CPP = """
namespace store { struct Log { int append(const char *text, long n); }; }
__attribute__((noinline)) int store::Log::append(const char *text, long n) { return text[n]; }
struct Guard { int *at; ~Guard() { ++*at; } };
int ends = 0;
__attribute__((noinline)) int cleaned(const char *text) {
    Guard guard{&ends};
    char room[text[0] + 64];
    room[0] = text[1];
    return store::Log().append(text, room[0]) + store::Log().append(room, 0);
}
int main(int, char **argv) { return cleaned(argv[0]); }
"""
#: How the programs are made: with a table of functions and without, with frame pointers and without.
BUILDS = {
    "table": ("-O2", "-fomit-frame-pointer"),
    "pointers": ("-O1", "-fno-omit-frame-pointer"),
    "static": ("-O2", "-static"),
}


@pytest.fixture(scope="module", params=BUILDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    (folder / "code.cpp").write_text(CPP)
    subprocess.run(["c++", *BUILDS[request.param], str(folder / "code.cpp"), "-o", str(folder / "code")], check=True)
    return folder / "code"


def told_by_readelf(file: Path) -> dict[int, Row | None]:
    """The rows of `readelf --debug-dump=frames-interp`; None: it has an expression, or no return address 8 below."""
    argv = ["readelf", "--debug-dump=frames-interp", str(file)]
    text = subprocess.run(argv, capture_output=True, text=True, check=False).stdout  # 1 where it warns
    rows: dict[int, Row | None] = {}
    begin = end = 0
    names: list[str] = []
    for line in text.splitlines():
        if function := re.search(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", line):
            begin, end, names = int(function[1], 16), int(function[2], 16), []
        elif " CIE" in line:
            end = 0
        elif not line.strip():
            continue
        elif line.lstrip().startswith("LOC"):
            names = line.split()
        elif end and len(values := line.split()) == len(names) and begin <= int(values[0], 16) < end:
            row = dict(zip(names, values, strict=True))
            frame, rbp = re.fullmatch(r"(rsp|rbp)\+(\d+)", row["CFA"]), row.get("rbp", "u")
            known = frame and row["ra"] == "c-8" and re.fullmatch(r"u|s|c-\d+", rbp)
            at = int(rbp[2:]) if rbp.startswith("c-") else 0
            rows[int(values[0], 16)] = Row(frame[1] == "rbp", int(frame[2]), at) if frame and known else None
    return rows


def test_stacks_go_on_as_readelf_says(program: Path) -> None:
    rows, unwinding = told_by_readelf(program), Unwinding(Elf(program))
    assert len(rows) > 5
    assert {address: unwinding.row(address) for address in rows} == rows


def test_so_they_do_in_libraries() -> None:
    for name in ("c", "stdc++"):
        short = ctypes.util.find_library(name)
        found = [p for p in Path("/lib/x86_64-linux-gnu").glob(f"{short}*") if p.name == short]
        for file in found:
            unwinding = Unwinding(Elf(file))
            rows = told_by_readelf(file)
            some = {address: rows[address] for address in list(rows)[::37]}
            assert {address: unwinding.row(address) for address in some} == some


def test_code_of_which_nothing_is_told_has_frame_pointers(program: Path) -> None:
    assert Unwinding(Elf(program)).row(1 << 40) == BY_FRAME_POINTER
    assert Unwinding(Elf(program)).row(0) == BY_FRAME_POINTER


def test_a_place_has_the_name_of_the_function_that_it_lies_in(program: Path) -> None:
    names = CodeNames(Elf(program))
    text = subprocess.run(["nm", "-S", "--defined-only", str(program)], check=True, capture_output=True, text=True)
    symbols = [line.split() for line in text.stdout.splitlines() if len(line.split()) == 4]
    functions = {n: (int(at, 16), int(size, 16)) for at, size, kind, n in symbols if kind in "tT"}
    for function in ("main", "_Z7cleanedPKc", "_ZN5store3Log6appendEPKcl"):
        at, size = functions[function]
        for place in (at, at + size - 1):
            assert names.function(place) == (function, at)
        inside = any(begin <= at + size < begin + n for begin, n in functions.values())
        assert (names.function(at + size) is None) == (not inside)


def test_a_stripped_file_gives_no_name_of_another_function(program: Path, tmp_path: Path) -> None:
    at, _ = CodeNames(Elf(program)).function(_main(program)) or ("", 0)
    assert at == "main"
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", str(program), "-o", str(stripped)], check=True)
    assert CodeNames(Elf(stripped)).function(_main(program)) is None


def _main(program: Path) -> int:
    return Elf(program).address(Elf(program).functions()["main"]) or 0


def test_names_of_cpp_are_as_they_are_written() -> None:
    plain = Demangler().plain
    assert plain("_ZN5store3Log6appendEPKcl") == "store::Log::append(char const*, long)"
    assert (plain("main"), plain("_Zgarbage")) == ("main", "_Zgarbage")


def test_a_call_returns_behind_a_call(program: Path) -> None:
    elf = Elf(program)
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(program)], check=True, capture_output=True, text=True
    )
    lines = re.findall(r"^ +([0-9a-f]+):\s+(\S+)(.*)$", text.stdout, re.MULTILINE)
    behind = [int(after[0], 16) for (_, code, _), after in itertools.pairwise(lines) if code == "call"]
    assert behind
    offsets = [offset for address in behind if (offset := elf.file_offset(address)) is not None]
    assert len(offsets) == len(behind) and all(follows_call(elf, offset) for offset in offsets)
    assert not follows_call(elf, _main_offset(program) + 1) and not follows_call(elf, 3)


def _main_offset(program: Path) -> int:
    return Elf(program).functions()["main"]


def test_mappings_that_are_read_while_a_process_goes_over_are_thrown_away() -> None:
    """Of a program that runs no longer nothing is said; what was read while it ran stays."""
    own = os.getpid()
    since = {own: 5}
    names = UserNames(since.get, lambda program, address, row: None)
    before = own, 5
    maps = Path("/proc/self/maps").read_text()
    found = re.search(r"^([0-9a-f]+)-\S+ r-x.*/libc\.so", maps, re.MULTILINE)
    assert found
    addresses = [int(found[1], 16) + 64]
    names.see(before, addresses, own, 0)
    assert "libc" in names.frames(before, addresses)[0]
    since[own] = 6
    names.confirm()
    assert names.frames(before, addresses) == [hex(addresses[0])]
    names.see(before, addresses, own, 0)
    assert names.frames(before, addresses) == [hex(addresses[0])]


def test_what_is_known_of_a_file_serves_the_next_process() -> None:
    """Two programs of one process: the second one is told of the place that the first one met, unasked."""
    own = os.getpid()
    since = {own: 5}
    told: list[tuple[tuple[int, int], int, Row]] = []
    names = UserNames(since.get, lambda *one: told.append(one))
    libc = ctypes.CDLL(None)
    first, second = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in (libc.clock_nanosleep, libc.getpid))
    names.see((own, 5), [first], own, 0)
    assert [address for _, address, _ in told] == [first]
    since[own] = 6
    names.confirm()
    names.see((own, 6), [second], own, 0)
    assert [(program, address) for program, address, _ in told[1:]] == [((own, 6), first), ((own, 6), second)]
    assert told[1][2] == told[0][2]
