# SPDX-License-Identifier: MIT
"""Input that is no trace, or a damaged one: one clear line and its exit status; what is readable is read.

Both front ends are asked, and give the same tables where the damage is one that both understand.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.lib.recorded import RunOf
from tests.readers.test_readers import plain

from opline import _core
from opline.correlation import correlate
from opline.errors import TraceError
from opline.model import load_model
from opline.readers.front import choose
from opline.readers.streams import examine
from opline.readers.trace import find_traces
from opline.store.schema import TABLES
from opline_analyses.cli import main

LAB = str(Path(__file__).parents[1] / "models" / "lab.toml")
NAME = "app-sync-qd4-nvme"
READERS = ("native", "bt2")
JUNK = bytes(range(160, 200))


@pytest.fixture
def damaged(trace: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy of a kernel + UST trace that a test may damage."""
    return Path(shutil.copytree(trace(NAME), tmp_path / "trace"))


def kernel_stream(folder: Path) -> Path:
    return folder / "kernel" / "kch_0"


def says(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """What the program says of a path: exit status, standard error."""
    status = main(["stages", str(path), "--model", LAB, *options])
    said = capsys.readouterr()
    if status != 0:
        assert said.out == ""
        assert len(said.err.splitlines()) == 1, said.err
    assert "Traceback" not in said.err
    return status, said.err


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


NO_TRACE: dict[str, tuple[dict[str, bytes], str]] = {
    "empty-folder": ({}, "is empty"),
    "other-files": ({"readme": b"hello\n"}, "is not a CTF trace"),
    "no-metadata": ({"ch_0": struct.pack("<I", 0xC1FC1FC1) + bytes(60)}, "no `metadata`"),
    "empty-metadata": ({"metadata": b""}, "is empty"),
    "junk-metadata": ({"metadata": JUNK * 50, "ch_0": JUNK}, "is not the metadata of a CTF trace"),
    "metadata-of-no-grammar": ({"metadata": b"/* CTF 1.8 */\ntrace { what is this\n", "ch_0": JUNK}, "annot"),
    "no-streams": ({"metadata": b"/* CTF 1.8 */\n"}, "nothing was recorded"),
    "ctf-2": ({"metadata": b'\x1e{"type":"preamble","version":2}\n', "ch_0": JUNK}, "CTF 2"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", NO_TRACE)
def test_what_is_no_trace_is_said_in_one_line(
    name: str, reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, wanted = NO_TRACE[name]
    folder = tmp_path / "it"
    folder.mkdir()
    for file, content in files.items():
        put(folder / file, content)
    status, said = says(folder, capsys, "--reader", reader)
    assert status == 1
    assert wanted in said or (name == "ctf-2" and "--reader bt2" in said)
    assert str(folder) in said


def test_a_file_and_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "file", b"hello")
    assert says(tmp_path / "file", capsys)[0] == 1
    assert says(tmp_path / "nothing", capsys) == (2, f"opline: {tmp_path / 'nothing'} does not exist.\n")


@pytest.mark.parametrize("reader", READERS)
def test_metadata_that_is_cut_off(damaged: Path, reader: str, capsys: pytest.CaptureFixture[str]) -> None:
    """babeltrace 2.0 would read it forever."""
    metadata = damaged / "kernel" / "metadata"
    metadata.write_bytes(metadata.read_bytes()[:5000])
    status, said = says(damaged, capsys, "--reader", reader)
    assert status == 1
    assert "cut off" in said
    assert "metadata" in said


def test_a_reader_that_is_forced_does_not_give_way(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metadata = damaged / "ust/uid/0/64-bit/metadata"
    put(metadata, b'\x1e{"type":"preamble","version":2}\n')
    status, said = says(damaged, capsys, "--reader", "native")
    assert status == 1
    assert "--reader bt2" in said


def test_traces_of_two_boots_do_not_compare(
    trace: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (NAME, "app-uring-qd16-nvme"):
        shutil.copytree(trace(name), tmp_path / "both" / name)
    metadata = tmp_path / "both" / NAME / "kernel" / "metadata"
    content = metadata.read_bytes()
    at = content.index(b"uuid = ", content.index(b"clock {")) + 8
    metadata.write_bytes(content[:at] + b"00000000" + content[at + 8 :])
    for reader in READERS:
        status, said = says(tmp_path / "both", capsys, "--reader", reader)
        assert status == 1
        assert "different clocks" in said


@pytest.fixture
def nobody() -> Iterator[None]:
    """Without root's rights to read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_no_permission(nobody: None, capsys: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        closed = Path(folder) / "run" / "kernel"
        put(closed / "metadata", b"/* CTF 1.8 */")
        closed.chmod(0)
        for path in (closed.parent, closed, closed / "deeper"):
            status, said = says(path, capsys)
            assert status == 1
            assert "ermission" in said
            assert "kernel" in said
        closed.chmod(0o755)
        (closed / "metadata").chmod(0)
        status, said = says(closed, capsys)
        assert status == 1
        assert "metadata: Permission denied" in said


def cut_in_packet(stream: Path) -> None:
    stream.write_bytes(stream.read_bytes()[:1_300_001])


def cut_in_header(stream: Path) -> None:
    stream.write_bytes(stream.read_bytes()[: 1_048_576 + 40])


def cut_between_packets(stream: Path) -> None:
    stream.write_bytes(stream.read_bytes()[:1_048_576])


def cut_to_a_few_bytes(stream: Path) -> None:
    stream.write_bytes(stream.read_bytes()[:20])


def junk_at_begin(stream: Path) -> None:
    stream.write_bytes(JUNK + stream.read_bytes()[len(JUNK) :])


def junk_after_a_packet(stream: Path) -> None:
    content = bytearray(stream.read_bytes())
    content[1_048_576 : 1_048_576 + len(JUNK)] = JUNK
    stream.write_bytes(content)


DAMAGES: dict[Callable[[Path], None], str] = {
    cut_in_packet: "truncated_packets",
    cut_in_header: "truncated_packets",
    cut_between_packets: "packets_missing",
    cut_to_a_few_bytes: "truncated_packets",
    junk_at_begin: "malformed_packets",
}


@pytest.mark.parametrize(
    ("damage", "index"), [*((d, True) for d in DAMAGES), (cut_in_packet, False), (junk_at_begin, False)]
)
def test_what_is_readable_is_read(damage: Callable[[Path], None], index: bool, damaged: Path, tmp_path: Path) -> None:
    if not index:
        shutil.rmtree(damaged / "kernel" / "index")
    damage(kernel_stream(damaged))
    for reader in READERS:
        correlate(damaged, load_model(LAB), tmp_path / reader, reader=reader, progress=False)
    for table in TABLES:
        native, bt2 = (plain(tmp_path / reader / f"{table.name}.parquet") for reader in READERS)
        assert native.equals(bt2), table.name
    losses = {row["loss"]: row["count"] for row in pq.read_table(tmp_path / "bt2" / "losses.parquet").to_pylist()}
    assert losses[DAMAGES[damage]] == 1
    # the application's events are in other streams: all 3000 ops are there
    ops = pq.read_table(tmp_path / "bt2" / "ops.parquet", columns=["complete", "tainted", "unsplit"])
    assert ops["complete"].to_pylist() == [True] * 3000
    if damage in (cut_in_packet, cut_in_header):  # what reaches beyond the damage is marked
        assert losses["damaged_streams"] == 1
        assert any(ops["tainted"].to_pylist() + ops["unsplit"].to_pylist())


@pytest.mark.parametrize("reader", READERS)
def test_damage_in_the_middle_keeps_what_came_before(reader: str, damaged: Path, tmp_path: Path) -> None:
    junk_after_a_packet(kernel_stream(damaged))
    manifest = correlate(damaged, load_model(LAB), tmp_path / reader, reader=reader, progress=False)
    assert 54_761 < manifest["core"]["events"] < 98_936  # the UST streams and the other CPU have 54 761
    assert manifest["core"]["losses"]["damaged_streams"] == 1


Packets = list[bytes]
BEGIN, CONTENT, SIZE, SEQUENCE, DISCARDED = 32, 48, 56, 64, 72  # of LTTng's packets: byte offsets of 64-bit numbers


def packets_of(path: Path) -> Packets:
    data, at, out = path.read_bytes(), 0, []
    while at < len(data):
        size = struct.unpack_from("<Q", data, at + SIZE)[0] // 8
        out.append(data[at : at + size])
        at += size
    return out


def with_number(packet: bytes, **numbers: int) -> bytes:
    out = bytearray(packet)
    for name, value in numbers.items():
        struct.pack_into("<Q", out, globals()[name.upper()], value)
    return bytes(out)


def third(**numbers: int) -> Callable[[Packets], Packets]:
    """A damage: these numbers in the third packet."""
    return lambda p: [*p[:2], with_number(p[2], **numbers), *p[3:]]


# what a damage of one of 10 packets in a stream of many adds to the ledger, whichever reader reads it
PACKETS: dict[str, tuple[Callable[[Packets], Packets], dict[str, int | None]]] = {
    "two change places": (lambda p: [p[0], p[2], p[1], *p[3:]], {"packets_out_of_order": 1}),
    "one twice": (lambda p: [*p[:3], p[2], *p[3:]], {"packets_doubled": 1, "packets_out_of_order": None}),
    "two are gone": (lambda p: [*p[:3], *p[5:]], {"discarded_packets": 2}),
    "begins at 0": (third(begin=0), {"packets_out_of_order": 1}),
    "of no size": (third(content=0, size=0), {"malformed_packets": 1, "damaged_streams": 1}),
    "content beyond the packet": (third(content=1 << 40), {"malformed_packets": 1, "damaged_streams": 1}),
    "content within the header": (third(content=8), {"malformed_packets": 1, "damaged_streams": 1}),
    "of half a byte": (third(size=4096 * 8 - 4), {"malformed_packets": 1, "damaged_streams": 1}),
    "of 2^60 bytes": (third(size=1 << 63), {"damaged_streams": 1}),
    "a sequence number that goes back": (third(sequence=0), {"discarded_unknown_count": 1, "discarded_packets": 2}),
    "a sequence number of 2^63 + 1": (third(sequence=1 + 2**63), {"discarded_unknown_count": 2}),
    "a count of discarded events that is 2^63 too large": (
        lambda p: [*p[:3], *(with_number(x, discarded=2**63 + 7) for x in p[3:])],
        {"discarded_unknown_count": 1},
    ),
    "a first one of 2^63": (lambda p: [with_number(p[0], sequence=2**63), *p[1:]], {"discarded_packets": 1}),
    "no sequence number": (third(sequence=2**64 - 1), {"malformed_packets": 1, "damaged_streams": 1}),
    "a count of discarded events that goes down": (
        lambda p: [*p[:3], *(with_number(x, discarded=777) for x in p[3:])],
        {"discarded_unknown_count": 1},
    ),
    "no count of discarded events": (third(discarded=2**64 - 1), {"malformed_packets": 1, "damaged_streams": 1}),
}


@pytest.mark.parametrize("name", PACKETS)
def test_packets_that_lie_are_losses(name: str, trace: Callable[[str], Path], tmp_path: Path) -> None:
    damage, expected = PACKETS[name]
    folder = Path(shutil.copytree(trace("discard-tiny-buffers"), tmp_path / "trace"))
    shutil.rmtree(folder / "kernel" / "index")
    stream = kernel_stream(folder)
    stream.write_bytes(b"".join(damage(packets_of(stream))))
    for reader in READERS:
        correlate(folder, load_model(LAB), tmp_path / reader, reader=reader, progress=False)
    for table in TABLES:
        native, bt2 = (plain(tmp_path / reader / f"{table.name}.parquet") for reader in READERS)
        assert native.equals(bt2), table.name
    losses = {row["loss"]: row["count"] for row in plain(tmp_path / "native" / "losses.parquet").to_pylist()}
    assert {loss: losses.get(loss) for loss in expected} == expected


def test_an_index_that_is_wrong_is_not_believed(damaged: Path, run_of: RunOf, tmp_path: Path) -> None:
    """Offsets, sizes and counts of LTTng's index: the packets themselves say it, too."""
    for index in damaged.rglob("*.idx"):
        data = bytearray(index.read_bytes())
        size = struct.unpack_from(">I", data, 12)[0]
        for at in range(16, len(data), size):
            offset, packet, content, _begin, _end, discarded = struct.unpack_from(">6Q", data, at)
            struct.pack_into(">3Q", data, at, offset, packet, content // 2)
            struct.pack_into(">Q", data, at + 40, discarded + 1000)
        index.write_bytes(data)
    correlate(damaged, load_model(LAB), tmp_path / "run", reader="native", progress=False)
    for table in TABLES:
        names = (tmp_path / "run", run_of(NAME).path)
        wrong, right = (plain(path / f"{table.name}.parquet") for path in names)
        assert wrong.equals(right), table.name


def test_lttng_2_16_writes_ctf_1_8_in_other_words(trace: Callable[[str], Path], tmp_path: Path) -> None:
    """All types written out: both readers give the same events, and a file that is cut off is seen."""
    folder = next(iter(find_traces(trace("kinds-ctf2") / "lttng-ctf1")))
    printed = []
    for reader in READERS:
        out = tmp_path / reader
        with out.open("wb") as file:
            printer = _core.Printer(file.fileno(), "{}")
            for _ in choose([folder], reader)[0].read(printer):
                pass
            printer.finish()
        printed.append(out.read_bytes())
    assert printed[0] == printed[1]
    assert printed[0].count(b"kinds:all") == 400
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    stream = max((p for p in copy.glob("ch_*")), key=lambda p: p.stat().st_size)
    stream.write_bytes(stream.read_bytes()[:5000])
    found = examine([copy])
    assert found is not None
    assert {name for name, count in found.losses.items() if count} == {"truncated_packets"}


def test_a_sound_trace_has_no_damage(trace: Callable[[str], Path]) -> None:
    found = examine([Path(folder) for folder in find_traces(trace(NAME))])
    assert found is not None
    assert (found.files, found.damaged, found.rests, found.survey["missing"], found.messages) == ({}, {}, {}, [], [])


def test_all_streams_gone(damaged: Path) -> None:
    for folder in find_traces(damaged):
        for stream in Path(folder).glob("*ch_*"):
            stream.write_bytes(b"")
    with pytest.raises(TraceError, match="nothing was recorded"):
        find_traces(damaged)


READ_ALL = """
import sys
from pathlib import Path
from opline import _core
from opline.errors import OplineError, TraceError
from opline.readers.front import choose
from opline.readers.trace import find_traces
for trace in sys.argv[2:]:
    printer = _core.Printer(1, "{}")
    try:
        for _ in choose(find_traces(Path(trace)), sys.argv[1])[0].read(printer):
            pass
    except OplineError as error:
        assert str(error).count("\\n") == 0, error
    printer.finish()
"""


def spoil(path: Path, chance: random.Random) -> None:
    """Flip bits, cut, blank or insert a part of a file."""
    content = bytearray(path.read_bytes())
    at = chance.randrange(len(content))
    match chance.randrange(5):
        case 0:
            for _ in range(chance.randint(1, 20)):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        case 1:
            del content[at:]
        case 2:
            content[at : at + 999] = bytes(len(content[at : at + 999]))
        case 3:
            content[at:at] = content[: chance.randint(1, 3000)]
        case _:  # the packet's header, where every number matters
            for _ in range(3):
                content[chance.randrange(min(120, len(content)))] = chance.randrange(256)
    path.write_bytes(content)


@pytest.mark.parametrize("reader", READERS)
def test_no_damage_crashes_or_hangs(reader: str, trace: Callable[[str], Path], tmp_path: Path) -> None:
    """Forty traces with one to three spoilt files each: read as far as they go, or refused in one line."""
    chance = random.Random(23)
    spoilt = []
    for number in range(40):
        copy = Path(shutil.copytree(trace("app-sync-2m-nvme-split"), tmp_path / str(number)))
        files = sorted(p for p in copy.rglob("*") if p.is_file() and p.stat().st_size)
        for file in chance.sample(files, chance.randint(1, 3)):
            spoil(file, chance)
        spoilt.append(str(copy))
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, reader, *spoilt], capture_output=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
