# SPDX-License-Identifier: MIT
"""What the BPF programs that know who woke a thread (tracepoints/wakers.bpf.c) must know of the running kernel, from
its BTF.
"""

from __future__ import annotations

import platform

from opline.capture.bpf import syscalls
from opline.capture.bpf.btf import Btf, all_known

_NEW_TASK = "task_newtask"  # of io_uring's workers
LOCKS = ("contention_begin", "contention_end")
_FUTEX = {"x86_64": 202, "aarch64": 98}  # number of the system call
#: Both ends of each kind of interrupt that may wake a thread.
_INTERRUPTS = (
    "irq_handler_entry", "irq_handler_exit", "softirq_entry", "softirq_exit", "hrtimer_expire_entry",
    "hrtimer_expire_exit",
)  # fmt: skip


def programs(btf: Btf) -> tuple[str, ...]:
    """The tracepoints of interrupts and new tasks; empty where this kernel lacks what the flag of a wake-up needs."""
    if any(btf.tracepoint(name) is None for name in _INTERRUPTS):
        return ()
    more = [name for name in (_NEW_TASK,) if btf.tracepoint(name) is not None]
    return (*_INTERRUPTS, *more, *(LOCKS if _locks(btf) is not None else ()))


def definitions(btf: Btf) -> dict[str, int] | None:
    """Offsets for the programs; None where wakers can't be told from those that an interrupt came upon."""
    state = btf.offset("task_struct", "__state")
    known = all_known(
        {
            "O_TASK_FLAGS": btf.offset("task_struct", "flags"),
            "O_TASK_STATE": btf.offset("task_struct", "state") if state is None else state,
        }
    )
    return {"WAIT_CHAINS": 1, **known, **(_locks(btf) or {})} if known is not None and programs(btf) else None


def _locks(btf: Btf) -> dict[str, int] | None:
    """Offsets of the word that says who holds a lock; None where this kernel has no event of locks (before 5.19)."""
    if any(btf.tracepoint(name) is None for name in LOCKS):
        return None
    owners = {"O_MUTEX_OWNER": btf.offset("mutex", "owner"), "O_RWSEM_OWNER": btf.offset("rw_semaphore", "owner")}
    known = all_known(owners)
    return {**known, **_futexes(btf)} if known is not None else None


def _futexes(btf: Btf) -> dict[str, int]:
    """What tells the address of a futex that a thread sleeps for; nothing where its registers can't be read (before
    Linux 5.15).
    """
    registers, call = syscalls.definitions(btf), _FUTEX.get(platform.machine())
    if registers is None or call is None or btf.function("bpf_task_pt_regs") is None:
        return {}
    return {"FUTEX_CALL": call, "FUTEX_ADDRESS_REG": registers["O_REG_0"], "FUTEX_CALL_REG": registers["O_REG_NUMBER"]}
