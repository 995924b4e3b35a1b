# SPDX-License-Identifier: MIT
"""Transition lists: the ceph-devel mail's form to the character (C1.6, C1.7), and ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lib.build_run import P, Rq, RunBuilder

from opline.applications.ceph import op_list
from opline_analyses.base.filters import instant
from opline_analyses.cli import main
from opline_analyses.ops.oplist import OpDetail, Passed, read_ops
from opline_analyses.ops.transitions import default_list, lines_of
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection

# http://www.spinics.net/lists/ceph-devel: "performance latency analysis with LTTng"; the mail indents by one tab.
MAIL = """\
Op Transition list for benchmark_data_cephtestnode1_37038_object53, 18 states
  - [ ThrID   us ]
  - [ 86656 +0000] Start-> ioctximpl:aio_write:
  - [ 86656 +0010]     -> ioctximpl:queue_aio_write:
  - [ 24224 +0300]     -> osd:ms_fast_dispatch:
  - [ 24224 +0011]     -> oprequest:set_rmw_flags:
  - [ 24224 +0017]     -> osd:enqueue_op:
  - [ 24224 +0006]     -> osd:shard_index_enqueue:
  - [ 24224 +0013]     -> pg:queue_op:
  - [ 94688 +0068]     -> osd:opwq_process_start:
  - [ 94688 +0005]     -> osd:dequeue_op:
  - [ 94688 +0003]     -> mark_flagpt:reached_pg
  - [ 94688 +0049]     -> mark_flagpt:started
  - [ 94688 +0005]     -> mark_flagpt:started_2
  - [ 94688 +0005]     -> osd:prepare_tx_enter:
  - [ 94688 +0003]     -> osd:do_osd_op_pre:
  - [ 94688 +0002]     -> osd:do_osd_op_pre_write:
  - [ 94688 +0015]     -> osd:do_osd_op_post:
  - [ 94688 +0026]     -> osd:prepare_tx_exit:
  - [ 94688 +0188]     -> osd:opwq_process_finish:
  === > Total: 726 us
"""
FLAG = "oprequest:mark_flag_point"
STATES = (
    (86656, 0, "ioctximpl:aio_write", None),
    (86656, 10, "ioctximpl:queue_aio_write", None),
    (24224, 300, "osd:ms_fast_dispatch", None),
    (24224, 11, "oprequest:set_rmw_flags", None),
    (24224, 17, "osd:enqueue_op", None),
    (24224, 6, "osd:shard_index_enqueue", None),
    (24224, 13, "pg:queue_op", None),
    (94688, 68, "osd:opwq_process_start", None),
    (94688, 5, "osd:dequeue_op", None),
    (94688, 3, "mark_flagpt:reached_pg", FLAG),
    (94688, 49, "mark_flagpt:started", FLAG),
    (94688, 5, "mark_flagpt:started#2", FLAG),
    (94688, 5, "osd:prepare_tx_enter", None),
    (94688, 3, "osd:do_osd_op_pre", None),
    (94688, 2, "osd:do_osd_op_pre_write", None),
    (94688, 15, "osd:do_osd_op_post", None),
    (94688, 26, "osd:prepare_tx_exit", None),
    (94688, 188, "osd:opwq_process_finish", None),
)


def mail_points(begin_ns: int, remainder_ns: int) -> list[P]:
    """The mail's op, each state ``remainder_ns`` (growing) behind a whole microsecond since the begin."""
    points, us = [], 0
    for n, (tid, delta, name, event) in enumerate(STATES):
        us += delta
        ts = begin_ns + us * 1000 + (n * remainder_ns) % 1000
        points.append(P(name, ts, tid=tid, event=event or name))
    return points


