# SPDX-License-Identifier: MIT
"""Checks of which request a bio is linked to: it ends when its request has completed. Probes of ftrace in the machine
say when each ended, by its address, which is in no event of lttng-modules.

Not collected by itself: ``OPLINE_VM_OUT`` says where the recordings are.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from tests.lib.recorded import Row
from tests.vm.check_recording import FILES, OUT, SAME_BLOCKS, device, every_suite, run
from tests.vm.logs import LoggedBio, logged_bios

# of the guesses, at least: what QEMU's disks complete last in, first out is most of it, and not all
GUESSES_RIGHT = 0.6
EMULATED_NS = 20_000_000  # from the probe to the event; what is longer, as the processor was taken away, isn't judged


def right_ones(suite: str, name: str, disk: str) -> dict[int, Row]:
    """By bio of that disk which request is its own: of those of its kind on its sector the last that was over before
    its end. With a flush before or behind its data a request is over when that is.
    """
    of = run(suite, name)
    dev = device(of, disk)
    logged: dict[tuple[int, int], list[LoggedBio]] = defaultdict(list)
    for entry in logged_bios(OUT / suite / f"{name}.bios"):
        logged[entry.tid, entry.sector].append(entry)
    requests = defaultdict(list)
    for request in of.rows("requests"):
        if request["dev"] == dev and request["end_ns"] is not None and request["sector"] is not None:
            for sector in range(request["sector"], request["sector"] + request["nr_sectors"]):
                requests[sector].append(request)
    found = {}
    bios = [b for b in of.rows("bios") if b["dev"] == dev and b["nr_sectors"] and b["queue_ns"] is not None]
    for bio in sorted((b for b in bios if b["split_from_id"] is None), key=lambda b: b["queue_ns"]):
        entry = max(
            (e for e in logged[bio["tid"], bio["sector"]] if e.queued_ns <= bio["queue_ns"] + 1000),
            key=lambda e: e.queued_ns,
        )
        if bio["queue_ns"] - entry.queued_ns > EMULATED_NS or entry.ended_ns is None:  # held up; after the recording
            continue
        before = [
            request
            for request in requests[bio["sector"]]
            if request["kind"] == bio["kind"] and request["end_ns"] < entry.ended_ns + 1000
        ]
        found[bio["bio_id"]] = max(before, key=lambda request: request["end_ns"])
    assert len(found) >= 0.95 * len(bios)
    return found


@every_suite
@pytest.mark.parametrize("name", FILES)
def test_every_bio_of_a_file_has_its_request(suite: str, name: str) -> None:
    right = right_ones(suite, name, FILES[name])
    assert len(right) >= 300
    mine = {bio["bio_id"]: bio["request_id"] for bio in run(suite, name).rows("bios")}
    assert {bio: mine[bio] for bio in right} == {bio: request["request_id"] for bio, request in right.items()}
    assert sum(request["end_ns"] > request["complete_ns"] for request in right.values()) >= 30, (
        "a flush behind the data"
    )


def guessed(suite: str, name: str) -> Counter[tuple[bool, str, bool]]:
    """Of the links: ambiguous, confidence, whether right."""
    right = right_ones(suite, name, SAME_BLOCKS[name])
    counts: Counter[tuple[bool, str, bool]] = Counter()
    for link in run(suite, name).rows("links"):
        if link["bio_id"] in right:
            is_right = right[link["bio_id"]]["request_id"] == link["request_id"]
            counts[link["ambiguous"], link["confidence"], is_right] += 1
    assert len(right) >= 1900
    assert counts.total() >= 0.9 * len(right), counts
    return counts


@every_suite
def test_most_guesses_among_ios_on_the_same_blocks_are_right(suite: str) -> None:
    counts = sum((guessed(suite, name) for name in SAME_BLOCKS), Counter[tuple[bool, str, bool]]())
    guesses = {is_right: counts[True, "low", is_right] for is_right in (True, False)}
    assert guesses[True] >= GUESSES_RIGHT * sum(guesses.values()) >= 50, counts
    assert sum(n for (ambiguous, _, is_right), n in counts.items() if not ambiguous and not is_right) == 0, counts
    assert {confidence for ambiguous, confidence, _ in counts if ambiguous} == {"low"}, counts
