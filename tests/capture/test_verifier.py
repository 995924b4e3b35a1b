# SPDX-License-Identifier: MIT
"""The BPF programs are small for the kernel's verifier, whichever clang compiles them."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

import pytest

from opline.capture.bpf.bpf import Collector

pytestmark = pytest.mark.live

# include/uapi/linux/bpf.h: the command, and the place of verified_insns in struct bpf_prog_info (Linux 5.16)
BPF_OBJ_GET_INFO_BY_FD = 15
VERIFIED_INSNS = 216
INFO_BYTES = 256
SYS_BPF = {"x86_64": 321, "aarch64": 280}

MOST = 100_000  # a tenth of the limit


def verified(descriptor: int) -> int:
    """How many instructions the verifier looked at before it took the program; 0: the kernel does not say."""
    info = ctypes.create_string_buffer(INFO_BYTES)
    asked = ctypes.create_string_buffer(struct.pack("=IIQ", descriptor, INFO_BYTES, ctypes.addressof(info)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(SYS_BPF[os.uname().machine], BPF_OBJ_GET_INFO_BY_FD, asked, 16) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(struct.unpack_from("=I", info.raw, VERIFIED_INSNS)[0])


@pytest.mark.parametrize("whole", [False, True])
def test_no_program_takes_more_than_a_tenth_of_the_verifiers_limit(tmp_path: Path, whole: bool) -> None:
    collector = Collector(calls=True, states=True, chains=True, requests=tmp_path / "whole" if whole else None)
    try:
        steps = {name: verified(descriptor) for name, descriptor in collector.programs.items()}
    finally:
        collector.start()
        collector.finish()
    if not any(steps.values()):
        pytest.skip("this kernel does not say what the verifier did")
    assert "block_rq_issue" in steps and ("bio_walk" in steps) == whole
    assert {name: count for name, count in steps.items() if not 0 < count < MOST} == {}
