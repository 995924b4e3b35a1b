# SPDX-License-Identifier: MIT
"""The BPF programs are small for the kernel's verifier, whichever clang compiles them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from opline.capture.bpf import kernel
from opline.capture.bpf.bpf import Collector

pytestmark = pytest.mark.live

VERIFIED_INSNS = 216  # its place in struct bpf_prog_info (Linux 5.16), include/uapi/linux/bpf.h
INFO_BYTES = 256

MOST = 100_000  # a tenth of the limit


def verified(descriptor: int) -> int:
    """How many instructions the verifier looked at before it took the program; 0: the kernel does not say."""
    return int(struct.unpack_from("=I", kernel.information(descriptor, INFO_BYTES), VERIFIED_INSNS)[0])


@pytest.mark.parametrize("whole", [False, True])
def test_no_program_takes_more_than_a_tenth_of_the_verifiers_limit(tmp_path: Path, whole: bool) -> None:
    requests = tmp_path / "whole" if whole else None
    collector = Collector(calls=True, states=True, chains=True, requests=requests, streams=True)
    try:
        steps = {name: verified(descriptor) for name, descriptor in collector.programs.items()}
    finally:
        collector.start()
        collector.finish()
    if not any(steps.values()):
        pytest.skip("this kernel does not say what the verifier did")
    assert "block_rq_issue" in steps and ("bio_walk" in steps) == whole
    assert {name: count for name, count in steps.items() if not 0 < count < MOST} == {}
