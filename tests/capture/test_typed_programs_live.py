# SPDX-License-Identifier: MIT
"""Programs that read the kernel's structures by plain loads, and those that ask a helper for each word, tell the same.

The second kind is for kernels that refuse the first.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import bt2
import pytest
from tests.lib.block_capture import _plain
from tests.lib.recorder import record_well

pytestmark = pytest.mark.live

# Of every Python that starts below: the kernel takes no program that knows its arguments' types.
REFUSING = """
import errno, os
from opline.capture.bpf import kernel
taken = kernel.load
def load(kind, code, name, wanted_for=0, attached_to=0):
    if wanted_for == kernel.TRACE_RAW_TP:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return taken(kind, code, name, wanted_for, attached_to)
kernel.load = load
"""
# Positions and places of all kinds, an iocb's file excepted.
CALLS = """
import os, sys
name = sys.argv[1]
both = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
end = os.open(name, os.O_WRONLY | os.O_APPEND)
for i in range(50):
    os.write(both, b"x" * 512)
    os.pwrite(both, b"y" * 512, 4096 * i)
    os.write(end, b"z" * 100)
    os.pwrite(end, b"z" * 100, 0)
    os.pread(both, 512, 4096 * i)
    os.preadv(both, [bytearray(256), bytearray(256)], 512 * i)
    os.writev(both, [b"a" * 10, b"b" * 20])
    os.lseek(both, 0, os.SEEK_SET)
    os.read(both, 64)
    os.fdatasync(both)
"""
FIO = [
    "fio", "--name=x", "--ioengine=io_uring", "--rw=randread", "--bs=4k", "--size=1M", "--iodepth=4", "--io_size=1M",
    "--output=/dev/null",
]  # fmt: skip
OF_CALLS = ("fd", "count", "vlen", "pos", "file_dev", "ret")
OF_REQUESTS = ("opcode", "fd", "pos", "len", "res")


def told(folder: Path, name: str, env: dict[str, str]) -> tuple[list[Any], Counter[Any], dict[str, Any]]:
    """Calls on the file in their order, io_uring's requests, and the collector's report."""
    work = ["sh", "-c", f'"$0" -c "$1" {name} && {" ".join(FIO)} --filename={name}.io', sys.executable, CALLS]
    out = folder / "run"
    argv = [str(Path(sys.executable).with_name("opline")), "record", "--quiet", "--model", "syscalls", "-o", str(out)]
    record_well([*argv, "--", *work], timeout=180, env=env, stdout=subprocess.DEVNULL)
    note = json.loads((out / "recording.json").read_text())
    if note["block_source"] != "bpf":
        pytest.skip("not through BPF here")
    inode, calls, requests, open_calls = Path(name).stat().st_ino, [], Counter[Any](), set[int]()
    for message in bt2.TraceCollectionMessageIterator(str(out / "trace")):
        if not isinstance(message, bt2._EventMessageConst):
            continue
        event = message.event.name.rpartition(":")[2]
        fields = {field: _plain(value) for field, value in message.event.payload_field.items()}
        if event.startswith("syscall_entry") and fields.get("inode") == inode:
            open_calls.add(fields["tid"])
        elif not (event.startswith("syscall_exit") and fields["tid"] in open_calls):
            if event in ("io_uring_submit_req", "io_uring_complete"):
                requests[(event, *(fields.get(field) for field in OF_REQUESTS))] += 1
            continue
        if event.startswith("syscall_exit"):
            open_calls.discard(fields["tid"])
        calls.append((event, *(fields.get(field) for field in OF_CALLS)))
    return calls, requests, note["collector"]


def test_both_kinds_of_programs_tell_the_same(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("needs fio")
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(REFUSING)
    found = []
    for number, path in enumerate((None, site)):
        folder = tmp_path / str(number)
        folder.mkdir()
        env = dict(os.environ) | ({} if path is None else {"PYTHONPATH": str(path)})
        found.append(told(folder, str(tmp_path / "file"), env))
    (calls, requests, report), (other_calls, other_requests, other_report) = found
    assert (report["typed"], other_report["typed"]) == (True, False)
    assert set(report["tracepoints"]) == set(other_report["tracepoints"])
    assert len(calls) == 2 * 50 * 9 and calls == other_calls
    assert sum(requests.values()) == 2 * 256 and requests == other_requests
