# SPDX-License-Identifier: MIT
"""Stand-ins for the kernel headers that bcc insists on, so that no header package needs to be installed.

bcc's own ``helpers.h`` includes a handful of kernel headers before any program. Our program takes nothing from them
(offsets come from BTF), so nine tiny files under ``BCC_KERNEL_SOURCE`` do. Tried with bcc 0.26 (Debian 12).
"""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

_TYPES = """\
typedef signed char __s8, s8;
typedef unsigned char __u8, u8;
typedef short __s16, s16;
typedef unsigned short __u16, u16, __le16, __be16, __sum16;
typedef int __s32, s32, pid_t;
typedef unsigned int __u32, u32, __le32, __be32, __wsum;
typedef long long __s64, s64;
typedef unsigned long long __u64, u64, __le64, __be64, __aligned_u64;
typedef unsigned long size_t, uintptr_t;
typedef _Bool bool;
#define __bitwise
"""

_FILES = {
    "linux/kconfig.h": "#define CONFIG_BPF_SYSCALL 1\n",
    "linux/types.h": _TYPES,
    "linux/log2.h": "",
    "linux/bpf_common.h": "",
    "asm/page.h": f"#define PAGE_SIZE {os.sysconf('SC_PAGESIZE')}\n",
    "uapi/linux/bpf.h": "#include <bcc/bpf.h>\n",
    "uapi/linux/if_packet.h": "",
    "uapi/linux/ptrace.h": "",
}


def _version() -> str:
    """linux/version.h of the running kernel."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    major, minor = (int(found.group(1)), int(found.group(2))) if found else (5, 12)
    macro = "#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))"
    return f"{macro}\n#define LINUX_VERSION_CODE KERNEL_VERSION({major}, {minor}, 0)\n"


def write(folder: Path) -> Path:
    """Write the stub tree below ``folder``; the path to set ``BCC_KERNEL_SOURCE`` to. Raises OSError."""
    for name, text in {**_FILES, "linux/version.h": _version()}.items():
        path = folder / "include" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#pragma once\n{text}")
    return folder
