# SPDX-License-Identifier: MIT
"""A recording of Debian's Ceph with uprobes, told in the words of Ceph 19's tracepoints and of the first shim.

What one process does next to the other, on real threads with 16 operations in flight, stays as recorded; only the names
differ: of each uprobe the tracepoint that Ceph 19 has at the same place (tests/traces, ctf-blue-v2-qd1). The first shim
knows what it has sent when sendmsg has returned, and neither object names nor completions of callbacks. Gives besides
what the uprobes' pointers say: which message each object's write is, the states' durations, the commits' members.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.lib.core_driver import Line

Reqid = tuple[int, int]  # the client's number, its message's
_LINE = re.compile(r"^(\d+) \S+ \S+ cpu (\d+) (\w+):(\w+): \{(.*?)\}, \{ ?(.*?) ?\}$")
_FIELD = re.compile(r'(\w+) = (?:"([^"]*)"|([^,\s}]+))')
# log_state_latency()'s counters, 16's → 19's: prepare, aio_wait, io_done, kv_queued, kv_submitted, kv_done, ...
_STATES = {5: 19, 6: 20, 7: 21, 8: 22, 9: 23, 10: 24, 14: 25, 15: 26}
_FLAGS = ("queued_for_pg", "reached_pg", "started", "commit_sent")
_MESSAGE = ("fd", "mtype", "tid", "seq", "flen", "whole")
_OP_EVENTS = {
    "dequeue_op": "osd:opwq_process_start",
    "prepare_transaction": "osd:prepare_tx_enter",
    "finish_ctx": "osd:prepare_tx_exit",
}


def _fields(text: str) -> dict[str, Any]:
    return {name: quoted if not bare else int(bare, 0) for name, quoted, bare in _FIELD.findall(text)}


@dataclass
class Told:
    """``lines`` in order; ``objects``: name → reqid; ``states``: reqid → state → ns; ``batches``: members of each."""

    lines: list[Line] = field(default_factory=list)
    objects: dict[str, Reqid] = field(default_factory=dict)
    states: dict[Reqid, dict[int, int]] = field(default_factory=dict)
    batches: list[list[Reqid]] = field(default_factory=list)


class Teller:
    """Takes the lines of ``opline events``."""

    def __init__(self) -> None:
        self.told = Told()
        self.names: dict[Reqid, str] = {}
        self.ops: dict[int, Reqid] = {}  # by the OpRequest's address
        self.working: dict[int, int] = {}  # thread → OpRequest
        self.txcs: dict[int, tuple[int, int, Reqid]] = {}  # by address: sequencer, number
        self.stamps: dict[int, int] = {}  # when the transaction's state began
        self.numbers: dict[int, int] = defaultdict(int)
        self.committing: list[tuple[int, int, Reqid]] = []
        self.context: dict[str, Any] = {}
        self.now = 0

    def say(self, name: str, **payload: Any) -> None:
        self.told.lines.append(Line(self.now, name, dict(self.context), payload))

    def tell(self, lines: Iterable[str]) -> Told:
        for text in lines:
            if (found := _LINE.match(text)) is None or found[3] not in ("cephshim", "cephprobe"):
                continue
            self.now = int(found[1])
            context, payload = _fields(found[5]), _fields(found[6])
            if found[3] == "cephshim":
                self.context = {"pid": context["vpid"], "tid": context["vtid"], "comm": context["procname"]}
                self.shim(found[4], payload)
            elif "tid" in payload:
                self.context = {name: payload[name] for name in ("pid", "tid", "comm")}
                self.probe(found[4], payload)
        self.told.lines.sort(key=lambda line: line.ts_ns)
        return self.told

    def shim(self, event: str, payload: dict[str, Any]) -> None:
        if event == "msgr_tx_msg":
            self.say("cephshim:msgr_send_enter", fd=payload["fd"])
            if payload["mtype"] == 42:
                self.names[payload["num"], payload["tid"]] = payload["oid"]
            self.now += 15_000  # sendmsg
            for whole in (0, 1):
                self.say("cephshim:msgr_tx_msg", **{k: payload[k] for k in _MESSAGE} | {"whole": whole})
        elif event == "msgr_rx_msg":
            self.say("cephshim:msgr_rx_msg", **{name: payload[name] for name in _MESSAGE})
        elif event not in ("rados_release", "msgr_session"):
            if event == "radoscxx_completion_cb":
                del payload["completion"]
            self.say(f"cephshim:{event}", **payload)

    def probe(self, event: str, payload: dict[str, Any]) -> None:
        if event in ("ms_fast_dispatch", "op_request"):
            reqid = payload["client"], payload["msg_tid"]
            if payload["msg_type"] == 42 and event == "op_request":
                self.ops[payload["op"]] = reqid
            elif payload["msg_type"] == 42:
                self.say("osd:ms_fast_dispatch", type=8, num=reqid[0], tid=reqid[1], inc=0)
        elif payload.get("op") in self.ops or event in ("dequeue_op_return", "txc_add_transaction"):
            self.operation(event, payload)
        elif payload.get("txc") in self.txcs:
            self.transaction(event, payload["txc"], payload)
        elif event == "kv_submit_sync_return":
            for sequencer, number, _ in self.committing:
                self.store("kv_sync_latency", sequencer, number, kv_batch_size=len(self.committing), elapsed=0.0001)
            self.told.batches.append([reqid for *_, reqid in self.committing])
            self.committing = []

    def operation(self, event: str, payload: dict[str, Any]) -> None:
        thread = self.context["tid"]
        if event == "dequeue_op_return":
            if thread in self.working:
                self.about("osd:opwq_process_finish", self.ops[self.working.pop(thread)])
        elif event == "txc_add_transaction":
            if thread in self.working:
                reqid = self.ops[self.working[thread]]
                sequencer = reqid[1] % 16
                self.numbers[sequencer] += 1
                self.txcs[payload["txc"]] = sequencer, self.numbers[sequencer], reqid
                self.stamps[payload["txc"]] = self.now
        elif event == "mark_event":
            if payload["text"] in _FLAGS:
                self.about("oprequest:mark_flag_point", self.ops[payload["op"]], msg=payload["text"])
        elif event == "do_osd_ops":
            oid = self.names[self.ops[payload["op"]]]
            self.told.objects[oid] = self.ops[payload["op"]]
            self.say("osd:do_osd_op_pre", oid=oid, opname="write")
            self.say("osd:do_osd_op_pre_write", oid=oid, offset=0, length=4096)
            self.say("osd:do_osd_op_post", oid=oid, opname="write")
        elif event in _OP_EVENTS:
            if event == "dequeue_op":
                self.working[thread] = payload["op"]
            self.about(_OP_EVENTS[event], self.ops[payload["op"]])

    def transaction(self, event: str, address: int, payload: dict[str, Any]) -> None:
        sequencer, number, reqid = self.txcs[address]
        if event == "throttle_start":
            self.store("initial_state", sequencer, number, throttle_time=0.000001)
        elif event == "txc_state_end":
            state, took_ns = _STATES[payload["state"]], self.now - self.stamps[address]
            self.stamps[address] = self.now
            self.told.states.setdefault(reqid, {})[state] = took_ns
            self.store("state_duration", sequencer, number, state=state, elapsed=took_ns / 1e9)
            if state == 22:
                self.committing.append((sequencer, number, reqid))
        elif event == "txc_apply_kv":
            self.store("kv_submit_latency", sequencer, number, sync=0, elapsed=0.00001)
        elif event == "txc_committed_kv":
            self.store("commit_latency", sequencer, number, elapsed=0.001)

    def about(self, name: str, reqid: Reqid, **more: Any) -> None:
        self.say(name, type=8, num=reqid[0], tid=reqid[1], inc=0, **more)

    def store(self, name: str, sequencer: int, number: int, **more: Any) -> None:
        self.say(f"bluestore:transaction_{name}", sequencer_id=sequencer, tid=number, **more)
