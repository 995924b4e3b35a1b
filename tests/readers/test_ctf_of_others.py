# SPDX-License-Identifier: MIT
"""CTF 1.8 as other writers have it: byte orders, lengths and tags in any scope, escapes, several clocks or none."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tests.lib.ctf_text import write_trace

from opline_analyses.cli import main

Captured = pytest.CaptureFixture[str]
ORDERS = ["be", "le", "network"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("place", ["before", "after"])
def test_the_byte_order_counts_for_all_types(order: str, place: str, tmp_path: Path, capfd: Captured) -> None:
    alias = "typedef integer { size = 16; align = 8; } u16;\ntypealias integer { size = 32; align = 8; } := u32;\n"
    big = order != "le"
    payload = struct.pack(">HI" if big else "<HI", 7, 77)
    write_trace(tmp_path, order, {place: alias}, fields="u16 z; u32 y;", payload=payload)
    assert main(["events", str(tmp_path), "--reader", "native"]) == 0
    assert "{ z = 7, y = 77 }" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("options", "fields", "payload", "shown"),
    [
        ({"header_more": "uint16_t n;"}, "uint8_t s[stream.event.header.n]; uint8_t z;", b"\1\2\7", "z = 7"),
        ({"context_more": "uint16_t n;"}, "uint8_t s[stream.packet.context.n]; uint8_t z;", b"\1\2\7", "z = 7"),
        ({"packet_more": "uint16_t n;"}, "uint8_t s[trace.packet.header.n]; uint8_t z;", b"\1\2\7", "z = 7"),
        ({"common": "uint16_t n;"}, "uint8_t s[stream.event.context.n]; uint8_t z;", b"\2\0\1\2\7", "z = 7"),
        ({"specific": "uint16_t n;"}, "uint8_t s[event.context.n]; uint8_t z;", b"\2\0\1\2\7", "z = 7"),
        ({}, "uint8_t n; uint8_t s[event.fields.n]; uint8_t z;", b"\2\1\2\7", "z = 7"),
        ({}, "enum : uint8_t { A = 'a', B = '\\n' } e; uint8_t z;", b"a\7", "z = 7"),
        ({"before": "typealias integer { size = 64; align = 8; base = 16; } := void *;\n"},
         "void * p; uint8_t z;", b"\1\0\0\0\0\0\0\0\7", "p = 1, z = 7"),
        ({"head": ""}, "uint8_t z;", b"\7", "z = 7"),
        ({"clock": ""}, "uint8_t z;", b"\7", "z = 7"),
        ({"clock_more": "clock { name = other; freq = 5; };\n"}, "uint8_t z;", b"\7", "z = 7"),
    ],
)  # fmt: skip
def test_ctf_of_others(
    options: dict[str, str], fields: str, payload: bytes, shown: str, tmp_path: Path, capfd: Captured
) -> None:
    write_trace(tmp_path, "le", options, fields=fields, payload=payload)
    assert main(["events", str(tmp_path)]) == 0
    assert shown in capfd.readouterr().out


SCOPES = {
    "packet_more": "trace.packet.header.n", "context_more": "stream.packet.context.n",
    "header_more": "stream.event.header.n", "common": "stream.event.context.n", "specific": "event.context.n",
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize("scope", SCOPES)
def test_lengths_and_tags_in_every_scope(
    scope: str, absolute: bool, order: str, tmp_path: Path, capfd: Captured
) -> None:
    """The native reader reads them: babeltrace 2.0 takes no tag by its full path."""
    place = SCOPES[scope] if absolute else "n"
    first = struct.pack("<H" if order == "le" else ">H", 2) if scope in ("common", "specific") else b""
    for fields, payload in (
        (f"uint8_t s[{place}]; uint8_t z;", b"\1\2\7"),
        (f"variant <{place}> {{ uint8_t A; string B; }} v; uint8_t z;", b"two\0\7"),
    ):
        options = {scope: "enum : uint16_t { A = 1, B = 2 } n;" if "variant" in fields else "uint16_t n;"}
        write_trace(tmp_path, order, options, fields=fields, payload=first + payload)
        assert main(["events", str(tmp_path), "--reader", "native"]) == 0
        assert "z = 7 }" in capfd.readouterr().out


def test_what_metadata_may_be_written_with(tmp_path: Path, capfd: Captured) -> None:
    write_trace(tmp_path, "le", {}, fields="uint8_t z;", payload=b"\7")
    metadata = tmp_path / "metadata"
    sound = metadata.read_bytes()
    metadata.write_bytes(b"\xef\xbb\xbf" + sound.replace(b'name = "e"', rb'name = "a\x2d\142\"\\"'))
    assert main(["events", str(tmp_path), "--reader", "native"]) == 0
    assert ' a-b"\\: {' in capfd.readouterr().out
    metadata.write_bytes(sound.replace(b"fields :=", b"fields \xff :="))
    assert main(["events", str(tmp_path)]) == 1
    assert r'"=" is wanted, not "\xff"' in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "fields", "said"),
    [
        ({}, "floating_point { exp_dig = 5; mant_dig = 11; align = 8; } z;", "a floating-point number of 16 bits"),
        ({}, "integer { size = 128; align = 8; } z;", "an integer of 128 bits"),
        ({"clock": "clock { name = c; freq = 1000000000; offset_s = 9223372036854775807; };\n"}, "uint8_t z;",
         "its clock's offset is more than 64 bits of nanoseconds"),
    ],
)  # fmt: skip
def test_what_no_reader_reads_has_its_reason(
    options: dict[str, str], fields: str, said: str, tmp_path: Path, capfd: Captured
) -> None:
    write_trace(tmp_path, "le", options, fields=fields, payload=bytes(16))
    assert main(["events", str(tmp_path)]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert said in line


def test_a_stream_of_another_trace_is_named(tmp_path: Path, capfd: Captured) -> None:
    write_trace(tmp_path, "le", {"uuid": "different"}, fields="uint8_t z;", payload=b"\7")
    assert main(["events", str(tmp_path)]) == 1
    said = capfd.readouterr().err
    assert "stream0" in said
    assert "its uuid is another trace's" in said
