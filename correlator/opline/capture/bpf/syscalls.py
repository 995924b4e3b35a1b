# SPDX-License-Identifier: MIT
"""What the BPF programs for system calls (tracepoints/calls.bpf.c) must know of the running kernel, from its BTF.

Arguments lie in ``struct pt_regs`` at the entry: syscall_get_arguments() and syscall_get_nr() of the kernel's
arch/ARCH/include/asm/syscall.h. 32-bit programs on a 64-bit kernel number their calls otherwise: they are left out, as
in_32bit_syscall() of the kernel tells them apart (TS_COMPAT of asm/thread_info.h; on arm64 TIF_32BIT).
"""

from __future__ import annotations

import platform

from opline.capture.bpf.btf import Btf, all_known, span

PROGRAMS = ("sys_enter", "sys_exit")
_X86_64 = ("di", "si", "dx", "r10", "r8", "r9")


def definitions(btf: Btf) -> dict[str, int] | None:
    """Offsets for the programs; None where system calls can't be recorded (another architecture)."""
    if platform.machine() == "x86_64":
        arguments = [btf.offset("pt_regs", name) for name in _X86_64]
        number = btf.offset("pt_regs", "orig_ax")
        abi, is_32bit = btf.offset("task_struct", "thread_info.status"), 1 << 1
    elif platform.machine() == "aarch64":
        first = btf.offset("pt_regs", "regs")
        arguments = [None if first is None else first + 8 * i for i in range(6)]
        number = btf.offset("pt_regs", "syscallno")
        abi, is_32bit = btf.offset("task_struct", "thread_info.flags"), 1 << 22
    else:
        return None
    found = {f"O_REG_{i}": offset for i, offset in enumerate(arguments)} | {
        "O_REG_NUMBER": number,
        "O_TASK_ABI": abi,
        "O_TASK_FILES": btf.offset("task_struct", "files"),
        "O_FILES_FDT": btf.offset("files_struct", "fdt"),
        "O_FDT_MAX": btf.offset("fdtable", "max_fds"),
        "O_FDT_FD": btf.offset("fdtable", "fd"),
        "O_FILE_INODE": btf.offset("file", "f_inode"),
        "O_FILE_POS": btf.offset("file", "f_pos"),
        "O_FILE_FLAGS": btf.offset("file", "f_flags"),
        "O_INODE_MODE": btf.offset("inode", "i_mode"),
        "O_INODE_SIZE": btf.offset("inode", "i_size"),
        "O_INODE_INO": btf.offset("inode", "i_ino"),
        "O_INODE_GENERATION": btf.offset("inode", "i_generation"),
        "O_INODE_SB": btf.offset("inode", "i_sb"),
        "O_SB_DEV": btf.offset("super_block", "s_dev"),
    }
    known = all_known(found)
    if known is None:
        return None
    return {
        **known, "ABI_32BIT": is_32bit,
        **span("INODE", (known["O_INODE_INO"], known["O_INODE_SB"])),
    }  # fmt: skip
