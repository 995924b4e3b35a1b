# SPDX-License-Identifier: MIT
"""No op has a bio of another process: the law of docs/internals/stitching.md, "Whose process a bio comes from", over
every recorded trace, by the core's own count and by the tables.
"""

from __future__ import annotations

import re

import pytest
from tests.lib.recorded import NAMES, RunOf

BY_NUMBER = {"thread", "sector", "extent"}
KERNEL = re.compile(r"(kworker|jbd2|swapper|ksoftirqd|dmcrypt_write)/|loop\d+$|kcryptd|kthreadd$")


def violations(run: RunOf, name: str) -> tuple[int, int]:
    """Links of a trace by a number: so many have a process on both sides, so many of these contradict."""
    rows = run(name).rows
    processes: dict[int, set[int | None]] = {}
    for point in rows("transitions"):
        processes.setdefault(point["op_id"], set()).add(point["pid"])
    bios = {bio["bio_id"]: bio for bio in rows("bios")}
    compared = wrong = 0
    for link in rows("links"):
        rules, bio = set(link["evidence"].split("+")), bios[link["bio_id"]]
        mine = processes.get(link["op_id"], {None})
        if not rules & BY_NUMBER or "parent" in rules or bio["pid"] is None or None in mine:
            continue
        compared += 1
        by_kernel = "thread" not in rules and KERNEL.match(bio["comm"] or "")
        wrong += bio["pid"] not in mine and not by_kernel
    return compared, wrong


@pytest.mark.parametrize("name", NAMES)
def test_no_link_goes_to_another_process(name: str, run_of: RunOf) -> None:
    losses = run_of(name).core["losses"]
    assert losses["process_violations"] == losses["bios_of_other_processes"] == 0
    assert violations(run_of, name)[1] == 0


def test_the_law_is_not_empty(run_of: RunOf) -> None:
    """The recorded traces have links with a process on both sides."""
    assert violations(run_of, "app-sync-qd4-nvme")[0] >= 3000
    assert violations(run_of, "app-sqpoll-qd16-nvme")[0] > 0