@pytest.mark.parametrize("remainder_ns", [0, 1, 58, 499, 613, 999])
def test_c1_6_the_mails_own_example(tmp_path: Path, remainder_ns: int) -> None:
    """C1.6, C1.7: to the character, whatever nanoseconds lie behind the microseconds."""
    run = RunBuilder()
    run.op(mail_points(1_000_000_123, remainder_ns), obj="benchmark_data_cephtestnode1_37038_object53")
    (op,) = read_ops(open_tables(run.write(tmp_path)), Selection())
    assert "".join(line + "\n" for line in op_list.ceph_devel_list(op)) == MAIL


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=40), st.integers(0, 10**15))
def test_c1_6_deltas_sum_to_the_total(gaps_ns: list[int], begin_ns: int) -> None:
    """Rounding each delta by itself would lose up to a microsecond per line."""
    points, ts = [], begin_ns
    for gap in gaps_ns:
        ts += gap
        points.append(Passed(ts, "a:b", "a:b", 1234567, 0, None, False, False))
    op = OpDetail(0, None, "x", None, 1, begin_ns, ts, ts, True, None, False, None, None, None, 0, 0)
    op.transitions = points
    lines = list(op_list.ceph_devel_list(op))
    deltas = [int(line[13 : line.index("]", 13)]) for line in lines[2:-1]]
    assert sum(deltas) == int(lines[-1].split()[-2])
    assert lines[2].startswith("  - [ 34567 +0000] Start-> ")


@pytest.mark.parametrize(
    ("point", "event", "label"),
    [
        ("osd:dequeue_op", "osd:dequeue_op", "osd:dequeue_op:"),
        ("osd:dequeue_op#3", "osd:dequeue_op", "osd:dequeue_op:"),
        ("mark_flagpt:started#2", FLAG, "mark_flagpt:started_2"),
        ("osd.reached_pg", FLAG, "mark_flagpt:reached_pg"),
        ("state.done", "app:state", "state.done"),
    ],
)
def test_c1_7_labels(point: str, event: str, label: str) -> None:
    assert op_list.label(Passed(0, point, event, 1, 0, None, False, False)) == label


def direct_write() -> RunBuilder:
    run = RunBuilder()
    run.op(
        [
            P("client.begin", 5_000, 11, comm="client"),
            P("worker.begin", 15_250, 12, comm="worker", stage="queue", kind="wait"),
            P("worker.note", 16_500, 12, comm="worker", aside=True),
            P("worker.end", 40_000, 12, comm="worker"),
            P("client.end", 45_001, 11, comm="client", kind="unknown", stage="unknown: worker.end → client.end"),
            P("worker.bye", 50_000, 12, comm="worker", late=True),
        ],
        [Rq(q=16_000, g=17_000, d=18_000, c=30_000, dev=(8 << 20) | 16, sector=4096, tid=12)],
        obj="obj1",
    )
    return run


DEFAULT = """\
op 0 at 0.000000000 s  write  obj1  40.001 us  4096 B at 0
    us    +us  stage    point         thread              cpu
 0.000  0.000           client.begin  client:11             0
10.250 10.250  queue    worker.begin  worker:12             0
11.000  0.750  submit     Q  8:16 sector 4096 +8 WS  app:12 0
11.500         (aside)  worker.note   worker:12             0
12.000  1.000  Q2G        G
13.000  1.000  G2D        D           app:12                0
25.000 12.000  D2C        C  Q2C 14.000 D2C 12.000          1
35.000 10.000  reap     worker.end    worker:12             0
40.001  5.001  unknown  client.end    client:11             0
45.000         (late)   worker.bye    worker:12             0
  total 40.001 = attributed 35.000 + unknown 5.001 + unattributed 0.000
"""


def test_default_style_to_the_character(tmp_path: Path) -> None:
    (op,) = read_ops(open_tables(direct_write().write(tmp_path)), Selection())
    assert "".join(line + "\n" for line in default_list(op)) == DEFAULT


def test_default_style_shows_block_steps_between_points(tmp_path: Path) -> None:
    (op,) = read_ops(open_tables(direct_write().write(tmp_path)), Selection())
    text = "\n".join(default_list(op))
    assert [line.split("  ")[0] for line in text.splitlines()[:1]] == ["op 0 at 0.000000000 s"]
    order = [line.what.split()[0] for line in lines_of(op)]
    assert order == [
        "client.begin", "worker.begin", "Q", "worker.note", "G", "D", "C", "worker.end", "client.end", "worker.bye",
    ]  # fmt: skip
    assert "  Q  8:16 sector 4096 +8 WS" in text
    op.devices[(8 << 20) | 16] = "sdb"
    assert "  Q  sdb sector 4096 +8 WS" in "\n".join(default_list(op))
    assert "  C  Q2C 14.000 D2C 12.000" in text
    assert "total 40.001 = attributed 35.000 + unknown 5.001 + unattributed 0.000" in text
    stages = {line.what.split()[0]: (line.stage, line.critical, line.mark) for line in lines_of(op)}
    assert stages["worker.begin"] == ("queue", True, "")
    assert stages["worker.note"] == ("", False, "aside")
    assert stages["worker.bye"] == ("", False, "late")
    assert stages["D"] == ("G2D", True, "")
    assert stages["client.end"] == ("unknown", True, "")


