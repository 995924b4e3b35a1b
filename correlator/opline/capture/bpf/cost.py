# SPDX-License-Identifier: MIT
"""What BPF programs have cost, by the kernel's own account (``sysctl kernel.bpf_stats_enabled=1``)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress

from opline.capture.bpf import kernel

# include/uapi/linux/bpf.h: run_time_ns and run_cnt in struct bpf_prog_info (Linux 5.1)
_RUN_TIME_NS, _INFO_BYTES = 192, 256


def spent(programs: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Runs and nanoseconds of the programs with these descriptors; without those that did not run, so nothing where
    the kernel does not count.
    """
    found = {}
    for name, descriptor in programs.items():
        with suppress(OSError):
            ns, runs = struct.unpack_from("=QQ", kernel.information(descriptor, _INFO_BYTES), _RUN_TIME_NS)
            if runs:
                found[name] = {"runs": runs, "ns": ns}
    return found
