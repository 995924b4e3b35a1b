# SPDX-License-Identifier: MIT
"""Answers by an engine that take several questions: measured percentiles of many recordings, and their slow ops, as if
all ops were in one run.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.test_engine import NAMES, runs, said

from opline import _core
from opline.errors import OplineError
from opline_analyses.engine import ranks as ranks_module
from opline_analyses.engine import summaries
from opline_analyses.engine.cells import NONE, Buckets, added, by_group
from opline_analyses.engine.exact import exact_stages
from opline_analyses.engine.interface import Failure, Item, engine_of
from opline_analyses.engine.kept import Kept
from opline_analyses.engine.ranks import Rank, refine
from opline_analyses.engine.recordings import Asking, items_of
from opline_analyses.runs.run import open_run

__all__ = ["runs"]
Capture = pytest.CaptureFixture[str]
COUNTED = "complete AND NOT tainted"
PERCENTILES = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p999_ns": 0.999}
OPTIONS: dict[str, Any] = {"model": None, "reader": None, "all_programs": False, "filters": {}, "tainted": False}


def rows_of(runs: Path, sql: str) -> list[tuple[Any, ...]]:
    """Of each run in the order of the names: the query's rows, with the place of the run before them."""
    found = []
    for place, name in enumerate(sorted(NAMES)):
        tables = {table: f"read_parquet('{runs / name / table}.parquet')" for table in ("ops", "stages")}
        found += [(place, *row) for row in duckdb.execute(sql.format(**tables)).fetchall()]
    return found


