# SPDX-License-Identifier: MIT
"""Builds a small run directory of Parquet tables from typed Python values, by the schema in opline.store.schema.

Takes ops as lists of points and block requests; gives the same files that a correlation would. Analyses are tested with
it without the native core: every number in an expectation can be read off the test.

    run = RunBuilder()
    run.op([P("client.begin", 0), P("client.end", 5000)])
    path = run.write(tmp_path / "run")
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opline.store.arrow import arrow_schema
from opline.store.schema import TABLES, TableSpec


@dataclass(frozen=True, slots=True)
class P:
    """One point of an op. ``stage`` names the interval that ends here (None: "from → to")."""

    point: str
    ts_ns: int
    tid: int = 100
    stage: str | None = None
    kind: str = "work"
    event: str | None = None
    late: bool = False
    aside: bool = False
    cpu: int = 0
    comm: str = "app"
    evidence: str = "thread"


@dataclass(frozen=True, slots=True)
class Rq:
    """One block request of an op: its steps' times, None where a step was not seen."""

    q: int | None = None
    g: int | None = None
    i: int | None = None
    d: int | None = None
    c: int | None = None
    dev: int = 7 << 20
    sector: int = 2048
    nr_sectors: int = 8
    kind: str = "write"
    tid: int = 100
    critical: bool = True
    by_thread: bool = True
    by_sector: bool = True


def _block_stage(a: str, b: str) -> tuple[str, str]:
    return f"{a}2{b}", "device" if (a, b) == ("D", "C") else "block"


