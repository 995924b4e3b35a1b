# SPDX-License-Identifier: MIT
"""The model ``ceph`` where no recorded trace goes: a read that waits for the device, a write with two replicas.

The events' order and fields follow Ceph 19's source (OSD::ms_fast_dispatch, OpRequest's reqid, ReplicatedBackend:
messages 112 and 113 carry a number of the primary's own).
"""

from __future__ import annotations

import pytest
from tests.lib.core_driver import Driver, check_laws, run

from opline.model import load_model

REQID = "type=8 num=4152 :tid=9 inc=0"  # the client's ninth message, wherever it is worked for


def said(events: str) -> Driver:
    """What the core makes of events, one a line: TIME PID TID COMM EVENT FIELDS."""
    lines = []
    for text in sorted(filter(None, events.splitlines()), key=lambda line: int(line.split()[0])):
        at, pid, tid, comm, name, fields = text.split(maxsplit=5)
        lines.append(f"{at} {name} pid={pid} tid={tid} comm={comm} {fields}")
    driver = run(load_model("ceph").text, lines)
    check_laws(driver, len(lines))
    assert not driver.summary()["orphans"]
    return driver


def stages(driver: Driver) -> list[tuple[str, int]]:
    """The only op's stages, those of one name after the other summed."""
    (op,) = driver.tables()["ops"]
    assert op["complete"] and op["unattributed_ns"] == op["unknown_ns"] == 0
    out: list[tuple[str, int]] = []
    for row in driver.tables()["stages"]:
        if out and out[-1][0] == row["stage"]:
            out[-1] = row["stage"], out[-1][1] + row["duration_ns"]
        else:
            out.append((row["stage"], row["duration_ns"]))
    return out


def client_side(reply_ns: int) -> str:
    """The client and both messengers, until the OSD dispatches at 1040, and from the OSD's sendmsg on."""
    return f"""
100 5 60 m cephshim:msgr_connect fd=28 lport=5 rport=6
101 9 90 m cephshim:msgr_connect fd=69 lport=6 rport=5
1000 5 50 rados cephshim:radoscxx_aio_operate_enter oid=a completion=77
1010 5 60 m cephshim:msgr_send_enter fd=28
1030 9 90 m cephshim:msgr_rx_msg fd=69 mtype=42 whole=1 :tid=9
1035 5 60 m cephshim:msgr_tx_msg fd=28 mtype=42 whole=1 :tid=9
1040 9 90 m osd:ms_fast_dispatch {REQID}
1041 9 90 m oprequest:mark_flag_point {REQID} msg=queued_for_pg
{reply_ns} 9 91 m cephshim:msgr_send_enter fd=69
{reply_ns + 10} 9 91 m cephshim:msgr_tx_msg fd=69 mtype=43 whole=1 :tid=9
{reply_ns + 20} 5 61 m cephshim:msgr_rx_msg fd=28 mtype=43 whole=1 :tid=9
{reply_ns + 40} 5 50 rados cephshim:radoscxx_get_return_value completion=77 ret=0
"""


def test_a_read_that_misses_the_cache() -> None:
    """Metadata by pread, data by two aios, of which the first ends last; the reply comes before processing ends."""
    driver = said(
        client_side(1290)
        + f"""
1060 9 100 tp osd:opwq_process_start {REQID}
1061 9 100 tp oprequest:mark_flag_point {REQID} msg=reached_pg
1070 9 100 tp oprequest:mark_flag_point {REQID} msg=started
1071 9 100 tp osd:prepare_tx_enter {REQID}
1072 9 100 tp osd:do_osd_op_pre oid=a opname=read
1073 9 100 tp osd:do_osd_op_pre_read oid=a offset=0 length=4096
1080 9 100 tp cephshim:sysio_pread_enter fd=3 off=0 len=4096
1120 9 100 tp cephshim:sysio_pread_exit fd=3 ret=4096
1130 9 100 tp cephshim:aio_submit iocb=5 fd=34 off=8192 len=4096
1131 9 100 tp cephshim:aio_submit iocb=6 fd=34 off=16384 len=4096
1230 9 110 bstore_aio cephshim:aio_complete iocb=6 res=4096
1250 9 110 bstore_aio cephshim:aio_complete iocb=5 res=4096
1260 9 100 tp osd:do_osd_op_post oid=a opname=read
1270 9 100 tp osd:prepare_tx_exit {REQID}
1295 9 100 tp osd:opwq_process_finish {REQID}
"""
    )
    assert stages(driver) == [
        ("client submit", 10), ("network out", 20), ("osd receive", 10), ("dispatch", 1), ("op queue", 19),
        ("op start", 11), ("prepare tx", 1), ("read", 8), ("store read", 40), ("read", 10), ("data aio", 120),
        ("read done", 10),
        ("prepare tx", 10), ("reply", 20), ("network back", 20), ("client completion", 20),
    ]  # fmt: skip
    assert driver.tables()["ops"][0]["class"] == "read"


