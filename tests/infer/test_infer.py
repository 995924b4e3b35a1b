# SPDX-License-Identifier: MIT
"""`opline model infer` against the shipped models: how much of their points and keys it finds in recordings.

A point is found if nearly all of its events are in the inferred model's ops, each in the op in which most of that op's
events are by the shipped model as well. A key is found if one of the inferred keys has the same fields at its events.
"""

from __future__ import annotations

import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.lib.recorded import LAB

from opline.correlation import correlate
from opline.model import Model, load_model

ROOT = Path(__file__).resolve().parents[2]
WANTED = 0.9
TRACES = {
    "demo": ("demo-qd4", "demo-ctf2", "demo-kernel", "infer/demo-libaio"),
    str(LAB): ("app-sync-qd4-nvme", "app-libaio-qd16-nvme", "app-buf-fsync1-ext4"),
    "postgresql": ("postgresql/pgbench-4",),
}

#: Of programs whose models are not looked at here, and some of whose threads do what no rule fits.
OTHERS = (
    "ctf-blue-v2-qd1", "ctf-deb12-shim-qd1", "ctf-deb12-uprobes-qd16", "kinds-ctf2", "app-sqpoll-qd16-nvme",
    "discard-tiny-buffers", "fio-psync-qd1-nvme",
)  # fmt: skip

Opline = Callable[..., subprocess.CompletedProcess[str]]
Trace = Callable[[str], Path]
Place = tuple[int, int]  # time, thread


def _trace(name: str, trace: Trace, where: Path) -> Path:
    folder, _, rest = name.rpartition("/")
    if not folder:
        return trace(name)
    subprocess.run(["tar", "-xJf", ROOT / "tests" / folder / f"{rest}.tar.xz", "-C", where], check=True)
    return where / rest


def _transitions(trace: Path, model: Model, out: Path) -> list[dict[str, object]]:
    correlate(trace, model, out, progress=False)
    columns = ["op_id", "ts_ns", "tid", "point"]
    return list(pq.read_table(out / "transitions.parquet", columns=columns).to_pylist())


def _points(shipped: list[dict[str, object]], inferred: list[dict[str, object]]) -> dict[str, tuple[int, int]]:
    """Of each point of the shipped model how many of its transitions were found, of how many."""
    for row in shipped:
        row["point"] = str(row["point"]).partition("#")[0]
    by_place: dict[object, set[object]] = defaultdict(set)
    for row in shipped:
        by_place[row["ts_ns"], row["tid"]].add(row["op_id"])
    votes: dict[object, Counter[object]] = defaultdict(Counter)
    for row in inferred:
        votes[row["op_id"]].update(by_place.get((row["ts_ns"], row["tid"]), ()))
    right = {op: seen.most_common(1)[0][0] for op, seen in votes.items() if seen}
    reached: dict[object, set[object]] = defaultdict(set)
    for row in inferred:
        reached[row["ts_ns"], row["tid"]].add(right.get(row["op_id"]))
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in shipped:
        hits, total = found[str(row["point"])]
        found[str(row["point"])] = hits + (row["op_id"] in reached[row["ts_ns"], row["tid"]]), total + 1
    return dict(found)