def test_default_styles_deltas_sum_to_the_latency(tmp_path: Path) -> None:
    (op,) = read_ops(open_tables(direct_write().write(tmp_path)), Selection())
    critical = [line.ts_ns for line in lines_of(op) if line.critical]
    deltas = [b - a for a, b in zip([op.begin_ns, *critical], critical, strict=False)]
    assert sum(deltas) == op.latency_ns == 40_001


def test_a_stage_that_ends_at_a_step_without_its_request(tmp_path: Path) -> None:
    """A split remainder has no Q: the stage before its G is between a point and a step."""
    run = RunBuilder()
    run.op([P("begin", 0), P("end", 100)], [Rq(g=30, d=50, c=80)])
    run.rows["stages"][0].update(request_id=None, stage="begin → G")
    (op,) = read_ops(open_tables(run.write(tmp_path)), Selection())
    assert [(line.ts_ns, line.stage) for line in lines_of(op)][:3] == [(0, ""), (30, "-"), (50, "G2D")]


def test_a_batchs_requests_are_shown_as_shared(tmp_path: Path) -> None:
    """They cut the stages of every member, and are linked to none."""
    run = direct_write()
    run.rows["links"].clear()
    (op,) = read_ops(open_tables(run.write(tmp_path)), Selection())
    marks = [line.mark for line in lines_of(op) if line.what.startswith("  Q")]
    assert marks == ["shared"]
    assert sum(bool(line.stage) for line in lines_of(op)) == len(op.stages)


def test_write_back_after_the_reply_is_late(tmp_path: Path) -> None:
    run = RunBuilder()
    run.op([P("begin", 0), P("end", 100)], [Rq(q=50, g=60, d=200, c=900, critical=False)])
    (op,) = read_ops(open_tables(run.write(tmp_path)), Selection())
    assert [(line.what.split()[0], line.mark) for line in lines_of(op)] == [
        ("begin", ""), ("Q", ""), ("G", ""), ("end", ""), ("D", "late"), ("C", "late"),
    ]  # fmt: skip


def test_several_requests_are_numbered(tmp_path: Path) -> None:
    """Steps of a split write interleave: each says whose it is."""
    run = RunBuilder()
    parts = [Rq(q=10, g=20, d=40, c=90), Rq(g=30, d=50, c=80, sector=4096, critical=False)]
    run.op([P("begin", 0), P("end", 100)], parts)
    (op,) = read_ops(open_tables(run.write(tmp_path)), Selection())
    steps = [line.what.split()[0] for line in lines_of(op) if line.what.startswith("  ")]
    assert sorted(steps) == ["C1", "C2", "D1", "D2", "G1", "G2", "Q1"]
    assert [s for s in steps if s.startswith("C")] in (["C1", "C2"], ["C2", "C1"])
    assert any("G2  7:0 sector 4096 +8" in line.what or "G1  7:0 sector 4096 +8" in line.what for line in lines_of(op))


def test_incomplete_op_says_why(tmp_path: Path) -> None:
    run = RunBuilder()
    run.op([P("client.begin", 0), P("client.sent", 10)], complete=False, reason="no_end")
    (op,) = read_ops(open_tables(run.write(tmp_path)), Selection())
    lines = list(default_list(op))
    assert "incomplete (no_end)" in lines[0]
    assert "no end seen" in lines[-1]


def test_ops_come_in_the_selections_order(tmp_path: Path) -> None:
    run = RunBuilder()
    for latency in (30, 10, 20):
        run.op([P("a", 1000), P("b", 1000 + latency)])
    opened = open_tables(run.write(tmp_path))
    slowest = Selection(order="o.latency_ns DESC, o.op_id", limit=2)
    assert [op.op_id for op in read_ops(opened, slowest)] == [0, 2]


