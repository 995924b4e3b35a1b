# SPDX-License-Identifier: MIT
"""What the BPF programs must know of the running kernel to tell cgroups (tracepoints/cgroups.bpf.c): offsets from its
BTF, and which hierarchy the controllers of memory and of block I/O are in.
"""

from __future__ import annotations

from pathlib import Path

from opline.capture.bpf.btf import Btf

#: Of cgroups that are made, and of processes that move; where the session records who a thread is.
PROGRAMS = ("cgroup_mkdir", "cgroup_attach_task")
#: Who dirties a file's pages, where these do not say it themselves: by its name, before Linux 5.18 that of a page.
DIRTIED = ("writeback_dirty_folio", "writeback_dirty_page")
_POINTER_BYTES = 8


def definitions(
    btf: Btf, controllers: Path = Path("/proc/cgroups"), mounts: Path = Path("/proc/mounts")
) -> dict[str, int]:
    """Offsets and hierarchies; empty where this kernel lacks one: nothing is told of cgroups then."""
    memory_id = btf.enumerator("memory_cgrp_id")
    known = {
        "O_TASK_CGROUPS": btf.offset("task_struct", "cgroups"),
        "O_SET_DEFAULT": btf.offset("css_set", "dfl_cgrp"),
        "O_SET_MEMORY": _sum(btf.offset("css_set", "subsys"), memory_id and memory_id * _POINTER_BYTES),
        "O_CSS_CGROUP": btf.offset("cgroup_subsys_state", "cgroup"),
        "O_CGROUP_NODE": btf.offset("cgroup", "kn"),
        "O_CGROUP_ROOT": btf.offset("cgroup", "root"),
        "O_ROOT_HIERARCHY": btf.offset("cgroup_root", "hierarchy_id"),
        "O_NODE_ID": btf.offset("kernfs_node", "id"),
        "O_BIO_VECTOR": btf.offset("bio", "bi_io_vec"),
        "O_BIO_FLAGS": btf.offset("bio", "bi_flags"),
        "O_PAGE_HEAD": btf.offset("page", "compound_head"),
        "O_PAGE_MAPPING": btf.offset("page", "mapping"),
    }
    found = {name: value for name, value in known.items() if value is not None}
    if len(found) != len(known):
        return {}
    pinned = btf.enumerator("BIO_PAGE_PINNED")
    if pinned is not None:
        found["BIO_PAGE_PINNED"] = pinned
    hierarchies = _hierarchies(controllers)
    owner = btf.offset("folio", "memcg_data") or btf.offset("page", "memcg_data")
    if hierarchies.get("memory"):
        found["MEMORY_V1"] = hierarchies["memory"]
    elif owner is not None and "memory" in _given_to_children(mounts):
        found["MEMORY_V2"], found["O_PAGE_OWNER"] = 1, owner
    group = {
        "O_BIO_GROUP": btf.offset("bio", "bi_blkg"),
        "O_GROUP_CONTROLLER": btf.offset("blkcg_gq", "blkcg"),
        "O_CONTROLLER_CSS": btf.offset("blkcg", "css"),
    }
    if not hierarchies.get("blkio", 0) and "io" in _given_to_children(mounts) and None not in group.values():
        found |= {"IO_V2": 1, **{name: value for name, value in group.items() if value is not None}}
    return found


def dirtied(btf: Btf) -> tuple[str, int] | None:
    """The tracepoint at which a page of a file is dirtied, and which of its arguments is the file's address space."""
    for name in DIRTIED:
        arguments = btf.tracepoint(name) or []
        for number, argument in enumerate(arguments):
            if argument.struct == "address_space":
                return name, number
    return None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _hierarchies(controllers: Path) -> dict[str, int]:
    """The number of each controller's hierarchy, 0: that of cgroup2 (cgroups(7), /proc/cgroups)."""
    try:
        rows = [line.split() for line in controllers.read_text().splitlines() if not line.startswith("#")]
    except OSError:
        return {}
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _given_to_children(mounts: Path) -> list[str]:
    """The controllers that the root of cgroup2 gives to the cgroups below."""
    try:
        for line in mounts.read_text().splitlines():
            _, where, kind, *_ = line.split()
            if kind == "cgroup2":
                return (Path(where) / "cgroup.subtree_control").read_text().split()
    except (OSError, ValueError):
        pass
    return []