def store(osd: int, begin_ns: int, end_ns: int) -> str:
    """What one OSD does for a write, from its queue to its commit."""
    txc, tp = f"sequencer_id=1 :tid={osd}", osd * 10
    state = f"bluestore:transaction_state_duration {txc} elapsed=0.000000001 state"
    return f"""
{begin_ns} {osd} {tp} tp osd:opwq_process_start {REQID}
{begin_ns + 5} {osd} {tp} tp bluestore:transaction_initial_state {txc}
{begin_ns + 6} {osd} {tp} tp {state}=19
{begin_ns + 7} {osd} {tp} tp cephshim:aio_submit iocb=5 fd=34 off=8192 len=4096
{begin_ns + 9} {osd} {tp} tp osd:opwq_process_finish {REQID}
{end_ns - 30} {osd} {tp + 1} bstore_aio cephshim:aio_complete iocb=5 res=4096
{end_ns - 29} {osd} {tp + 1} bstore_aio {state}=20
{end_ns - 28} {osd} {tp + 1} bstore_aio {state}=21
{end_ns - 20} {osd} {tp + 2} bstore_kv_sync cephshim:sysio_fdatasync_enter fd=3
{end_ns - 15} {osd} {tp + 2} bstore_kv_sync cephshim:sysio_fdatasync_exit fd=3 ret=0
{end_ns - 14} {osd} {tp + 2} bstore_kv_sync {state}=22
{end_ns - 5} {osd} {tp + 2} bstore_kv_sync bluestore:transaction_kv_sync_latency {txc} kv_batch_size=1
{end_ns - 2} {osd} {tp + 3} bstore_kv_final bluestore:transaction_commit_latency {txc} elapsed=0.001
"""


def replica(osd: int, number: int, asked_ns: int, end_ns: int) -> str:
    """The primary asks an OSD in a message with a number of its own; the OSD commits at end_ns and answers."""
    there, here = f"fd={osd} mtype=112 :tid={number}", f"fd={osd} mtype=113 :tid={number}"
    return f"""
{osd} 9 1 m cephshim:msgr_connect fd={osd} lport={osd} rport=7
{osd} {osd} 2 m cephshim:msgr_connect fd={osd} lport=7 rport={osd}
{asked_ns} 9 {osd + 900} m cephshim:msgr_send_enter fd={osd}
{asked_ns + 1} 9 {osd + 900} m cephshim:msgr_tx_msg {there} whole=0
{asked_ns + 10} {osd} {osd * 10 + 5} m cephshim:msgr_rx_msg {there} whole=1
{asked_ns + 11} {osd} {osd * 10 + 5} m osd:ms_fast_dispatch {REQID}
{store(osd, asked_ns + 40, end_ns)}
{end_ns + 5} {osd} {osd * 10} tp oprequest:mark_flag_point {REQID} msg=commit_sent
{end_ns + 10} {osd} {osd * 10 + 6} m cephshim:msgr_send_enter fd={osd}
{end_ns + 11} {osd} {osd * 10 + 6} m cephshim:msgr_tx_msg {here} whole=0
{end_ns + 20} 9 {osd + 900} m cephshim:msgr_rx_msg {here} whole=1
{end_ns + 21} 9 {osd + 900} m osd:ms_fast_dispatch {REQID}
{end_ns + 25} 9 95 tp osd:opwq_process_start {REQID}
{end_ns + 31} 9 95 tp osd:opwq_process_finish {REQID}
"""