def test_recurring_points_find_their_stage(tmp_path: Path) -> None:
    """Stages name points without the number of their recurrence."""
    run = RunBuilder()
    run.op([P("sync", 0), P("sync#2", 10, stage="again"), P("sync#3", 25, stage="again")])
    for stage in run.rows["stages"]:
        stage["from_point"] = stage["to_point"] = "sync"
    (op,) = read_ops(open_tables(run.write(tmp_path)), Selection())
    assert [(line.what, line.stage) for line in lines_of(op)] == [
        ("sync", ""),
        ("sync#2", "again"),
        ("sync#3", "again"),
    ]


def test_a_merged_bio_shows_its_own_steps(tmp_path: Path) -> None:
    """The request is older than the bio: its G and I are not the op's, its sectors neither."""
    run = RunBuilder()
    run.op([P("begin", 100), P("end", 900)], [Rq(q=20, g=30, i=40, d=600, c=800, sector=1000, nr_sectors=64)])
    run.rows["requests"][0]["bio_count"] = 8
    run.rows["bios"][0].update(queue_ns=200, merge_ns=210, sector=1056, nr_sectors=8, tid=7, comm="own")
    (op,) = read_ops(open_tables(run.write(tmp_path)), Selection())
    steps = [(line.ts_ns, line.what, line.thread) for line in lines_of(op) if line.what.startswith("  ")]
    assert steps == [
        (200, "  Q  7:0 sector 1056 +8 WS", "own:7"),
        (210, "  M  into sector 1000 +64", ""),
        (600, "  D", "app:100"),
        (800, "  C  Q2C 0.600 D2C 0.200", ""),
    ]


def test_a_run_of_an_older_opline_opens(tmp_path: Path) -> None:
    """A column that it does not know is absent."""
    import pyarrow.parquet as pq

    path = direct_write().write(tmp_path)
    table = pq.read_table(path / "bios.parquet")
    pq.write_table(table.drop_columns(["merge_ns"]), path / "bios.parquet")
    assert "".join(line + "\n" for line in default_list(next(read_ops(open_tables(path), Selection())))) == DEFAULT


def test_times_count_from_the_runs_first_event(tmp_path: Path) -> None:
    """What the list says of an op's begin is what --since, --at and the tables of block requests have."""
    run = RunBuilder(manifest={"core": {"first_ns": 1_000}})
    run.op([P("begin", 2_500_000_001), P("end", 2_600_000_000)])
    opened = open_tables(run.write(tmp_path))
    assert opened.start_ns() == 1_000
    assert instant("2.499999001", "--since").after(opened.start_ns()) == 2_500_000_001
    (op,) = read_ops(opened, Selection())
    assert next(default_list(op)).startswith("op 0 at 2.499999001 s  ")


def test_many_block_steps_are_one_line_that_can_be_opened_and_the_times_still_sum(tmp_path: Path) -> None:
    run = RunBuilder()
    requests = [Rq(q=1_000 + 10 * n, d=2_000 + 10 * n, c=90_000 + 10 * n) for n in range(100)]
    run.op([P("begin", 0, tid=1), P("end", 100_000, tid=1, stage="all")], requests)
    (op,) = read_ops(open_tables(run.write(tmp_path)), Selection())
    short, whole = list(default_list(op)), list(default_list(op, unfold=True))
    steps = sum(" D" in line or " C" in line or " Q" in line for line in whole)
    assert steps >= 300 and len(short) < 40
    (line,) = (line for line in short if "more steps (--unfold)" in line)
    assert int(line.split("…")[1].split()[0]) + len(short) - 1 == len(whole)
    assert short[-1] == whole[-1], "the partition is the same"


def test_the_list_ends_after_a_screen_unless_a_number_is_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = RunBuilder()
    for n in range(50):
        run.op([P("begin", 1_000 * n, tid=1), P("end", 1_000 * n + 500, tid=1, stage="all")])
    path = str(run.write(tmp_path))
    for words, shown in (([], 20), (["--limit", "33"], 33), (["--op", "41"], 1), (["-o", str(tmp_path / "all")], 50)):
        assert main(["ops", path, *words]) == 0
        out, err = capfd.readouterr()
        text = (tmp_path / "all").read_text() if "-o" in words else out
        assert text.count(" total ") == shown
        assert ("30 more ops: --limit N" in err) is (not words)
