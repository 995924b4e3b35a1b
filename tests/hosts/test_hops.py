# SPDX-License-Identifier: MIT
"""Which of several requests in flight together was answered last, and the slack of the others (opline.cluster.hops)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from opline.cluster.hops import COLUMNS, write_hops

Visit = tuple[str, int, int, int, int]  # child, sent, received, replied, returned


def slack(
    visits: list[Visit], tmp_path: Path, quorums: dict[str, int] | None = None
) -> list[tuple[str, int, int | None]]:
    """(child, sent, slack) of an op on host `a` with these visits."""
    rows = []
    for n, (child, sent, received, replied, returned) in enumerate(visits):
        rows.append(("a", child, n, "send", "receive", 1, 2, sent, received, 5))
        rows.append((child, "a", n, "reply", "return", 2, 1, replied, returned, 5))
    names = (
        "sender", "receiver", "identity", "send_point", "receive_point", "send_tid", "receive_tid", "sent_ns",
        "received_ns", "bound_ns",
    )  # fmt: skip
    messages = {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}
    passed = [(0, row[8], row[6], row[4]) for row in rows]
    transitions = {name: [p[i] for p in passed] for i, name in enumerate(("op_id", "ts_ns", "tid", "point"))}
    pq.write_table(pa.table(transitions), tmp_path / "transitions.parquet")
    assert write_hops(messages, tmp_path, tmp_path / "hops.parquet", quorums) == len(visits)
    found = pq.read_table(tmp_path / "hops.parquet")
    assert found.column_names == [name for name, _ in COLUMNS]
    return list(zip(*(found.column(name).to_pylist() for name in ("child_host", "sent_ns", "slack_ns")), strict=True))


def test_the_replica_that_answers_last_is_critical(tmp_path: Path) -> None:
    visits = [("b", 10, 20, 80, 90), ("c", 11, 30, 100, 140), ("d", 12, 22, 60, 65)]
    assert slack(visits, tmp_path) == [("b", 10, 50), ("c", 11, 0), ("d", 12, 75)]


def test_requests_one_after_the_other_have_no_slack(tmp_path: Path) -> None:
    visits = [("b", 10, 20, 30, 40), ("c", 41, 50, 60, 70), ("b", 71, 80, 90, 99)]
    assert [row[2] for row in slack(visits, tmp_path)] == [0, 0, 0]


def test_a_second_round_of_replicas_is_a_round_of_its_own(tmp_path: Path) -> None:
    visits = [("b", 10, 20, 30, 40), ("c", 12, 20, 30, 45), ("b", 50, 60, 70, 90), ("c", 51, 60, 70, 80)]
    assert [row[2] for row in slack(visits, tmp_path)] == [5, 0, 0, 10]


def test_the_answer_of_a_quorum_is_critical_and_later_ones_have_a_slack_below_0(tmp_path: Path) -> None:
    """Two of three; the second round is sent while an answer to the first one is out."""
    visits = [
        ("b", 10, 20, 30, 40), ("c", 11, 20, 60, 70), ("d", 12, 20, 95, 99),
        ("b", 80, 81, 82, 85), ("c", 82, 83, 84, 120), ("d", 84, 85, 86, 110),
    ]  # fmt: skip
    assert [row[2] for row in slack(visits, tmp_path, {"return": 2})] == [30, 0, -29, 25, -10, 0]
    assert [row[2] for row in slack(visits, tmp_path, {"another": 2})] == [80, 50, 21, 35, 0, 10]


def test_an_op_with_fewer_answers_than_its_quorum_waits_for_the_last(tmp_path: Path) -> None:
    assert [row[2] for row in slack([("b", 10, 20, 30, 40), ("c", 11, 20, 60, 70)], tmp_path, {"return": 3})] == [30, 0]
