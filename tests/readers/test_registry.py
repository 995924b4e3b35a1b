# SPDX-License-Identifier: MIT
"""The registry of formats: one that is certain, whichever is asked first; the same from a file and from a pipe."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from opline.readers.registry import CERTAIN, HAS_IN, NO, Head, format_of, formats
from opline_analyses.cli import main
from opline_analyses.counts.inputs import FOLDERS

PERF = "fio  10 [001]  100.000001: block:block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]\n"
SCHED = "fio  10 [001]  100.000001: sched:sched_switch: prev_comm=fio prev_pid=10 ==> next_comm=a next_pid=1\n"
#: The module that reads an input, and how such an input may begin.
BEGINS: tuple[tuple[str, bytes], ...] = (
    ("block_text", PERF.encode()),
    ("block_text", b"# tracer: nop\n  fio-10  [001] d..1. 100.000001: block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]\n"),
    ("block_text", SCHED.encode() * 3000 + PERF.encode()),
    ("babeltrace_text", b'[09:34:23.661871204] (+0.000003133) n a:b: { cpu_id = 1 }, { x = "1" }\n'),
    ("blktrace", b"\x07\x74\x61\x65" + bytes(44)),
    ("perf_data", b"PERFILE2" + bytes(100)),
    ("trace_cmd", b"\x17\x08Dtracing6\0"),
    ("records", b"<begin record>\ntimestamp,microsec,1,x\nvalue |--- count\n 1 |@ 1\n<end record>\n"),
    ("netapp", b"volume:vol1:nfs_protocol_read_latency.<20us:5\n"),
    ("oracle_trace", b"WAIT #1: nam='db file sequential read' ela= 977 file#=7 tim=1377520823036634\n"),
    ("pgbench", b"0 199 2241 0 1175850568 995598\n"),
    ("dictionaries", b"{'ts': '2024-05-01 10:00:00', 'val_type': 'usecs', 'data': []}\n"),
    ("histograms_text", b"@usecs: \n[2, 4)   7 |@@@@ |\n"),
    ("histograms_text", b"     usecs               : count     distribution\n"),
    ("bpftrace_json", b'{"type": "hist", "data": {"@usecs": [{"min": 2, "max": 3, "count": 5}]}}\n'),
    ("fio_log", b"1, 100, 0, 4096\n2, 100, 0, 4096\n"),
    ("fio_bins", b'{"fio version": "fio-3.33", "jobs": [{"read": {"clat_ns": {"bins": {"1": 2}}}}]}'),
    ("fio_report", b'{"fio version": "fio-3.33", "jobs": []}'),
    ("rados_bench", b"Total writes made:      100\nAverage Latency(s):     0.1\n"),
    ("demo_bench", b'{"tool": "demo-bench", "version": 1}'),
    ("ceph_counters", b'{"osd": {"op_latency": {"avgcount": 4, "sum": 0.02}}}'),
    ("ceph_ops", b'{"ops": [{"initiated_at": "2021-03-03 10:00:00.1", "type_data": {}}], "num_ops": 1}'),
    ("cephtrace", b"osd 1 pg 2.1 op_r size 8 client 16 tid 15 throttle_lat 2 recv_lat 11 op_lat 13\n"),
    ("cephtrace", b"  pid  client  tid  pool  pg  acting  w/r  size  latency  object[ops][offset,length]\n"),
    ("biosnoop", b"TIME(s)     COMM  PID  DISK  T SECTOR     BYTES  LAT(ms)\n0.0 a 1 sda R 8 4096 1.0\n"),
    ("iosnoop", b"COMM PID TYPE DEV BLOCK BYTES LATms\na 1 R 8,0 8 4096 1.00\n"),
    ("blkparse", b"  8,0    1        2     0.000000829   697  Q   W 223490 + 8 [kjournald]\n"),
    ("perf_trace", b"     0.035 ( 0.012 ms): fio/1234 read(fd: 3, buf: 0x7f00, count: 4096) = 4096\n"),
    ("fs_slower", b"ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE\n5,a,1,R,4096,0,12,data\n"),
    ("two_columns", b"1 2\n2 3\n"),
)


@pytest.mark.parametrize(("name", "begin"), BEGINS)
def test_one_format_is_certain(name: str, begin: bytes) -> None:
    head = Head(begin, "x", True)
    answers = {one.__name__.rpartition(".")[2]: one.probe(head) for one in formats(FOLDERS)}
    certain = [format_ for format_, answer in answers.items() if answer == CERTAIN]
    assert certain == ([] if name == "two_columns" else [name])
    assert answers[name] != NO


@pytest.mark.parametrize(("name", "begin"), BEGINS)
@pytest.mark.parametrize("piece", [7, 1 << 15])
def test_a_pipe_is_what_a_file_is(name: str, begin: bytes, piece: int, tmp_path: Path) -> None:
    path, pipe = tmp_path / "file", tmp_path / "pipe"
    path.write_bytes(begin)
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb", buffering=0) as out:
            for at in range(0, min(len(begin), 1 << 17), piece):
                out.write(begin[at : at + piece])

    found = format_of(path, FOLDERS)
    assert found is not None and found.__name__.endswith(f".{name}")
    if len(begin) > 1 << 17 and piece < 100:
        return
    writer = threading.Thread(target=write)
    writer.start()
    assert format_of(pipe, FOLDERS) in ([found] if len(begin) < 1 << 17 else formats(FOLDERS))
    main(["hist", str(pipe)])  # reads it to its end
    writer.join()


def test_what_no_format_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for content in (b"\0" * 1000, b"hello\n", b"hello\n" * 100_000, os.urandom(3000)):
        (tmp_path / "x").write_bytes(content)
        assert format_of(tmp_path / "x", FOLDERS) is None
        assert main(["hist", str(tmp_path / "x")]) == 1
        assert "of no format that opline knows" in capfd.readouterr().err


def test_every_format_says_what_it_is() -> None:
    for one in formats(FOLDERS):
        assert one.CALLED and one.HAS in HAS_IN, one
        assert one.probe(Head(b"", "x", True)) == NO, one


def test_each_line_is_tried_once_by_each_test() -> None:
    """However often the head of an input has grown: the time is linear."""
    tried: list[str] = []

    def fails(line: str) -> bool:
        tried.append(line)
        return False

    data = b"".join(b"%d\n" % number for number in range(3000)) * 2
    heads: list[Head] = []
    for end in (1000, 2000, 4000, len(data)):
        heads.append(Head(data[:end], "x", end == len(data), heads[-1] if heads else None))
        assert not heads[-1].has(fails)
    assert tried == [str(number) for number in range(3000)]
    assert not heads[0].has(fails) and len(tried) == 3000
    assert heads[-1].has(lambda line: line == "2999")
    assert not heads[0].has(lambda line: line == "2999")
    assert heads[-1].lines == data.decode().splitlines()


def test_a_text_of_short_lines_is_not_looked_at_to_its_end() -> None:
    data = b"".join(b"%d\n" % number for number in range(50_000))
    head = Head(data, "x", True)
    assert head.has(lambda line: line == "16383")
    assert not head.has(lambda line: line == "16384")
