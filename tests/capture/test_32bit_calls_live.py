# SPDX-License-Identifier: MIT
"""Calls of a 32-bit program, on this machine: their numbers mean other calls. They are left out, and that is said."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.recorded import Correlated
from tests.lib.recorder import status

from opline.correlation import correlate
from opline.model import load_model

pytestmark = pytest.mark.live

# int 0x80, the 32-bit programs' way into the kernel: number, first and second argument. 20 is getpid there and writev
# among the calls of 64 bits, 19 is lseek there and readv. Then a call that both kinds of recording have.
WORK = """
import ctypes, mmap, os
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("53 89f8 89f3 89d1 31d2 cd80 5b c3"))
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int)(
    ctypes.addressof(ctypes.c_char.from_buffer(code)))
assert call(20, 0, 0) == os.getpid()
fd = os.open("file", os.O_RDWR | os.O_CREAT)
assert call(19, fd, 100) == 100
os.pwritev(fd, [b"x" * 10], 0)
"""


def test_32bit_calls_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("int 0x80 is x86's")
    if subprocess.run([sys.executable, "-c", WORK], cwd=tmp_path, capture_output=True, check=False).returncode != 0:
        pytest.skip("no 32-bit programs here")
    done = subprocess.run(
        [Path(sys.executable).with_name("opline"), "record", "--model", "syscalls", "-o", tmp_path / "run", "--",
         sys.executable, "-c", WORK],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert status(done) == 0, done.stderr
    if json.loads((tmp_path / "run" / "recording.json").read_text())["block_source"] != "bpf":
        pytest.skip(f"not through BPF here: {done.stderr}")
    assert "system calls of 32-bit programs are not recorded" in done.stderr
    run = Correlated(tmp_path / "run", correlate(tmp_path / "run" / "trace", load_model("syscalls"), tmp_path / "run"))
    vectored = [(op["class"], op["length_bytes"]) for op in run.rows("ops") if (op["class"] or "").endswith("v")]
    assert vectored == [("pwritev", 10)]
