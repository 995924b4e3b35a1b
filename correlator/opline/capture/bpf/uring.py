# SPDX-License-Identifier: MIT
"""What the BPF programs for io_uring (tracepoints/uring.bpf.c) must know of the running kernel, from its BTF."""

from __future__ import annotations

from opline.capture.bpf.btf import Btf, all_known

#: Tracepoints of include/trace/events/io_uring.h: the first that this kernel has, and the program for it.
_SUBMIT = ("io_uring_submit_req", "io_uring_submit_sqe")  # the second up to Linux 6.3
_TO_WORKER, _COMPLETE = "io_uring_queue_async_work", "io_uring_complete"
_ARGUMENTS_WITH_RESULT = 7  # of io_uring_complete up to Linux 6.14; then it has a struct io_uring_cqe


def programs(btf: Btf) -> dict[str, str]:
    """The program of each tracepoint."""
    submit = next((name for name in _SUBMIT if btf.tracepoint(name) is not None), _SUBMIT[0])
    return {submit: "on_uring_submit", _TO_WORKER: "on_uring_to_worker", _COMPLETE: "on_uring_complete"}


def definitions(btf: Btf) -> dict[str, int] | None:
    """Offsets and numbers of arguments; None where requests can't be told by themselves (before Linux 6.0)."""
    found = {
        "A_uring_submit": _request(btf, next(iter(programs(btf)))),
        "A_uring_to_worker": _request(btf, _TO_WORKER),
        "O_KIOCB_OPCODE": btf.offset("io_kiocb", "opcode"),
        "O_KIOCB_FLAGS": btf.offset("io_kiocb", "flags"),
        "O_KIOCB_FD": btf.offset("io_kiocb", "cqe.fd"),
        "O_KIOCB_RING": btf.offset("io_kiocb", "ctx"),
        "O_KIOCB_WORK": btf.offset("io_kiocb", "work"),
        "O_RW_PLACE": btf.offset("io_rw", "kiocb.ki_pos"),
        "O_RW_LENGTH": btf.offset("io_rw", "len"),
        "O_TASK_FLAGS": btf.offset("task_struct", "flags"),
        "O_TASK_WORKER": btf.offset("task_struct", "worker_private"),
        "O_WORKER_WORK": btf.offset("io_worker", "cur_work"),
        "O_RING_FILES": btf.offset("io_ring_ctx", "file_table"),
        **_registered_files(btf),
        **_completion(btf),
    }
    known = all_known(found)
    if known is None:
        return None
    return {**known, **_taken(btf)}


def _taken(btf: Btf) -> dict[str, int]:
    """How many completions a ring has had, and the application has taken; nothing where the kernel does not say it."""
    if len(btf.tracepoint(_COMPLETE) or []) == _ARGUMENTS_WITH_RESULT:
        return {}
    found = {
        "O_CQ_HEAD": btf.offset("io_rings", "cq.head"),
        "O_RING_RINGS": btf.offset("io_ring_ctx", "rings"),
        "O_RING_TAIL": btf.offset("io_ring_ctx", "cached_cq_tail"),
        "O_FILE_PRIVATE": btf.offset("file", "private_data"),
        "O_TASK_RINGS": btf.offset("task_struct", "io_uring"),
        "O_RINGS_REGISTERED": btf.offset("io_uring_task", "registered_rings"),
    }
    return all_known(found) or {}


def _request(btf: Btf, tracepoint: str) -> int | None:
    arguments = btf.tracepoint(tracepoint) or []
    return next((i for i, argument in enumerate(arguments) if argument.struct == "io_kiocb"), None)


def _completion(btf: Btf) -> dict[str, int | None]:
    """``void *req`` is its second argument."""
    arguments = btf.tracepoint(_COMPLETE) or []
    if len(arguments) == _ARGUMENTS_WITH_RESULT:
        return {"A_uring_complete": 1}
    told = len(arguments) == 3 and arguments[2].struct == "io_uring_cqe"
    return {"A_uring_complete": 1 if told else None, "O_CQE_RESULT": btf.offset("io_uring_cqe", "res")}


def _registered_files(btf: Btf) -> dict[str, int | None]:
    """Where a ring keeps them: since Linux 6.13 in nodes."""
    nodes = btf.offset("io_file_table", "data.nodes")
    if nodes is None:
        return {
            "O_FILES_TABLE": btf.offset("io_file_table", "files"),
            "O_RING_FILE_COUNT": btf.offset("io_ring_ctx", "nr_user_files"),
        }
    return {
        "O_FILES_NODES": nodes,
        "O_FILES_COUNT": btf.offset("io_file_table", "data.nr"),
        "O_NODE_FILE": btf.offset("io_rsrc_node", "file_ptr"),
    }
