# SPDX-License-Identifier: MIT
"""Parts of a trace that were there and are not, or are there twice: both readers tell the loss, exit status 3."""

from __future__ import annotations

import json
import shutil
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.lib.recorded import LAB, RunOf
from tests.readers.test_bad_input import READERS, kernel_stream, packets_of, with_number
from tests.readers.test_readers import plain

from opline.correlation import correlate
from opline.model import load_model
from opline.store.schema import TABLES
from opline_analyses.cli import main

NAME = "app-sync-qd4-nvme"
OPS = 3000


def by_both(folder: Path, out: Path) -> dict[str, Any]:
    """The manifest by the native reader; both give the same tables."""
    manifest: dict[str, Any] = {}
    for reader in READERS:
        manifest[reader] = correlate(folder, load_model(str(LAB)), out / reader, reader=reader, progress=False)
    for table in TABLES:
        native, bt2 = (plain(out / reader / f"{table.name}.parquet") for reader in READERS)
        assert native.equals(bt2), table.name
    assert manifest["native"]["losses"] == manifest["bt2"]["losses"]
    assert manifest["native"]["read_messages"] == manifest["bt2"]["read_messages"]
    return dict(manifest["native"])


def tainted(out: Path) -> int:
    return int(pq.read_table(out / "native" / "ops.parquet", columns=["tainted"])["tainted"].to_numpy().sum())


