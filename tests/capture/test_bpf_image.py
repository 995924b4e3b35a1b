# SPDX-License-Identifier: MIT
"""BPF programs are compiled once: what is kept is what was compiled, and only what is ours is believed."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from opline.capture.bpf import image, kept
from opline.capture.bpf.bpf import Collector
from opline.capture.bpf.image import Image, MapOf, c_type, with_maps
from opline.capture.bpf.symbols import Symbols

IMAGE = Image(
    (MapOf("events", 27, 0, 0, 1 << 16, 0, ""), MapOf("cpus", 2, 4, 16, 2, 1024, '["c", []]')),
    {"on_issue": bytes(range(64)), "on_complete": b""},
)


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own."""
    monkeypatch.setenv("OPLINE_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_a_text_gives_the_same_image_and_no_damaged_one() -> None:
    text = IMAGE.text().encode()
    assert Image.of_text(text) == IMAGE
    for at in range(0, len(text) - 1, 7):
        damaged = text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]
        assert Image.of_text(damaged) is None
        assert Image.of_text(text[:at]) is None


def test_only_what_names_a_map_is_changed() -> None:
    def wide(source: int, value: int) -> bytes:  # struct bpf_insn, twice: a load of 64 bits
        return struct.pack("=BBhi", 0x18, source << 4 | 1, 0, value) + struct.pack("=BBhi", 0, 0, 0, 7)

    move = struct.pack("=BBhi", 0xB7, 0x11, 0, 7)  # not a load; its register field reads as that of a map
    code = wide(1, 7) + move + wide(0, 7) + wide(1, 9)
    assert with_maps(code, {7: 3, 9: 0}) == wide(1, 3) + move + wide(0, 7) + wide(1, 0)


def test_types_are_those_of_c() -> None:
    described = ["told", [["number", "unsigned long long"], ["frames", "unsigned int", [3]], ["on", "_Bool"]], "struct"]
    kind = c_type(described)
    value = kind.from_buffer_copy(struct.pack("=Q3I?3x", 1 << 40, 4, 5, 6, True))
    assert (value.number, list(value.frames), value.on) == (1 << 40, [4, 5, 6], True)
    assert c_type([*described[:2], "struct_packed"])._pack_ == 1


def test_what_is_kept_is_read_and_the_oldest_goes(own: Path) -> None:
    assert kept.read("a") is None
    for number in range(40):
        kept.write(f"n{number}", f"text {number}")
        os.utime(own / f"n{number}", ns=(number, number))
    assert own.stat().st_mode & 0o777 == 0o700
    assert kept.read("n39") == b"text 39"
    assert kept.read("n0") is None
    assert len(list(own.iterdir())) == 32


@pytest.mark.parametrize("harm", ["folder for all", "file for all", "link", "folder is a link", "another's"])
def test_what_others_can_write_is_not_believed(harm: str, own: Path, tmp_path: Path) -> None:
    if harm == "another's" and os.geteuid() != 0:
        pytest.skip("gives a file to another user: needs root")
    kept.write("name", "text")
    assert kept.read("name") == b"text"
    if harm == "folder for all":
        own.chmod(0o777)
    elif harm == "file for all":
        (own / "name").chmod(0o666)
    elif harm == "link":
        (own / "name").rename(tmp_path / "elsewhere")
        (own / "name").symlink_to(tmp_path / "elsewhere")
    elif harm == "folder is a link":
        own.rename(tmp_path / "elsewhere")
        own.symlink_to(tmp_path / "elsewhere")
    else:
        os.chown(own / "name", 12345, 12345)
    assert kept.read("name") is None


def test_without_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPLINE_CACHE_DIR", "/proc/nowhere/kept")
    kept.write("name", "text")
    assert kept.read("name") is None


def test_a_function_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "symbols").write_text(
        "0000000000000000 T hidden\n0000000000001000 T begin\n0000000000001000 T alias\n0000000000001800 d data\n"
        "0000000000002000 t of_module\t[loop]\n"
    )
    symbols = Symbols(tmp_path / "symbols")
    found = {address: symbols.name(address) for address in (0x1000, 0x1FFF, 0x2004, 0xFFF)}
    assert found == {0x1000: "begin+0x0", 0x1FFF: "begin+0xfff", 0x2004: "of_module+0x4 [loop]", 0xFFF: "0xfff"}


@pytest.mark.live
def test_kept_programs_are_those_that_were_compiled(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def collected() -> tuple[set[str], dict[str, int]]:
        collector = Collector(calls=True, states=True)
        collector.start()
        counts = collector.finish()
        return set(collector.tracepoints), {name: counts[name] for name in ("lost_ring", "lost_states", "chain_cut")}

    first = collected()
    (file,) = (path for path in own.iterdir() if not path.name.startswith("btf-"))
    text = file.read_bytes()

    def refuse(*_: object) -> Image:
        raise AssertionError("compiled again")

    with monkeypatch.context() as no_compiler:
        no_compiler.setattr(image, "_compiled", refuse)
        assert collected() == first
        monkeypatch.setattr(platform, "release", lambda: "another kernel")
        with pytest.raises(AssertionError, match="compiled again"):
            collected()
    monkeypatch.undo()
    monkeypatch.setenv("OPLINE_CACHE_DIR", str(own))
    file.write_bytes(text[:-100])
    assert collected() == first
    assert file.read_bytes() == text


@pytest.mark.live
def test_who_only_looks_keeps_nothing(own: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "opline.capture.collectors.collector", "--check"], check=False)
    assert done.returncode == 0
    assert not own.exists()
