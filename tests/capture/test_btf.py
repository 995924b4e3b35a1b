# SPDX-License-Identifier: MIT
"""The BTF reader: on a hand-made piece whose answer is known, on the running kernel's, and on bad input."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from opline.capture.bpf.bpf import definitions
from opline.capture.bpf.btf import KERNEL_BTF, Btf
from opline.errors import OplineError

NEEDS_BTF = pytest.mark.skipif(not KERNEL_BTF.exists(), reason="this kernel has no BTF")


class Maker:
    """Writes BTF: types in order of their ids, from 1."""

    def __init__(self) -> None:
        self.strings = b"\0"
        self.types = b""

    def text(self, name: str) -> int:
        if not name:
            return 0
        self.strings += name.encode() + b"\0"
        return len(self.strings) - len(name) - 1

    def add(
        self, kind: int, name: int, size_or_type: int, extra: tuple[int, ...] = (), vlen: int = 0, flag: int = 0
    ) -> None:
        self.types += struct.pack(f"<3I{len(extra)}I", name, flag << 31 | kind << 24 | vlen, size_or_type, *extra)

    def bytes(self) -> bytes:
        header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(self.types), len(self.types), len(self.strings))
        return header + self.types + self.strings


def made() -> Btf:
    m = Maker()
    m.add(1, m.text("int"), 4, (32,))  # 1
    m.add(4, m.text("iter"), 16, (m.text("pad"), 1, 0, m.text("at"), 1, 96), vlen=2)  # 2
    m.add(5, 0, 8, (m.text("left"), 1, 0, m.text("right"), 1, 0), vlen=2)  # 3: anonymous union
    outer = (m.text("first"), 1, 0, 0, 3, 64, m.text("inner"), 2, 128, m.text("flag"), 1, 1 << 24 | 256)
    m.add(4, m.text("outer"), 40, outer, vlen=4, flag=1)  # 4: offsets with bit-field sizes
    m.add(6, m.text("colour"), 4, (m.text("RED"), 1, m.text("BLUE"), 7), vlen=2)  # 5
    m.add(19, m.text("wide"), 8, (m.text("HUGE_ONE"), 9, 1), vlen=1)  # 6
    m.add(2, 0, 4)  # 7: struct outer *
    m.add(10, 0, 7)  # 8: const of it
    m.add(8, m.text("status_t"), 1)  # 9
    m.add(2, 0, 0)  # 10: void *
    m.add(13, 0, 1, (m.text("data"), 10, m.text("o"), 8, m.text("s"), 9, m.text("n"), 1), vlen=4)  # 11
    m.add(2, 0, 11)  # 12
    m.add(8, m.text("btf_trace_something"), 12)  # 13
    return Btf(m.bytes())


def test_offsets_of_a_known_structure() -> None:
    btf = made()
    assert btf.offset("outer", "first") == 0
    assert btf.offset("outer", "right") == 8  # in the anonymous union
    assert btf.offset("outer", "inner.at") == 16 + 12
    assert btf.offset("outer", "flag") == 32
    assert btf.offset("outer", "inner.nothing") is None
    assert btf.offset("outer", "first.at") is None
    assert btf.offset("nobody", "first") is None


def test_enumerators() -> None:
    btf = made()
    assert (btf.enumerator("BLUE"), btf.enumerator("HUGE_ONE")) == (7, 9)
    assert btf.enumerator("GREEN") is None
    assert btf.enumerator("outer") is None  # a name, but not of an enumerator


def test_arguments_of_a_tracepoint() -> None:
    btf = made()
    arguments = btf.tracepoint("something")
    assert arguments is not None
    assert [(a.struct, a.typedef) for a in arguments] == [("outer", None), (None, "status_t"), (None, None)]
    assert btf.tracepoint("nothing") is None


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"", "not BTF"), (b"\x7fELF" + bytes(60), "not BTF"), (b"\x9f\xeb\x01\x00" + b"\xff\x00\x00\x00" * 5, "cut off")],
)
def test_bad_input_is_one_line(data: bytes, says: str) -> None:
    with pytest.raises(OplineError, match=says):
        Btf(data)


def test_a_type_cut_in_the_middle() -> None:
    m = Maker()
    m.add(4, m.text("outer"), 8, (0, 1, 0), vlen=5)
    with pytest.raises(OplineError, match="within a type"):
        Btf(m.bytes())


@NEEDS_BTF
def test_this_kernels_block_structures() -> None:
    btf = Btf.of_kernel()
    assert btf.offset("request", "bio") is not None
    assert btf.offset("bio", "bi_next") == 0
    sector, size = btf.offset("bio", "bi_iter.bi_sector"), btf.offset("bio", "bi_iter.bi_size")
    assert sector is not None and size == sector + 8
    assert btf.enumerator("REQ_OP_WRITE") == 1
    issue = btf.tracepoint("block_rq_issue")
    assert issue is not None and issue[-1].struct == "request"


@NEEDS_BTF
def test_what_the_programs_are_told() -> None:
    told = definitions(Btf.of_kernel())
    assert told["RQ_LOW"] <= told["O_RQ_FLAGS"] < told["O_RQ_BIO"] < told["RQ_LOW"] + told["RQ_SPAN"]
    assert told["BIO_LOW"] + told["BIO_SPAN"] >= told["O_BIO_SIZE"] + 4
    assert "A_block_rq_complete_request" in told and "A_block_bio_queue_bio" in told


@NEEDS_BTF
def test_answers_about_the_kernel_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPLINE_CACHE_DIR", str(tmp_path / "kept"))

    def asked(btf: Btf) -> tuple[object, ...]:
        names = btf.tracepoint("block_rq_issue"), btf.tracepoint("no_such"), btf.tracepoints(), btf.function("no_such")
        return definitions(btf), *names, btf.function("blk_mq_start_request"), btf.enumerator("no_such")

    first = Btf.of_kernel()
    answers = asked(first)
    assert list((tmp_path / "kept").glob("*")) == []  # who only looks keeps nothing
    first.keep()
    with monkeypatch.context() as undecoded:
        undecoded.setattr(Btf, "decode", lambda _: pytest.fail("the types were decoded again"))
        second = Btf.of_kernel()
        assert asked(second) == answers
        second.keep()
    (file,) = (tmp_path / "kept").iterdir()
    before = file.read_bytes()
    assert Btf.of_kernel().offset("bio", "bi_next") is not None
    assert Btf.of_kernel().offset("task_struct", "tgid") == Btf(KERNEL_BTF.read_bytes()).offset("task_struct", "tgid")
    assert file.read_bytes() == before
    file.write_bytes(b'{"offset bio bi_next": {"no": 1}}')
    assert asked(Btf.of_kernel()) == answers