def _keys(model: Model, seen: set[str]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Of each key space the fields at each event that was seen; what is in several processes' hands alike."""
    own = {space.name: space.fields for space in model.keys}
    found: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for rule in model.rules:
        for use in (*rule.key, *rule.bind):
            for event in rule.events:
                if event in seen:
                    found[use.space][event] = use.fields or own[use.space]
    return found


def _found_keys(shipped: Model, inferred: Model, seen: set[str]) -> dict[str, bool]:
    """Of each key space of the shipped model that joins anything here whether it was found."""
    mine = _keys(inferred, seen)
    threads = {rule.events[0] for rule in inferred.rules if rule.thread}
    found = {}
    for name, uses in _keys(shipped, seen).items():
        if len(uses) < 2:
            continue
        if {f for fields in uses.values() for f in fields} == {"vtid"}:  # the thread itself: a thread rule
            found[name] = bool(threads & uses.keys())
            continue
        hits = [sum(other.get(event) == fields for event, fields in uses.items()) for other in mine.values()]
        # where a thread is at the op already no key is needed: the others of the space are enough
        needed = [sum(event in other for event in uses) for other in mine.values()]
        found[name] = any(2 * h >= len(uses) and h >= 2 and h == n for h, n in zip(hits, needed, strict=True))
    return found


@pytest.mark.parametrize(("shipped", "names"), TRACES.items(), ids=lambda v: Path(v).stem if isinstance(v, str) else "")
def test_nine_tenths_of_the_shipped_models_points_and_keys_are_found(
    shipped: str, names: tuple[str, ...], trace: Trace, opline: Opline, tmp_path: Path
) -> None:
    model = load_model(shipped)
    points: dict[str, tuple[int, int]] = {}
    keys: dict[str, bool] = {}
    for name in names:
        where = _trace(name, trace, tmp_path)
        done = opline("model", "infer", where)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        text = tmp_path / f"{where.name}.toml"
        text.write_text(done.stdout)
        assert all(len(line) <= 120 for line in done.stdout.splitlines() if line.startswith("#"))
        lint = opline("model", "lint", text, where)
        assert lint.returncode == 0 and "error" not in lint.stdout, lint.stdout
        inferred = load_model(str(text))
        for run in ("a", "b"):
            (tmp_path / f"{where.name}.{run}").mkdir()
        theirs = _transitions(where, model, tmp_path / f"{where.name}.a")
        mine = _transitions(where, inferred, tmp_path / f"{where.name}.b")
        for point, (hits, total) in _points(theirs, mine).items():
            had = points.get(point, (0, 0))
            points[point] = had[0] + hits, had[1] + total
        if shipped != "postgresql":  # there a transaction, of which the trace says nothing, is several statements
            assert _spans(tmp_path / f"{where.name}.a") == _spans(tmp_path / f"{where.name}.b")
        fates = pq.read_table(tmp_path / f"{where.name}.a" / "fates.parquet", columns=["event"])
        seen = set(fates.column("event").to_pylist())
        keys |= {k: v or keys.get(k, False) for k, v in _found_keys(model, inferred, seen).items()}
    missed = {point: counts for point, counts in points.items() if counts[0] < WANTED * counts[1]}
    assert len(points) > 5 and keys
    assert len(missed) <= (1 - WANTED) * len(points), missed
    assert sum(keys.values()) >= WANTED * len(keys), keys


def test_of_rocksdb_begin_end_and_key_are_those_of_its_model(opline: Opline, trace: Trace, tmp_path: Path) -> None:
    """Its key comes up after the op has begun, and a leader passes an event with the key of each whose write it took.
    Nothing was made for this program.
    """
    where = _trace("rocksdb/writes-240", trace, tmp_path) / "trace"
    text = tmp_path / "rocksdb.toml"
    text.write_text(opline("model", "infer", where).stdout)
    inferred = load_model(str(text))
    shipped = load_model(str(ROOT / "examples" / "rocksdb" / "rocksdb.toml"))
    seen = {event for rule in shipped.rules for event in rule.events}
    assert _keys(inferred, seen)["writer"] == dict.fromkeys(
        ("rocksdb:join", "rocksdb:state", "rocksdb:gather"), ("writer",)
    )
    spans = []
    for name, model in (("a", shipped), ("b", inferred)):
        (tmp_path / name).mkdir()
        _transitions(where, model, tmp_path / name)
        spans.append(_spans(tmp_path / name))
    assert spans[0] == spans[1] and len(spans[0]) == 240


def _spans(run: Path) -> list[tuple[int, int]]:
    """Begin and end of each op."""
    table = pq.read_table(run / "ops.parquet", columns=["begin_ns", "end_ns"])
    return sorted(zip(*(table.column(name).to_pylist() for name in ("begin_ns", "end_ns")), strict=True))


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_inferred_of_any_trace_passes_lint(name: str, trace: Trace, opline: Opline, tmp_path: Path) -> None:
    done = opline("model", "infer", trace(name))
    if name.startswith("fio-"):  # system calls alone
        assert done.returncode == 1 and done.stdout == "" and "`--model syscalls`" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n") and not done.stdout.endswith("\n\n")
    text = tmp_path / "model.toml"
    text.write_text(done.stdout)
    lint = opline("model", "lint", text)
    assert lint.returncode == 0 and "nothing to complain about" in lint.stderr, lint.stdout + lint.stderr
