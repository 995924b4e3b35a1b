# SPDX-License-Identifier: MIT
"""What the BPF programs that know whom to follow (tracepoints/tree.bpf.c), and those for the states of its threads
(states.bpf.c), must know of the running kernel, from its BTF.
"""

from __future__ import annotations

from typing import Any

from opline.capture.bpf.btf import Btf, all_known

PROGRAMS = ("sched_process_fork", "sched_process_exec", "sched_process_exit")
ITERATED = "bpf_iter_task"  # the kernel's function for it
RUNNING = "bpf_iter__task"  # the iterator over the threads that there are
STATES = ("sched_switch", "sched_waking")
_THREAD_SETS = 8192  # as in tracepoints/tree.bpf.c
_UPID_BYTES = 16  # struct upid: int nr; struct pid_namespace *ns (include/linux/pid.h)


def definitions(btf: Btf) -> dict[str, int] | None:
    """Offsets for the programs of the tree; None where this kernel lacks one."""
    return all_known(
        {
            "O_TASK_PID": btf.offset("task_struct", "pid"),
            "O_TASK_TGID": btf.offset("task_struct", "tgid"),
            "O_TASK_SIGNAL": btf.offset("task_struct", "signal"),
            "O_SIGNAL_LIVE": btf.offset("signal_struct", "live"),
            "O_TASK_COMM": btf.offset("task_struct", "comm"),
            "O_TASK_LEADER": btf.offset("task_struct", "group_leader"),
            "O_TASK_START": btf.offset("task_struct", "start_time"),
            "O_TASK_THREAD_PID": btf.offset("task_struct", "thread_pid"),
            "O_PID_LEVEL": btf.offset("pid", "level"),
            "O_PID_NUMBERS": btf.offset("pid", "numbers"),
            "O_UPID_NS": btf.offset("upid", "ns"),
            "UPID_BYTES": _UPID_BYTES,
            "O_PIDNS_INUM": btf.offset("pid_namespace", "ns.inum"),
            "ROOT_NUMBERS": 1,
        }
    )


def time_namespaces(btf: Btf) -> dict[str, int] | None:
    """Offsets that say in which time namespace a thread is; None where this kernel has no such namespaces."""
    return all_known(
        {
            "O_TASK_NSPROXY": btf.offset("task_struct", "nsproxy"),
            "O_NSPROXY_TIME": btf.offset("nsproxy", "time_ns"),
            "O_TIMENS_INUM": btf.offset("time_namespace", "ns.inum"),
            "O_TIMENS_MONOTONIC": btf.offset("time_namespace", "offsets.monotonic"),
        }
    )


def states(btf: Btf) -> dict[str, int] | None:
    """Offsets and numbers of arguments for the programs of threads' states; None where they can't be recorded.

    ``prev_state`` is an argument of sched_switch since Linux 5.18, the second one in its first releases, else the last.
    """
    arguments = btf.tracepoint("sched_switch") or []
    waking = btf.tracepoint("sched_waking") or []
    tasks = [i for i, argument in enumerate(arguments) if argument.struct == "task_struct"]
    if len(tasks) != 2 or 0 in tasks or not waking or waking[0].struct != "task_struct":
        return None
    found: dict[str, int | None] = {
        "A_sched_switch_prev": tasks[0],
        "A_sched_switch_next": tasks[1],
    }
    state = next((i for i in range(1, len(arguments)) if i not in tasks), None)
    if state is not None:
        found["A_sched_switch_state"] = state
    else:
        found["O_TASK_STATE"] = btf.offset("task_struct", "__state") or btf.offset("task_struct", "state")
    return all_known(found)


def put_in(sets: dict[int, Any], tid: int, kind: type[Any]) -> None:
    """Adds a thread to the sets of those that are followed, by their places; ``kind``: of a new set. One for which its
    set has no room is left out.
    """
    found = sets.setdefault(tid % _THREAD_SETS, kind())
    free = next((way for way, known in enumerate(found.of) if known in (0, tid)), None)
    if free is not None:
        found.of[free] = tid
