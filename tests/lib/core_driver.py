# SPDX-License-Identifier: MIT
"""Drives the native core without a trace: takes a model and events in a readable form, gives its tables as rows.

An event is one line: ``TIME EVENT key=value ...``. ``tid pid ns cpu comm host stream`` are the context (``stream``
tells several of one host and domain apart), the rest is payload; a number is an integer (``0x`` too), ``1.5`` a float,
everything else a text. An event name without a colon is the kernel domain's; system calls from BPF (``syscall:``) and
what it says of threads (``sched:process_thread``) have all in their payload, and so have events that a shim's collector
passes on (opline.applications.table), by the contexts' names. ``:tid`` is a field of the payload.
"""

from __future__ import annotations

import array
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from opline._core import Core
from opline.applications import table
from opline.model import check_text

CONTEXT = {"tid": ("vtid", "tid"), "pid": ("vpid", "pid"), "comm": ("procname", "procname"), "ns": ("pid_ns",) * 2}
BY = {"by": "tid", "by_comm": "comm"}
MOST_STATE_PARTS = 64  # of a stage: kMostParts of sched/sched.cpp
WIDTH = {"i64": "q", "u64": "Q", "i32": "i", "u32": "I", "dict": "I"}


@dataclass
class Line:
    """One event, parsed."""

    ts_ns: int
    name: str
    context: dict[str, Any] = field(default_factory=dict)
    payload: dict[str, Any] = field(default_factory=dict)


NUMBER, DECIMAL = re.compile(r"-?\d+|0x[0-9a-fA-F]+"), re.compile(r"-?\d+\.\d+(e\d+)?")


def value_of(text: str) -> int | float | str:
    """A number where it looks like one, else the text."""
    if NUMBER.fullmatch(text):
        return int(text, 0)
    if DECIMAL.fullmatch(text):
        return float(text)
    return text


@cache
def relayed() -> frozenset[str]:
    """Providers of events that a shim's collector passes on. The table looks into folders for them."""
    return frozenset(table.relayed())


@cache
def places_of(name: str, key: str) -> tuple[tuple[bool, str], ...]:
    """Where a value of an event belongs: whether to the context, and the name there."""
    if name.startswith("sched_"):  # `tid` is the woken thread, `by` and `by_comm` the context
        return ((key in (*BY, "cpu", "host", "pid"), BY.get(key, key)),)
    if name.partition(":")[0] in relayed() and key in (*CONTEXT, "cpu"):
        return ((False, CONTEXT[key][0] if key in CONTEXT else key),)
    from_bpf = name.startswith(("syscall:", "sched:process_")) and key != "host"
    place = key in (*CONTEXT, "cpu", "host", "stream") and not from_bpf, key.removeprefix(":")
    in_both = key in ("tid", "comm") and ":" not in name and name.startswith("block_")
    return (place, (False, key)) if in_both else (place,)


def parse_line(text: str) -> Line:
    """Raises ValueError for a line that is no event."""
    ts, name, *pairs = text.split()
    line = Line(int(ts), name)
    for pair in pairs:
        key, _, raw = pair.partition("=")
        value = value_of(raw)
        for in_context, field_name in places_of(name, key):
            (line.context if in_context else line.payload)[field_name] = value
    return line


def plan_of(
    model_toml: str,
    match: str = "pointer",
    files: list[dict[str, Any]] | None = None,
    gaps: list[dict[str, Any]] | None = None,
    population: list[int] | None = None,
    commands: list[int] | None = None,
) -> str:
    """The plan of a model's text, with maps of files; fails on any error in the model."""
    model, problems = check_text(model_toml, "case", "case.toml")
    errors = [p for p in problems if p.severity == "error"]
    assert not errors, errors
    return model.plan_json(match, files or [], gaps or [], population or [], commands=commands or [])


def map_of(text: str) -> dict[str, Any]:
    """A file's map from a line ``map PATH [disk=8:0] [inode=18] [start=2048] [changed] LOGICAL:PHYSICAL:SECTORS ...``;
    the inode is of the disk's file system.
    """
    _, path, *words = text.split()
    options = dict(word.split("=") for word in words if "=" in word)
    major, minor = map(int, options["disk"].split(":")) if "disk" in options else (0, 0)
    inode = {"inode": int(options["inode"]), "dev": major << 20 | minor} if "inode" in options else {}
    return {
        "path": path,
        "disk": (major << 20 | minor) if "disk" in options else None,
        "start_sector": int(options.get("start", 0)),
        "changed": "changed" in words,
        **inode,
        "extents": [list(map(int, word.split(":"))) for word in words if re.fullmatch(r"\d+:\d+:\d+", word)],
    }


