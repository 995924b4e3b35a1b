# SPDX-License-Identifier: MIT
"""Every ``tests/cases/ops/*.case``: a model, events, and what the core concluded from them.

``OPLINE_REGEN=1 pytest tests/core/test_cases.py`` rewrites the expectations; without it a mismatch leaves the actual
output beside the case as ``NAME.case.actual``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lib.core_driver import Driver, check_laws, run

STEPS = (("Q", "queue_ns"), ("G", "getrq_ns"), ("I", "insert_ns"), ("D", "issue_ns"), ("C", "complete_ns"))
STATES = (("on CPU", "on_cpu_ns"), ("runnable", "runnable_ns"), ("I/O", "blocked_io_ns"), ("blocked", "blocked_ns"))
CASES = sorted((Path(__file__).parents[1] / "cases" / "ops").glob("*.case"))


Row = dict[str, Any]


def header(op: Row) -> Iterator[str]:
    end = f"latency {op['latency_ns']} unattributed {op['unattributed_ns']} unknown {op['unknown_ns']}"
    yield (
        f"op {op['op_id']} {op['class'] or '-'} {op['object'] or '-'} {op['key'] or '-'} "
        + (end if op["complete"] else f"incomplete: {op['reason']}")
    )
    if op["tainted"]:
        yield "  tainted"
    if op["population"] is not None:
        yield f"  of the population: {op['program'] or '?'}" if op["population"] else "  of another program"
    if op["cgroup"] is not None:
        yield f"  in the cgroup {op['cgroup']}"


def transition(t: Row, op: Row) -> Iterator[str]:
    marks = "".join(f" {m}" for m in ("late", "aside") if t[m])
    marks += "".join(f" {m}={t[k]}" for m, k in (("batch", "batch_id"), ("child", "child")) if t[k] is not None)
    yield f"  {t['ts_ns'] - op['begin_ns']:>8} {t['point']} tid={t['tid']} {t['evidence']}{marks}"


def stage(s: Row, _: Row) -> Iterator[str]:
    yield f"  stage {s['stage']}: {s['duration_ns']} ({s['kind']}) {s['from_point']}..{s['to_point']}"
    if s["on_cpu_ns"] is not None:
        states = " ".join(f"{n} {s[k]}" for n, k in STATES if s[k])
        woken = "" if s["woken_by_tid"] is None else f" woken by {s['woken_by_comm']}:{s['woken_by_tid']}"
        yield f"    {s['states_tid']}: {states}{woken}"


def wait(w: Row, op: Row) -> Iterator[str]:
    about = [f"request {w['request_id']}" if w["request_id"] is not None else w["reason"], w["comm"] or w["tid"]]
    about += [f"by {w['path']}" if w["path"] else None, f"while {w['instead_comm']}" if w["instead_tid"] else None]
    said = " ".join(str(word) for word in about if word is not None)
    at, sure = w["begin_ns"] - op["begin_ns"], "" if w["certain"] else " inferred"
    yield f"  waits {at:>6} {w['duration_ns']} in stage {w['seq']}: {w['kind']} {said}{sure}"


def doubts(link: Row) -> str:
    low = link["confidence"] == "low" and not link["ambiguous"]
    return "".join(f" {word}" for word in ("shared", "ambiguous") if link[word]) + (" low" if low else "")


def link_of(link: Row, _: Row) -> Iterator[str]:
    part = f" {link['bytes']} B" if link["shared"] and link["bytes"] is not None else ""
    yield f"  bio {link['bio_id']} request {link['request_id']} by {link['evidence']}{doubts(link)}{part}"


def later(d: Row, _: Row) -> Iterator[str]:
    done = "" if d["complete_ns"] is None else f" done {d['complete_ns']}"
    yield (
        f"  later: bio {d['bio_id']} request {d['request_id']} {d['file']} {d['bytes']} B "
        f"written {d['written_ns']} queued {d['queue_ns']}{done}{doubts(d)}"
    )


PARTS = (("transitions", transition), ("stages", stage), ("waits", wait), ("links", link_of), ("deferred", later))


def describe(driver: Driver) -> str:
    """The conclusions as text: ops with their points, stages and links, devices, then fates and losses."""
    tables = driver.tables()
    out: list[str] = []
    for op in sorted(tables.get("ops", []), key=lambda r: r["op_id"]):
        out.extend(header(op))
        for table, line in PARTS:
            for row in tables.get(table, []):
                if row["op_id"] == op["op_id"]:
                    out.extend(line(row, op))
        if op["no_request"] not in (None, "no_block_events"):
            out.append(f"  no request: {op['no_request']}")
    for b in tables.get("batches", []):
        out.append(
            f"batch {b['batch_id']} {b['space']} {b['begin_ns']}..{b['end_ns']} members {b['member_count']} "
            f"requests {b['request_count']}"
        )
    for r in tables.get("requests", []):
        steps = " ".join(f"{letter}={r[k]}" for letter, k in STEPS if r[k] is not None)
        out.append(
            f"request {r['request_id']} {r['rwbs']} {r['sector']}+{r['nr_sectors']} {steps} "
            f"op={r['op_id']} {r['outcome']}{' of another program' if r['population'] is False else ''}"
            f"{'' if r['cgroup'] is None else ' cgroup=' + r['cgroup']}"
        )
    for dev, name in sorted(driver.summary().get("devices", {}).items()):
        out.append(f"device {int(dev) >> 20}:{int(dev) & 0xFFFFF} {name}")
    if found := driver.summary().get("population"):
        others = [f"{o['comm']}:{o['pid']} ops={o['ops']} bios={o['bios']}" for o in found["others"]]
        counts = " ".join(f"{k}={v}" for k, v in found.items() if isinstance(v, int))
        out.append(f"population {counts} programs={','.join(found['programs'])} others={', '.join(sorted(others))}")
    fates: dict[str, int] = {}
    for row in tables.get("fates", []):
        fates[row["fate"]] = fates.get(row["fate"], 0) + row["count"]
    out.append("fates " + " ".join(f"{k}={v}" for k, v in sorted(fates.items())))
    losses = {k: v for k, v in driver.summary()["losses"].items() if v}
    out.append("losses " + (" ".join(f"{k}={v}" for k, v in sorted(losses.items())) or "none"))
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_case(path: Path) -> None:
    title, model, events, expected = path.read_text().split("---\n")
    lines = [line for line in events.splitlines() if line.strip() and not line.startswith("#")]
    driver = run(model, lines)
    check_laws(driver, sum(line[0].isdigit() for line in lines))
    actual = describe(driver)
    if os.environ.get("OPLINE_REGEN"):
        path.write_text("---\n".join((title, model, events, actual)))
    elif actual != expected:
        Path(f"{path}.actual").write_text(actual)
    assert actual == expected or os.environ.get("OPLINE_REGEN")
