# SPDX-License-Identifier: MIT
"""What BPF programs have cost, by the kernel's own account (``sysctl kernel.bpf_stats_enabled=1``)."""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Mapping

# include/uapi/linux/bpf.h: the command, and run_time_ns and run_cnt in struct bpf_prog_info (Linux 5.1)
_OBJ_GET_INFO_BY_FD = 15
_RUN_TIME_NS, _INFO_BYTES = 192, 256
_SYS_BPF = {"x86_64": 321, "aarch64": 280}


def spent(programs: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Runs and nanoseconds of the programs with these descriptors; without those that did not run, so nothing where
    the kernel does not count.
    """
    number = _SYS_BPF.get(platform.machine())
    if number is None:
        return {}
    libc = ctypes.CDLL(None, use_errno=True)
    found = {}
    for name, descriptor in programs.items():
        info = ctypes.create_string_buffer(_INFO_BYTES)
        asked = ctypes.create_string_buffer(struct.pack("=IIQ", descriptor, _INFO_BYTES, ctypes.addressof(info)))
        if libc.syscall(number, _OBJ_GET_INFO_BY_FD, asked, 16) != 0:
            continue
        ns, runs = struct.unpack_from("=QQ", info.raw, _RUN_TIME_NS)
        if runs:
            found[name] = {"runs": runs, "ns": ns}
    return found