@dataclass
class RunBuilder:
    """Collects rows; ``write`` makes the directory."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {t.name: [] for t in TABLES})
    manifest: dict[str, Any] = field(default_factory=lambda: {"core": {}})

    def op(
        self,
        points: list[P],
        requests: list[Rq] = [],  # noqa: B006 (never changed)
        *,
        op_class: str = "write",
        obj: str | None = "obj",
        complete: bool = True,
        reason: str | None = None,
        tainted: bool = False,
        unattributed_ns: int = 0,
        pid: int = 10,
        length_bytes: int | None = 4096,
        no_request: str | None = None,
    ) -> int:
        """Adds an op; its stages are the intervals between its critical points and block steps. Gives its op_id."""
        op_id = len(self.rows["ops"])
        inside = [p for p in points if not p.late]
        begin, end = inside[0], inside[-1]
        stages = self._stages(op_id, inside, requests) if complete else []
        taken = 0
        if unattributed_ns:  # the last stage gives it up
            stages[-1]["duration_ns"] -= unattributed_ns
            taken = unattributed_ns
        self.rows["stages"] += stages
        first = next((r for r in requests), None)
        self.rows["ops"].append(
            {
                "op_id": op_id, "class": op_class, "object": obj, "key": f"id={op_id}", "host": "host", "pid": pid,
                "comm": begin.comm, "begin_tid": begin.tid,
                "end_tid": end.tid if complete else None, "begin_ns": begin.ts_ns,
                "end_ns": end.ts_ns if complete else None,
                "latency_ns": end.ts_ns - begin.ts_ns if complete else None,
                "complete": complete, "reason": reason, "tainted": tainted, "offset_bytes": 0,
                "length_bytes": length_bytes, "transition_count": len(points),
                "late_count": sum(p.late for p in points), "request_count": len(requests),
                "dev": first.dev if first else None, "sector": first.sector if first else None,
                "no_request": no_request, "begin_cpu": begin.cpu,
                "unattributed_ns": taken if complete else None,
                "unknown_ns": sum(s["duration_ns"] for s in stages if s["kind"] == "unknown") if complete else None,
            }
        )  # fmt: skip
        for seq, p in enumerate(points):
            self.rows["transitions"].append(
                {
                    "op_id": op_id, "seq": seq, "ts_ns": p.ts_ns, "point": p.point,
                    "event": p.event or "app:" + p.point.split(".")[-1], "tid": p.tid, "pid": pid, "cpu": p.cpu,
                    "comm": p.comm, "evidence": "begin" if seq == 0 else p.evidence, "late": p.late, "aside": p.aside,
                    "batch_id": None, "child": None,
                }
            )  # fmt: skip
        return op_id

    def _stages(self, op_id: int, points: list[P], requests: list[Rq]) -> list[dict[str, Any]]:
        cuts: list[tuple[int, str, str | None, str, int | None, int | None]] = []  # ts, name, stage, kind, tid, request
        for p in points:
            if not p.aside:
                cuts.append((p.ts_ns, p.point, p.stage, p.kind, p.tid, None))
        for r in requests:
            request_id = len(self.rows["requests"]) + 1
            self._request(op_id, request_id, r)
            if r.critical:
                for letter, ts in zip("QGIDC", (r.q, r.g, r.i, r.d, r.c), strict=True):
                    if ts is not None:
                        cuts.append((ts, letter, None, "block", None if letter == "C" else r.tid, request_id))
        cuts.sort(key=lambda c: c[0])
        stages: list[dict[str, Any]] = []
        for before, after in pairwise(cuts):
            name, kind = after[2], after[3]
            if after[5] is not None and before[5] is not None:
                name, kind = _block_stage(before[1], after[1])
            elif after[5] is not None:
                name, kind = "submit", "work"
            elif before[5] is not None:
                name, kind = "reap", "wait"
            stages.append(
                {
                    "op_id": op_id, "seq": len(stages), "stage": name or f"{before[1]} → {after[1]}", "kind": kind,
                    "from_point": before[1], "to_point": after[1], "begin_ns": before[0],
                    "duration_ns": after[0] - before[0], "tid": after[4], "request_id": after[5] or before[5],
                    **dict.fromkeys(("states_tid", "on_cpu_ns", "runnable_ns", "blocked_io_ns", "blocked_ns")),
                    "woken_by_tid": None, "woken_by_comm": None,
                }
            )  # fmt: skip
        return stages

    def _request(self, op_id: int, request_id: int, r: Rq) -> None:
        done = r.c is not None
        self.rows["requests"].append(
            {
                "request_id": request_id, "dev": r.dev, "sector": r.sector, "nr_sectors": r.nr_sectors, "kind": r.kind,
                "rwbs": "WS" if r.kind == "write" else "R", "queue_ns": r.q, "getrq_ns": r.g, "insert_ns": r.i,
                "first_issue_ns": r.d, "issue_ns": r.d, "complete_ns": r.c,
                "q2c_ns": r.c - r.q if r.c is not None and r.q is not None else None,
                "d2c_ns": r.c - r.d if r.c is not None and r.d is not None else None,
                "queue_tid": r.tid, "queue_comm": "app", "issue_tid": r.tid, "issue_comm": "app", "queue_cpu": 0,
                "issue_cpu": 0, "complete_cpu": 1, "error": 0 if done else None, "bio_count": 1, "merge_count": 0,
                "requeue_count": 0, "in_flight": 0, "op_count": 1, "op_id": op_id, "ambiguous": False,
                "outcome": "completed" if done else "open",
            }
        )  # fmt: skip
        self.rows["bios"].append(
            {
                "bio_id": request_id, "request_id": request_id, "dev": r.dev, "sector": r.sector,
                "nr_sectors": r.nr_sectors, "kind": r.kind, "queue_ns": r.q, "tid": r.tid, "comm": "app",
                "parent_id": None, "split_from_id": None, "op_id": op_id,
                "op_by_thread": op_id if r.by_thread else None, "op_by_sector": op_id if r.by_sector else None,
                "sector_candidates": 1 if r.by_sector else 0, "batch_id": None,
            }
        )  # fmt: skip
        self.rows["links"].append(
            {
                "op_id": op_id, "bio_id": request_id, "request_id": request_id,
                "evidence": "+".join(["thread"] * r.by_thread + ["sector"] * r.by_sector), "shared": False,
                "ambiguous": False,
            }
        )  # fmt: skip

    def request(self, r: Rq, comm: str) -> int:
        """Adds a request of no op, queued by a thread of this name. Gives its request_id."""
        request_id = len(self.rows["requests"]) + 1
        self._request(-1, request_id, r)
        self.rows["links"].pop()
        self.rows["requests"][-1] |= {"op_id": None, "op_count": 0, "queue_comm": comm}
        self.rows["bios"][-1] |= {
            "op_id": None, "op_by_thread": None, "op_by_sector": None, "sector_candidates": 0, "comm": comm
        }  # fmt: skip
        return request_id

    def fate(self, event: str, fate: str, count: int) -> None:
        """One cell of the fates table."""
        self.rows["fates"].append({"event": event, "fate": fate, "count": count})

    def loss(self, name: str, severity: str, origin: str, count: int) -> None:
        """One entry of the ledger."""
        self.rows["losses"].append({"loss": name, "severity": severity, "origin": origin, "count": count})

    def write(self, path: Path) -> Path:
        """Writes the run directory and gives its path."""
        path.mkdir(parents=True, exist_ok=True)
        for spec in TABLES:
            pq.write_table(arrow_table(spec, self.rows[spec.name]), path / f"{spec.name}.parquet")
        (path / "manifest.json").write_text(json.dumps(self.manifest))
        return path


def small_run(path: Path) -> Path:
    """A run of three ops, each from `a` to `b`."""
    built = RunBuilder()
    for n in range(3):
        built.op([P("a", n * 10_000), P("b", n * 10_000 + 5000)])
    return built.write(path)


def arrow_table(spec: TableSpec, rows: list[dict[str, Any]]) -> pa.Table:
    """The rows as an Arrow table with exactly the schema's columns, in its order; what a row lacks is absent."""
    names = [c.name for c in spec.columns]
    for row in rows:
        assert set(row) <= set(names), f"{spec.name} has no {set(row) - set(names)}"
    schema = arrow_schema(spec)
    columns = []
    for column in schema:
        values = [row.get(column.name) for row in rows]
        if pa.types.is_dictionary(column.type):
            columns.append(pa.array(values, pa.string()).dictionary_encode().cast(column.type))
        else:
            columns.append(pa.array(values, column.type))
    return pa.table(columns, schema=schema)
