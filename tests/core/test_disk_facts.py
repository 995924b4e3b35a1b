# SPDX-License-Identifier: MIT
"""What a recording says of a disk reaches the block model: its hardware queues, and whether it has FUA."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.lib.core_driver import Driver, parse_line

from opline.disks import disk_facts
from opline.model import load_model
from opline.shapes import fault_in
from opline.store.manifest import RECORDING
from opline.store.run import BLOCKS_MODEL

DEV = 8 << 20
# Two threads, each on a CPU of another queue, wait for a flush. The flush of the second thread's queue comes first.
EVENTS = f"""\
100 block_bio_queue tid=11 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FWS
101 block_getrq tid=11 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FWS
110 block_bio_queue tid=12 cpu=3 dev={DEV} sector=0 nr_sector=0 rwbs=FWS
111 block_getrq tid=12 cpu=3 dev={DEV} sector=0 nr_sector=0 rwbs=FWS
120 block_rq_issue tid=90 cpu=2 dev={DEV} sector=0 nr_sector=0 rwbs=FF
130 block_rq_complete cpu=2 dev={DEV} sector=18446744073709551615 nr_sector=0 rwbs=FF
131 block_rq_complete cpu=2 dev={DEV} sector=0 nr_sector=0 rwbs=WS
140 block_rq_issue tid=91 cpu=1 dev={DEV} sector=0 nr_sector=0 rwbs=FF
150 block_rq_complete cpu=1 dev={DEV} sector=18446744073709551615 nr_sector=0 rwbs=FF
151 block_rq_complete cpu=1 dev={DEV} sector=0 nr_sector=0 rwbs=WS
"""
Ended = tuple[dict[int, int], int]
RECORDED: dict[str, Any] = {
    "devices": [
        {"dev": DEV, "name": "sda", "queues": [[0, 1], [2, 3]]},
        {"dev": 253 << 20, "name": "dm-0", "queues": None},
        {"dev": 7 << 20, "name": "loop0"},
    ]
}


def ended(recording: dict[str, Any] | None, in_events: bool = False, events: str = EVENTS) -> Ended:
    """When the flush of each thread was done, and on how many devices queues were assumed."""
    driver = Driver(load_model(BLOCKS_MODEL).plan_json(devices=disk_facts(recording)))
    for line in events.splitlines():
        queue = f" queue={int('cpu=2' in line)}" if in_events and "rq_issue" in line else ""
        driver.push(parse_line(line + queue))
    driver.finish()
    done = {r["queue_tid"]: r["end_ns"] for r in driver.tables()["requests"] if r["getrq_ns"] is not None}
    return done, json.loads(driver.core.summary())["losses"]["queues_assumed"]


def test_a_flush_is_for_the_queue_that_the_recording_names() -> None:
    assert ended(RECORDED) == ({11: 151, 12: 131}, 0)


@pytest.mark.parametrize("recording", [None, {}, {"devices": []}, {"devices": [{"dev": DEV, "name": "sda"}]}])
def test_without_facts_one_queue_is_assumed_and_that_is_said(recording: dict[str, Any] | None) -> None:
    assert ended(recording) == ({11: 131, 12: 151}, 1)


def test_queues_that_events_name_are_not_assumed() -> None:
    assert ended(None, in_events=True)[1] == 0


# Both wait for the first flush; the first thread's PREFLUSH has FUA, too, which is a second flush behind the first.
FUA_EVENTS = f"""\
100 block_bio_queue tid=11 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FWFS
101 block_getrq tid=11 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FWFS
110 block_rq_issue tid=90 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FF
120 block_bio_queue tid=12 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FWFS
121 block_getrq tid=12 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FWFS
122 block_bio_queue tid=13 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FWS
123 block_getrq tid=13 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FWS
130 block_rq_complete cpu=0 dev={DEV} sector=18446744073709551615 nr_sector=0 rwbs=FF
140 block_rq_issue tid=90 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FF
150 block_rq_complete cpu=0 dev={DEV} sector=18446744073709551615 nr_sector=0 rwbs=FF
151 block_rq_complete cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=WS
152 block_rq_complete cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=WS
160 block_rq_issue tid=90 cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=FF
170 block_rq_complete cpu=0 dev={DEV} sector=18446744073709551615 nr_sector=0 rwbs=FF
171 block_rq_complete cpu=0 dev={DEV} sector=0 nr_sector=0 rwbs=WS
"""


def test_a_disk_without_fua_flushes_twice_for_preflush_and_fua() -> None:
    """The first flush is the first thread's. The second flush is for all three, and the first thread is the last in its
    line: the request without FUA ends behind it, then the first thread's. The third flush ends the last request.
    """
    recorded = {"devices": [{"dev": DEV, "name": "sda", "queues": [[0, 1]], "fua": False}]}
    assert ended(recorded, events=FUA_EVENTS) == ({11: 152, 12: 171, 13: 151}, 0)


def test_lists_of_cpus_in_a_recording_are_numbers() -> None:
    assert fault_in(RECORDED, RECORDING) is None
    assert fault_in({"devices": [{"dev": 1, "name": "a", "queues": [["0"]]}]}, RECORDING) is not None
