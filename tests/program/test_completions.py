# SPDX-License-Identifier: MIT
"""Completions beside the kernel's counters, and the one verdict on those that no program saw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.lib.build_run import Rq, RunBuilder

from opline import losses
from opline.capture.machine import devices
from opline_analyses.cli import main

DEV = 7 << 20


def reading(writes: int, from_ns: int, to_ns: int) -> dict[str, dict[str, int]]:
    counts = {"reads": 0, "writes": writes, "discards": 0, "flushes": 0}
    return {"loop0": {**counts, "from_ns": from_ns, "monotonic_ns": to_ns}}


def completions(
    path: Path, capfd: pytest.CaptureFixture[str], ends_ns: list[int], unseen: int, before: Any, after: Any
) -> dict[str, Any]:
    """The row of `opline losses` of a run whose requests end at these times, and of so many that have no end."""
    run = RunBuilder()
    run.manifest["recording"] = {
        "state": "complete", "devices": [{"name": "loop0", "dev": DEV}],
        "completed_before": before, "completed_after": after,
    }  # fmt: skip
    for end_ns in ends_ns:
        run.request(Rq(q=end_ns - 50, d=end_ns - 40, c=end_ns), "app")
        run.rows["requests"][-1]["end_ns"] = end_ns
    for n in range(unseen):
        run.request(Rq(q=1500 + n, d=1501 + n), "app")
        run.rows["requests"][-1]["outcome"] = "reused"
    run.write(path)
    main(["losses", str(path)])
    text = capfd.readouterr().out
    main(["losses", str(path), "--json"])
    (row,) = json.loads(capfd.readouterr().out)["completions"]
    assert ("no kernel count" in text) == (row["kernel"] is None)
    return dict(row)


def test_what_completes_during_a_reading_is_not_held_against_the_kernel(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The second reading takes its time: three requests complete after it has read, and before it is over."""
    row = completions(tmp_path / "run", capfd, [1100, 1200, 2001, 2002, 2003], 0, reading(10, 900, 1000),
                      reading(12, 2000, 2100))  # fmt: skip
    assert (row["recorded"], row["kernel"], row["others"]) == (2, 2, 0)


def test_an_unseen_request_may_complete_after_the_second_reading(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    row = completions(tmp_path / "run", capfd, [1100, 1200], 3, reading(0, 900, 1000), reading(4, 2000, 2100))
    assert (row["recorded"], row["unseen"], row["kernel"], row["others"]) == (2, 2, 4, 0)


@pytest.mark.parametrize(("before", "after"), [(0, 1), (7, 1)])
def test_counters_of_another_kind_are_no_count(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], before: int, after: int
) -> None:
    """A device that counts only a part of its requests, and one that has begun anew."""
    row = completions(tmp_path / "run", capfd, [1100, 1200], 0, reading(before, 900, 1000), reading(after, 2000, 2100))
    assert (row["recorded"], row["kernel"], row["others"]) == (2, None, None)


def test_a_disk_without_counts_is_left_out(tmp_path: Path) -> None:
    for name, iostats in (("sda", "1"), ("sdb", "0"), ("sdc", None)):
        (tmp_path / name / "queue").mkdir(parents=True)
        (tmp_path / name / "stat").write_text("5 0 40 1 6 0 48 1 0 2 2 0 0 0 0 7 1\n")
        if iostats is not None:
            (tmp_path / name / "queue" / "iostats").write_text(f"{iostats}\n")
    found = devices.completed(tmp_path)
    assert set(found) == {"sda", "sdc"}
    assert {kind: found["sda"][kind] for kind in ("reads", "writes", "discards", "flushes")} == {
        "reads": 5, "writes": 6, "discards": 0, "flushes": 7
    }  # fmt: skip
    assert found["sda"]["from_ns"] <= found["sda"]["monotonic_ns"] <= found["sdc"]["from_ns"]


@pytest.mark.parametrize(("unseen", "too_many"), [(0, False), (1, False), (2, True)])
def test_the_recorder_and_the_ledger_have_one_verdict(unseen: int, too_many: bool) -> None:
    """The core sees one more, or one less: which request was unseen it finds out in another way."""
    recording = {"collector": {"requests": {"unseen": unseen, "records": 999}}}
    assert losses.too_many_unseen(recording) is too_many
    for of_core in (1, 2):
        summary = {"losses": {"completions_unseen": of_core, "completions_missing": 0}, "orphans": {}}
        for turned in (summary["losses"], dict(zip(summary["losses"], (0, of_core), strict=True))):
            found = losses.from_core({"losses": turned, "orphans": {}}, {}, recording)
            assert found["completions_missing"] == (of_core if too_many else 0)
            assert found["completions_unseen"] == (0 if too_many else of_core)