def gap_of(text: str) -> dict[str, Any]:
    """What a recorder knew to be missing, from a line ``gap BEGIN END WHY``; ``-`` for a time that is open."""
    _, begin, end, why = text.split(maxsplit=3)
    return {"why": why, **{k: None if t == "-" else int(t) for k, t in (("begin_ns", begin), ("end_ns", end))}}


class Driver:
    """A core that takes Lines. ``tables()`` after ``finish()`` gives {table: [row as dict]}."""

    def __init__(self, plan_json: str) -> None:
        self.core = Core(plan_json)
        self._classes: dict[
            tuple[str, tuple[str, ...], tuple[str, ...]], tuple[int, list[int], list[tuple[str, bool]]]
        ] = {}
        self._streams: dict[tuple[str, bool, int], int] = {}
        self._strings: list[str] = []
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def stream(self, host: str, kernel: bool, number: int = 0) -> int:
        """The core's number of a stream; ``number`` tells several of one host and domain apart."""
        if (host, kernel, number) not in self._streams:
            self._streams[host, kernel, number] = self.core.add_stream(host, kernel, "ch", len(self._streams))
        return self._streams[host, kernel, number]

    def push(self, line: Line) -> None:
        kernel = ":" not in line.name
        key = (line.name, tuple(sorted(line.context)), tuple(sorted(line.payload)))
        if key not in self._classes:
            fields = [(name, False) for name in sorted(line.payload)]
            fields += [(CONTEXT[name][kernel], True) for name in sorted(line.context) if name in CONTEXT]
            number, wanted, _ = self.core.add_class(line.name, kernel, fields)
            self._classes[key] = (number, wanted, fields)
        number, wanted, fields = self._classes[key]
        values = {(name, False): v for name, v in line.payload.items()}
        values |= {(CONTEXT[name][kernel], True): v for name, v in line.context.items() if name in CONTEXT}
        stream = self.stream(str(line.context.get("host", "host")), kernel, line.context.get("stream", 0))
        self.core.event(line.ts_ns, number, stream, line.context.get("cpu"), tuple(values[fields[i]] for i in wanted))

    def finish(self) -> None:
        self.core.finish()
        self.drain()

    def drain(self) -> None:
        self._strings += self.core.take_new_strings()
        for name, rows, columns in self.core.take():
            decoded = {c[0]: self._column(rows, *c) for c in columns}
            self._rows.setdefault(name, []).extend(
                dict(zip(decoded, r, strict=True)) for r in zip(*decoded.values(), strict=True)
            )

    def _column(
        self, rows: int, _: str, kind: str, __: int, validity: bytes, data: bytes, offsets: bytes | None
    ) -> list[Any]:
        values: list[Any]
        if kind == "text":
            at = array.array("i", offsets or b"")
            values = [data[at[i] : at[i + 1]].decode() for i in range(rows)]
        elif kind == "bool":
            values = [bool(data[i // 8] >> (i % 8) & 1) for i in range(rows)]
        else:
            values = list(array.array(WIDTH[kind], data))
            if kind == "dict":
                values = [self._strings[v] for v in values]
        if not validity:
            return values
        return [v if validity[i // 8] >> (i % 8) & 1 else None for i, v in enumerate(values)]

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        return self._rows

    def summary(self) -> dict[str, Any]:
        return dict(json.loads(self.core.summary()))


def run(model_toml: str, lines: list[str], match: str = "pointer") -> Driver:
    """Push all lines (in their order), finish, drain. Besides events there are maps of files (``map_of``), what a
    recorder knew to be missing (``gap_of``), the processes that it recorded (``population PID ...``) and forked
    (``commands PID ...``), and intervals of a kernel stream with discarded events: ``lost BEGIN END COUNT``.
    """
    maps = [map_of(text) for text in lines if text.startswith("map ")]
    gaps = [gap_of(text) for text in lines if text.startswith("gap ")]
    roots, forked = (
        [int(word) for text in lines if text.startswith(f"{what} ") for word in text.split()[1:]]
        for what in ("population", "commands")
    )
    driver = Driver(plan_of(model_toml, match, maps, gaps, roots, forked))
    for text in lines:
        if text.startswith("lost "):
            begin_ns, end_ns, count = map(int, text.split()[1:])
            driver.core.discarded(driver.stream("host", True), begin_ns, end_ns, count, False)
        elif not text.startswith(("map ", "gap ", "population ", "commands ")):
            driver.push(parse_line(text))
    driver.finish()
    return driver


def check_state_parts(stage: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    """The rows of the table states of one stage fill it from its begin to its end, and sum to its columns; none only
    where nothing is known, or where there would be too many.
    """
    sums = dict.fromkeys(("on_cpu", "runnable", "blocked_io", "blocked"), 0)
    at_ns = stage["begin_ns"]
    for part in parts:
        assert part["tid"] == stage["states_tid"] and part["begin_ns"] == at_ns and part["duration_ns"] > 0
        sums[part["state"]] += part["duration_ns"]
        at_ns += part["duration_ns"]
    if parts:
        assert len(parts) <= MOST_STATE_PARTS and at_ns == stage["begin_ns"] + stage["duration_ns"]
        assert all(stage[f"{state}_ns"] == ns for state, ns in sums.items())
    elif stage["states_tid"] is not None and stage["duration_ns"]:
        assert sum(stage[f"{state}_ns"] > 0 for state in sums) > 1


def check_waits(tables: dict[str, list[dict[str, Any]]]) -> None:
    """The rows of the table waits of one stage sum to the time in which its thread did not run."""
    waits: dict[tuple[int, int], int] = {}
    for row in tables.get("waits", []):
        assert row["duration_ns"] > 0 and row["part_count"] > 0
        assert (row["reason"] is not None) == (row["kind"] == "unknown")
        assert (row["path"] is not None) == (row["depth"] > 0)
        stage = row["op_id"], row["seq"]
        waits[stage] = waits.get(stage, 0) + row["duration_ns"]
    for row in tables.get("stages", []):
        waited = 0 if row["on_cpu_ns"] is None else row["duration_ns"] - row["on_cpu_ns"]
        assert waits.pop((row["op_id"], row["seq"]), 0) == waited
    assert not waits


def check_laws(driver: Driver, pushed: int) -> None:
    """What holds for every input: the partition law for every op, one fate for every event."""
    tables = driver.tables()
    check_waits(tables)
    sums: dict[int, int] = {}
    parts: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for part in tables.get("states", []):
        parts.setdefault((part["op_id"], part["seq"]), []).append(part)
    for row in tables.get("stages", []):
        assert row["duration_ns"] >= 0
        check_state_parts(row, parts.pop((row["op_id"], row["seq"]), []))
        states = [row[f"{state}_ns"] for state in ("on_cpu", "runnable", "blocked_io", "blocked")]
        if row["on_cpu_ns"] is None:
            assert states == [None] * 4
        else:
            assert min(states) >= 0
            assert sum(states) == row["duration_ns"]
        sums[row["op_id"]] = sums.get(row["op_id"], 0) + row["duration_ns"]
    assert not parts
    for op in tables.get("ops", []):
        if op["complete"]:
            assert (
                sums.get(op["op_id"], 0) + op["unattributed_ns"] == op["end_ns"] - op["begin_ns"] == op["latency_ns"]
            ), op
        else:
            assert op["op_id"] not in sums
    assert sum(row["count"] for row in tables.get("fates", [])) == pushed
    assert driver.summary()["losses"]["partition_violations"] == 0
    # a batch's members are counted twice: by the batch when it closes, by each op when it settles
    batches = [b for b in tables.get("batches", []) if b["space"] != "sync"]
    if not driver.summary()["losses"]["evicted_ops"]:
        joined = [(m["batch_id"], m["op_id"]) for m in tables.get("members", [])]
        by_batch = Counter({b["batch_id"]: b["member_count"] for b in batches if b["member_count"]})
        by_op = Counter({op["op_id"]: op["batch_count"] for op in tables.get("ops", []) if op["batch_count"]})
        assert (Counter(b for b, _ in joined), Counter(o for _, o in joined)) == (by_batch, by_op)