def write(ends_ns: tuple[int, int, int]) -> Driver:
    """A replicated write: when the primary and its two replicas commit. The last of them lets the primary answer."""
    last = max(ends_ns) + (30 if max(ends_ns) > ends_ns[0] else 15)
    events = client_side(last + 20) + f"1052 9 90 tp osd:opwq_process_start {REQID}\n"
    events += "1053 9 90 tp osd:do_osd_op_pre oid=a opname=write\n" + f"1054 9 90 tp osd:prepare_tx_exit {REQID}\n"
    events += store(9, 1060, ends_ns[0]).split("\n", 2)[2]  # in the same processing
    events += replica(10, 501, 1065, ends_ns[1]) + replica(20, 502, 1067, ends_ns[2])
    thread = 95 if max(ends_ns) > ends_ns[0] else 90
    return said(events + f"{last} 9 {thread} tp oprequest:mark_flag_point {REQID} msg=commit_sent")


def test_a_write_waits_for_the_slowest_replica() -> None:
    driver = write((1200, 1400, 1300))
    path = stages(driver)
    names = [name for name, _ in path]
    assert "network to replica" in names and "network from replica" in names
    assert ("data aio", 258) in path  # the replica's, and nobody else's: from 1112 to 1370
    on_path = {t["child"] for t in driver.tables()["transitions"] if not t["aside"] and t["pid"] in (10, 20)}
    pids = {t["pid"] for t in driver.tables()["transitions"] if not t["aside"] and t["child"] is not None}
    assert len(on_path) == 2 and pids == {9, 10}  # the replica and its aio; the primary's messenger for it
    assert [b["member_count"] for b in driver.tables()["batches"]] == [1, 1, 1]


def asked(osd: int, number: int, sent_ns: int, reply_ns: int) -> str:
    """The messages of a replica's write and its reply alone: they say of which client's message they are."""
    of = "num=4152 ctid=9"
    return f"""
{osd} 9 1 m cephshim:msgr_connect fd={osd} lport={osd} rport=7
{osd} {osd} 2 m cephshim:msgr_connect fd={osd} lport=7 rport={osd}
{sent_ns} 9 {osd + 900} m cephshim:msgr_tx_msg fd={osd} mtype=112 :tid={number} whole=0 {of}
{sent_ns + 10} {osd} {osd * 10} m cephshim:msgr_rx_msg fd={osd} mtype=112 :tid={number} whole=1 {of}
{reply_ns} {osd} {osd * 10} m cephshim:msgr_tx_msg fd={osd} mtype=113 :tid={number} whole=0 {of}
{reply_ns + 10} 9 {osd + 900} m cephshim:msgr_rx_msg fd={osd} mtype=113 :tid={number} whole=1 {of}
"""


@pytest.mark.parametrize(("replies_ns", "slowest"), [((1310, 1320), 1), ((1330, 1305), 0)])
def test_replicas_by_messages_alone(replies_ns: tuple[int, int], slowest: int) -> None:
    """No tracepoints: the slowest replica is a stage, and the op is one op."""
    lines = [line for line in client_side(1500).splitlines(True) if "osd:" not in line and "oprequest:" not in line]
    events = "".join(lines).replace("mtype=42 whole=1 :tid=9", "mtype=42 whole=1 :tid=9 num=4152 ctid=9")
    sent_ns = (1100, 1110)
    driver = said(events + asked(10, 501, sent_ns[0], replies_ns[0]) + asked(20, 77, sent_ns[1], replies_ns[1]))
    sent, reply = sent_ns[slowest], replies_ns[slowest]
    assert stages(driver) == [
        ("client submit", 10), ("network out", 20), ("osd without tracepoints", sent - 1030),
        ("network to replica", 10), ("replica without tracepoints", reply - sent - 10), ("network from replica", 10),
        ("after the replica", 1490 - reply), ("network back", 20), ("client completion", 20),
    ]  # fmt: skip
    assert driver.tables()["ops"][0]["class"] == "aio_operate"


def test_a_write_waits_for_the_primary_itself() -> None:
    driver = write((1500, 1400, 1300))
    assert not [t for t in driver.tables()["transitions"] if not t["aside"] and t["pid"] in (10, 20)]
    assert ("data aio", 403) in stages(driver)  # from 1067 to 1470