class FakeAsking:
    """Recordings that are lists of values."""

    def __init__(self, runs: Sequence[Sequence[int]]) -> None:
        self.runs, self.questions = runs, 0

    def more(self, task: str, options: dict[str, Any]) -> list[dict[str, Any]]:
        assert task == "within"
        self.questions += 1
        return [{"counts": [self._counts(values, *one) for one in options["open"]]} for values in self.runs]

    @staticmethod
    def _counts(values: Sequence[int], group: str, low: int, past: int, step: int) -> list[tuple[int, int]]:
        assert group == "g"
        places = [(value - low) // step for value in values if low <= value < past]
        return [(place, places.count(place)) for place in sorted(set(places))]


def cells_of(values: Sequence[int]) -> Buckets:
    nothing = np.zeros(len(values), np.int64)
    statistics = _core.StageStatistics(True)
    statistics.ops(np.array(values, np.int64), nothing, nothing)
    return by_group(json.loads(statistics.sums([]))["cells"]).get("of latency", NONE)


@given(
    st.lists(st.lists(st.one_of(st.integers(0, 5000), st.integers(0, 1 << 45)), max_size=30), min_size=1, max_size=4),
    st.data(),
)
def test_a_rank_is_the_value_that_sorting_gives(runs: list[list[int]], data: st.DataObject) -> None:
    everything = sorted((value, place) for place, run in enumerate(runs) for value in run)
    if not everything:
        return
    wanted = data.draw(st.integers(1, len(everything)))
    of_runs = [cells_of(run) for run in runs]
    rank = Rank("g", wanted, of_runs, added(of_runs))
    refine(cast("Asking", FakeAsking(runs)), [rank])
    assert rank.low == everything[wanted - 1][0]
    for last in (wanted, wanted - 1):
        assert rank.up_to(last) == [sum(at == place for _, at in everything[:last]) for place in range(len(runs))]


def test_a_recording_that_changes_meanwhile_is_an_error() -> None:
    found = cells_of([1_000_001, 1_000_002])
    rank = Rank("g", 1, [found], found)
    with pytest.raises(OplineError, match="changed while it was read"):
        refine(cast("Asking", FakeAsking([[1_000_001]])), [rank])


def test_exact_percentiles_are_those_of_all_values_together(
    runs: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    values: dict[str, list[int]] = {}
    for _, stage, value in rows_of(
        runs,
        f"""SELECT stage, sum(duration_ns)::BIGINT FROM {{stages}} SEMI JOIN
            (SELECT op_id FROM {{ops}} WHERE {COUNTED}) USING (op_id) WHERE stage IS NOT NULL GROUP BY op_id, stage""",
    ):
        values.setdefault(stage, []).append(value)
    values["latency"] = [value for _, value in rows_of(runs, f"SELECT latency_ns FROM {{ops}} WHERE {COUNTED}")]
    status, out, _ = said(capfd, "stages", runs, "--engine", "processes:2", "--exact", "--json")
    document = json.loads(out)
    assert (status, document["exact"]) == (0, True)
    rows = {row["stage"]: row for row in document["stages"]}
    assert set(values) <= set(rows)
    for stage, mine in values.items():
        mine.sort()
        for name, part in PERCENTILES.items():
            assert rows[stage][name] == mine[-(-int(part * 1000) * len(mine) // 1000) - 1], (stage, name)
    monkeypatch.setattr(ranks_module, "PARTS", 16)  # many questions more
    assert said(capfd, "stages", runs, "--engine", "processes:2", "--exact", "--json")[1] == out


@pytest.mark.parametrize("room", [0, 1 << 20])
def test_values_that_are_kept_answer_as_the_run_does(room: int, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, kept = str(runs / NAMES[0]), Kept(room)
    opened: list[Any] = []

    def opening(*given: Any, **named: Any) -> Any:
        opened.append(given)
        return open_run(*given, **named)

    monkeypatch.setattr(summaries, "open_run", opening)
    cells = summaries.summary_of("stages", path, OPTIONS, kept)["cells"]
    asked = [[group, least[0], most[-1] + 1, 4096] for group, (_, _, _, least, most) in cells.items()]
    counts = summaries.summary_of("within", path, {**OPTIONS, "open": asked}, kept)["counts"]
    assert len(opened) == (1 if room else 2)
    for (group, (_, count, *_)), found in zip(cells.items(), counts, strict=True):
        assert sum(ops for _, ops in found) == sum(count) > 0, group
    assert counts == summaries.summary_of("within", path, {**OPTIONS, "open": asked}, Kept(0))["counts"]


def test_the_slow_ops_of_many_runs_are_those_of_all_ops_together(runs: Path, capfd: Capture) -> None:
    ops = sorted(
        (latency, place, op)
        for place, op, latency in rows_of(runs, f"SELECT op_id, latency_ns FROM {{ops}} WHERE {COUNTED}")
    )
    slow = max(1, len(ops) // 100)
    others = len(ops) - slow
    low, high = -(-others // 4), -(-3 * others // 4)
    sides = {(place, op): True for _, place, op in ops[others:]}
    sides |= {(place, op): False for _, place, op in ops[low - 1 : high]}
    sums: dict[tuple[str, bool], int] = {}
    for place, op, stage, ns in rows_of(runs, "SELECT op_id, stage, duration_ns FROM {stages}"):
        if (side := sides.get((place, op))) is not None:
            sums[stage, side] = sums.get((stage, side), 0) + ns
    status, out, _ = said(capfd, "why", runs, "--engine", "processes:2", "--json")
    document = json.loads(out)
    assert (status, document["sums"]) == (0, True)
    assert (document["sets"]["ops"], document["sets"]["slow"]) == (len(ops), slow)
    assert document["sets"]["slow_from_ns"] == ops[others][0]
    assert (document["sets"]["typical_from_ns"], document["sets"]["typical_to_ns"]) == (
        ops[low - 1][0],
        ops[high - 1][0],
    )
    found = {row["stage"]: row for row in document["stages"]}
    for (stage, side), ns in sums.items():
        assert found[stage]["slow_total_ns" if side else "typical_total_ns"] == ns
    latency = document["latency"]
    assert latency["slow_total_ns"] == sum(ns for ns, *_ in ops[others:])
    assert latency["typical_total_ns"] == sum(ns for ns, *_ in ops[low - 1 : high])
    _, place, op = ops[others + (slow + 1) // 2 - 1]
    assert document["sets"]["example"] == op
    assert document["sets"]["example_recording"] == str(runs / sorted(NAMES)[place])
    by_run = {row["recording"]: (row["ops"], row["slow"]) for row in document["recordings"]}
    for number, name in enumerate(sorted(NAMES)):
        assert by_run[name] == (sum(p == number for _, p, _ in ops), sum(p == number for _, p, _ in ops[others:]))


@pytest.mark.parametrize("rule", [(), ("--slowest", "7"), ("--latency", ">50ms")], ids=" ".join)
def test_one_run_by_an_engine_is_why(rule: tuple[str, ...], runs: Path, capfd: Capture) -> None:
    run = runs / NAMES[0]
    alone = said(capfd, "why", run, *rule, "--csv")
    assert alone[0] == 0 and len(list(csv.reader(io.StringIO(alone[1])))) > 5
    assert said(capfd, "why", run, *rule, "--csv", "--engine", "processes:1") == alone
    text = said(capfd, "why", run, *rule, "--all")[1].splitlines()
    by_engine = said(capfd, "why", run, *rule, "--all", "--engine", "processes")[1].splitlines()
    named = re.compile("slow: |typical: |stages sum|.* all waits$")
    assert list(filter(named.match, by_engine)) == list(filter(named.match, text))
    assert len(list(filter(named.match, text))) == 4


@pytest.mark.parametrize("words", [("stages", "--exact"), ("why",)], ids=" ".join)
def test_the_same_bytes_with_one_two_and_four_processes(words: tuple[str, ...], runs: Path, capfd: Capture) -> None:
    command, *rest = words
    first, *others = [said(capfd, command, runs, *rest, "--engine", f"processes:{n}") for n in (1, 2, 4)]
    assert first[0] == 0 and first[1]
    assert all(other == first for other in others)


@pytest.mark.parametrize("words", [("stages", "--exact", "--json"), ("why", "--csv")], ids=" ".join)
def test_a_damaged_run_is_named_and_the_others_are_right(
    words: tuple[str, ...], runs: Path, tmp_path: Path, capfd: Capture
) -> None:
    folder = Path(shutil.copytree(runs, tmp_path / "runs"))
    (folder / NAMES[1] / "ops.parquet").unlink()
    command, *rest = words
    status, out, err = said(capfd, command, folder, *rest, "--engine", "processes")
    assert status == 3
    assert f"1 of 3 recordings are not in the figures below: {NAMES[1]}." in err
    assert said(capfd, command, folder / NAMES[2], "--also", folder / NAMES[0], *rest)[:2] == (0, out)


class FailsLater:
    """An engine whose item of that name has no answer to the second kind of question."""

    def __init__(self, inner: Any, name: str) -> None:
        self.inner, self.name = inner, name

    def map(self, task: str, items: Sequence[Item]) -> Iterator[tuple[Item, Path | Failure]]:
        for item, result in self.inner.map(task, items):
            yield item, Failure("it is gone") if task == "within" and item.name == self.name else result

    def close(self) -> None:
        self.inner.close()


def test_a_run_that_is_lost_between_two_questions_is_in_no_figure(runs: Path, tmp_path: Path, capfd: Capture) -> None:
    def table(names: Sequence[str], lost: str) -> tuple[Any, list[str]]:
        with contextlib.closing(FailsLater(engine_of("processes:2", tmp_path), lost)) as running:
            found, answers = exact_stages(Asking(running, items_of([str(runs / name) for name in names], OPTIONS)))
        return [vars(row) for row in found.stages], answers.missing

    assert table(NAMES, NAMES[1])[1] == [NAMES[1]]
    assert f"1 of 3 recordings are not in the figures below: {NAMES[1]}." in capfd.readouterr().err
    assert table(NAMES, NAMES[1])[0] == table((NAMES[0], NAMES[2]), "")[0]
