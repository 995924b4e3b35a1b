# SPDX-License-Identifier: MIT
"""What the BPF programs that know who woke a thread (tracepoints/wakers.bpf.c) must know of the running kernel, from
its BTF.
"""

from __future__ import annotations

from opline.capture.bpf.btf import Btf, all_known

_NEW_TASK = "task_newtask"  # of io_uring's workers
#: Both ends of each kind of interrupt that may wake a thread.
_INTERRUPTS = (
    "irq_handler_entry", "irq_handler_exit", "softirq_entry", "softirq_exit", "hrtimer_expire_entry",
    "hrtimer_expire_exit",
)  # fmt: skip


def programs(btf: Btf) -> tuple[str, ...]:
    """The tracepoints of interrupts and new tasks; empty where this kernel lacks what the flag of a wake-up needs."""
    if any(btf.tracepoint(name) is None for name in _INTERRUPTS):
        return ()
    return (*_INTERRUPTS, *([_NEW_TASK] if btf.tracepoint(_NEW_TASK) is not None else []))


def definitions(btf: Btf) -> dict[str, int] | None:
    """Offsets for the programs; None where wakers can't be told from those that an interrupt came upon."""
    state = btf.offset("task_struct", "__state")
    known = all_known(
        {
            "O_TASK_FLAGS": btf.offset("task_struct", "flags"),
            "O_TASK_STATE": btf.offset("task_struct", "state") if state is None else state,
        }
    )
    return {"WAIT_CHAINS": 1, **known} if known is not None and programs(btf) else None