@pytest.fixture
def copy(trace: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy of a trace of two CPUs, kernel and user space, that a test may damage."""
    return Path(shutil.copytree(trace(NAME), tmp_path / "trace"))


def empty(stream: Path) -> None:
    stream.write_bytes(b"")


def unlink(stream: Path) -> None:
    stream.unlink()


def unlink_with_index(stream: Path) -> None:
    stream.unlink()
    (stream.parent / "index" / f"{stream.name}.idx").unlink()


def empty_without_indexes(stream: Path) -> None:
    empty(stream)
    shutil.rmtree(stream.parent / "index")


@pytest.mark.parametrize("damage", [empty, unlink, unlink_with_index, empty_without_indexes])
@pytest.mark.parametrize("stream", ["kernel/kch_0", "ust/uid/0/64-bit/uch_1"])
def test_a_stream_that_is_gone_is_a_loss(
    stream: str, damage: Callable[[Path], None], copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its index says that it was there, or that of the kernel does: kch_1 has a CPU 1, so there was a CPU 0."""
    damage(copy / stream)
    manifest = by_both(copy, tmp_path)
    assert manifest["losses"]["streams_missing"] == 1
    ops = pq.read_table(tmp_path / "native" / "ops.parquet", columns=["tainted"])["tainted"].to_pylist()
    assert ops
    assert all(ops)
    assert main(["losses", str(tmp_path / "native"), "--max-loss", "0"]) == 3
    assert "streams_missing" in capsys.readouterr().out


def test_the_last_cpu_of_the_kernel_is_missed_by_who_was_woken_on_it(copy: Path, tmp_path: Path) -> None:
    """kch_0 alone says nothing of a CPU 1, and user space may have more CPUs than the kernel: sched_wakeup names it."""
    unlink_with_index(copy / "kernel" / "kch_1")
    manifest = by_both(copy, tmp_path)
    assert manifest["losses"]["streams_missing"] == 1
    assert tainted(tmp_path) > OPS * 0.9


def test_a_recording_says_how_many_cpus_there_were(trace: Callable[[str], Path], tmp_path: Path) -> None:
    recording = Path(shutil.copytree(trace("demo-kernel"), tmp_path / "recording"))
    for channel in ("kernel/kernel_1", "ust/uid/0/64-bit/app_1"):
        unlink_with_index(recording / "trace" / channel)
    whole = json.loads((recording / "recording.json").read_text())
    assert whole["host"]["cpu_count"] == 2
    losses = correlate(recording, load_model("demo"), tmp_path / "run", progress=False)["losses"]
    assert losses["streams_missing"] == 2


@pytest.mark.parametrize("name", ["demo-kernel", "demo-qd4", NAME, "ctf-merged", "ctf-deb12-uprobes-qd16"])
def test_of_a_sound_trace_nothing_is_missing(name: str, run_of: RunOf) -> None:
    run = run_of(name)
    assert not {"streams_missing", "packets_missing", "packets_doubled", "discarded_packets"} & set(
        run.manifest["losses"]
    )


def test_packets_before_the_first_are_missing(copy: Path, tmp_path: Path) -> None:
    stream = kernel_stream(copy)
    packets = packets_of(stream)
    stream.write_bytes(b"".join(packets[1:]))
    manifest = by_both(copy, tmp_path)
    assert manifest["losses"]["discarded_packets"] == 1
    begin_ns = struct.unpack_from("<Q", packets[1], 32)[0]
    ops = pq.read_table(tmp_path / "native" / "ops.parquet", columns=["begin_ns", "tainted"]).to_pylist()
    assert {op["tainted"] for op in ops if op["begin_ns"] <= begin_ns} == {True}
    assert not all(op["tainted"] for op in ops)


def test_chunks_of_a_rotated_session_go_on_from_each_other(copy: Path, tmp_path: Path) -> None:
    """Two traces of one session, the second's packets numbered from where the first's end."""
    whole = by_both(copy, tmp_path / "whole")
    later = Path(shutil.copytree(copy / "kernel", copy / "later"))
    for stream in ("kch_0", "kch_1"):
        packets = packets_of(copy / "kernel" / stream)
        (copy / "kernel" / stream).write_bytes(packets[0])
        (later / stream).write_bytes(b"".join(packets[1:]))
    for folder in (copy / "kernel", later):
        shutil.rmtree(folder / "index")
    manifest = by_both(copy, tmp_path)
    assert manifest["core"]["events"] == whole["core"]["events"]
    assert "discarded_packets" not in manifest["losses"]
    (later / "kch_1").write_bytes(packets[2])  # without its second one
    assert by_both(copy, tmp_path / "gap")["losses"]["discarded_packets"] == 1


@pytest.mark.parametrize(("before", "after", "lost"), [(0, 5, 5), (5, 5, 1), (2, 5, 4), (0, 0, 0)])
def test_what_one_chunk_lost_is_not_lost_again_in_the_next(
    copy: Path, tmp_path: Path, before: int, after: int, lost: int
) -> None:
    """How many events were lost up to the end of the first packet is not known: that is one loss."""
    archive = copy / "archives/20261129T061954+0000-20261129T061955+0000-0/kernel"
    later = Path(shutil.copytree(copy / "kernel", copy / "20261129T061955+0000-1/kernel"))
    archive.parent.mkdir(parents=True)
    (copy / "kernel").rename(archive)
    packets = packets_of(archive / "kch_1")
    (archive / "kch_1").write_bytes(with_number(packets[0], discarded=before))
    (archive / "kch_0").write_bytes(b"".join(packets_of(later / "kch_0")))
    (later / "kch_0").unlink()
    (later / "kch_1").write_bytes(b"".join(with_number(packet, discarded=after) for packet in packets[1:]))
    for folder in (archive, later):
        shutil.rmtree(folder / "index")
    losses = correlate(copy, load_model(str(LAB)), tmp_path / "run", reader="native", progress=False)["losses"]
    assert losses.get("discarded_events", 0) + losses.get("discarded_unknown_count", 0) == lost


def test_what_a_file_lost_by_its_index_taints(copy: Path, tmp_path: Path) -> None:
    stream = kernel_stream(copy)
    packets = packets_of(stream)
    stream.write_bytes(packets[0])
    assert by_both(copy, tmp_path)["losses"]["packets_missing"] == 1
    end_ns = struct.unpack_from("<Q", packets[0], 40)[0]
    ops = pq.read_table(tmp_path / "native" / "ops.parquet", columns=["end_ns", "tainted"]).to_pylist()
    assert {op["tainted"] for op in ops if op["end_ns"] >= end_ns} == {True}
    assert not all(op["tainted"] for op in ops)


def test_an_index_that_contradicts_the_packets_is_not_believed(copy: Path, tmp_path: Path) -> None:
    index = copy / "kernel" / "index" / "kch_0.idx"
    data = bytearray(index.read_bytes())
    struct.pack_into(">Q", data, 16, 4096)
    data += data[-72:]
    index.write_bytes(data)
    assert "packets_missing" not in by_both(copy, tmp_path)["losses"]


def in_another_file(stream: Path) -> None:
    shutil.copyfile(stream, stream.with_name(stream.name + ".bak"))


def in_another_file_with_a_damaged_begin(stream: Path) -> None:
    another_with(stream, 32, 1 << 20)


def in_another_file_with_a_damaged_number(stream: Path) -> None:
    """Of the first packet: its number counts packets that never were."""
    another_with(stream, 64, 1 << 50)


def first_of_two_files_with_a_damaged_number(stream: Path) -> None:
    whole = stream.read_bytes()
    another_with(stream, 64, 1 << 50)
    other = stream.with_name(stream.name + ".bak")
    stream.write_bytes(other.read_bytes())
    other.write_bytes(whole)


def another_with(stream: Path, at: int, flipped: int) -> None:
    """A copy of the file in which bits of the number at that byte are flipped."""
    doubled = bytearray(stream.read_bytes())
    struct.pack_into("<Q", doubled, at, struct.unpack_from("<Q", doubled, at)[0] ^ flipped)
    stream.with_name(stream.name + ".bak").write_bytes(doubled)


def at_the_end(stream: Path) -> None:
    stream.write_bytes(b"".join([*packets_of(stream), packets_of(stream)[0]]))


def in_another_folder(stream: Path) -> None:
    shutil.copytree(stream.parent, stream.parent.with_name("kernel-copy"))


@pytest.mark.parametrize(
    ("damage", "doubled"),
    [
        (in_another_file, 3),
        (in_another_file_with_a_damaged_begin, 3),
        (in_another_file_with_a_damaged_number, 3),
        (first_of_two_files_with_a_damaged_number, 3),
        (at_the_end, 1),
        (in_another_folder, 6),
    ],
)
def test_what_is_there_twice_is_read_once(
    damage: Callable[[Path], None], doubled: int, copy: Path, run_of: RunOf, tmp_path: Path
) -> None:
    damage(kernel_stream(copy))
    manifest = by_both(copy, tmp_path)
    assert manifest["losses"]["packets_doubled"] == doubled
    for table in TABLES:
        if table.name in ("losses",):
            continue
        once, twice = (plain(path / f"{table.name}.parquet") for path in (run_of(NAME).path, tmp_path / "native"))
        assert once.equals(twice), table.name


def test_the_rest_of_a_packet_taints_its_interval(copy: Path, tmp_path: Path) -> None:
    """An event of an unknown id in the second of three packets: what follows in it is missing, the third is read."""
    stream = kernel_stream(copy)
    first, second, third = packets_of(stream)
    content = struct.unpack_from("<Q", second, 48)[0] // 8
    broken = bytearray(second)
    at = content // 2
    broken[at : at + 400] = b"\xff\xff" + b"\xfe\xfe" * 199  # no id of this trace is so large
    stream.write_bytes(first + bytes(broken) + third)
    manifest = by_both(copy, tmp_path)
    assert manifest["losses"]["unknown_events"] + manifest["losses"].get("truncated_packets", 0) == 1
    assert manifest["losses"]["discarded_unknown_count"] == 1
    begin_ns, end_ns = struct.unpack_from("<QQ", second, 32)
    ops = pq.read_table(
        tmp_path / "native" / "ops.parquet", columns=["begin_ns", "end_ns", "tainted", "unsplit"]
    ).to_pylist()
    marked = [op for op in ops if op["tainted"] or op["unsplit"]]
    inside = [op for op in ops if begin_ns <= op["begin_ns"] and op["end_ns"] <= end_ns]
    assert 0 < len(inside) <= len(marked) < OPS
    assert all(op in marked for op in inside)
    assert all(op["end_ns"] >= begin_ns and op["begin_ns"] <= end_ns for op in marked)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("size", [64, 4096])
def test_zeroed_bytes_taint_the_packet(copy: Path, run_of: RunOf, tmp_path: Path, share: float, size: int) -> None:
    """Zeros can be read as events, later than all of their packet, and lead to others that are none: no op that lost
    its I/O is without a mark, and nothing is later or earlier than the recording.
    """
    stream = kernel_stream(copy)
    content = bytearray(stream.read_bytes())
    at = int(len(content) * share)
    content[at : at + size] = bytes(size)
    stream.write_bytes(bytes(content))
    manifest = by_both(copy, tmp_path)
    whole = run_of(NAME).path
    assert manifest["losses"]["discarded_unknown_count"] >= 1
    sound, damaged = (_steps(path) for path in (whole, tmp_path / "native"))
    lost = {key for key in sound if damaged.get(key, (None,))[0] != sound[key][0]}
    unmarked = [key for key in lost if key in damaged and not damaged[key][1]]
    assert lost and not unmarked
    assert manifest["core"]["first_ns"] >= run_of(NAME).core["first_ns"]
    assert manifest["core"]["last_ns"] <= run_of(NAME).core["last_ns"]


def _steps(run: Path) -> dict[int, tuple[int, bool]]:
    """Of each op, by its begin: how many of its transitions and bios there are, and whether it is marked."""
    count: Counter[int] = Counter()
    for table in ("transitions", "bios"):
        count.update(op for op in pq.read_table(run / f"{table}.parquet")["op_id"].to_pylist() if op is not None)
    columns = ["op_id", "begin_ns", "tainted", "unsplit"]
    ops = pq.read_table(run / "ops.parquet", columns=columns).to_pylist()
    return {op["begin_ns"]: (count[op["op_id"]], op["tainted"] or op["unsplit"]) for op in ops}


@pytest.mark.parametrize("reader", READERS)
def test_an_instance_id_that_babeltrace2_aborts_on(reader: str, copy: Path, tmp_path: Path) -> None:
    stream = kernel_stream(copy)
    first, *others = packets_of(stream)
    head = bytearray(first)
    struct.pack_into("<Q", head, 24, 2**64 - 1)
    stream.write_bytes(bytes(head) + b"".join(others))
    losses = correlate(copy, load_model(str(LAB)), tmp_path / "run", reader=reader, progress=False)["losses"]
    assert losses["malformed_packets"] == 1


def test_a_number_that_is_there_twice_with_other_contents_is_read(copy: Path, run_of: RunOf, tmp_path: Path) -> None:
    """Two packets of one number, but of other times, are two packets of which one's number is wrong."""
    stream = kernel_stream(copy)
    first, second, third = packets_of(stream)
    stream.write_bytes(first + with_number(second, sequence=0) + third)
    manifest = by_both(copy, tmp_path)
    assert "packets_doubled" not in manifest["losses"]
    assert manifest["core"]["events"] == run_of(NAME).core["events"]


HEAD_BYTES = 84  # of a packet of LTTng's kernel tracer: header and context


def without_events(packet: bytes, begin_ns: int) -> bytes:
    """A packet of that number, a microsecond long, with nothing in it."""
    head = bytearray(packet[:HEAD_BYTES])
    struct.pack_into("<4Q", head, 32, begin_ns, begin_ns + 1000, 8 * HEAD_BYTES, 8 * HEAD_BYTES)
    return bytes(head)


def test_of_many_packets_of_one_number_each_is_read_once(copy: Path, run_of: RunOf, tmp_path: Path) -> None:
    """A packet is compared with 64 of its number at most: beyond that what is there twice is found by its times."""
    stream = kernel_stream(copy)
    first, *others = packets_of(stream)
    (begin_ns,) = struct.unpack_from("<Q", first, 32)
    many = [without_events(first, begin_ns - 2000 * n) for n in range(300, 0, -1)]
    stream.write_bytes(b"".join([*many, *many, first, *others]))
    manifest = by_both(copy, tmp_path)
    assert manifest["losses"]["packets_doubled"] == len(many)
    assert manifest["core"]["events"] == run_of(NAME).core["events"]
