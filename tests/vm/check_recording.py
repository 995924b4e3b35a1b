# SPDX-License-Identifier: MIT
"""Checks of what tests/vm/run recorded in the guest: kernel domain and application in one session.

Not collected by itself: ``OPLINE_VM_OUT`` says where the recordings are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.truth_demo import check

OUT = Path(os.environ["OPLINE_VM_OUT"])
OPS = {"private": 211, "system": 23}  # recordings, each named after its session daemon, and how many ops it has


def manifest(name: str) -> dict[str, Any]:
    document = json.loads((OUT / name / "recording.json").read_text())
    assert isinstance(document, dict)
    return document


def opline(*arguments: str | Path) -> str:
    """What the program prints."""
    program = Path(sys.executable).with_name("opline")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(name: str, **queries: str) -> dict[str, int]:
    """What DuckDB answers to each query: one number."""
    query = ", ".join(f"({text}) as {what}" for what, text in queries.items())
    (row,) = json.loads(opline("sql", OUT / name, f"select {query}", "--json"))
    assert isinstance(row, dict)
    return row


def test_doctor_finds_the_kernel_domain() -> None:
    document = json.loads((OUT / "doctor.json").read_text())
    assert document["block_source"] == "kernel"


@pytest.mark.parametrize("name", OPS)
def test_one_session_has_both_domains(name: str) -> None:
    assert (OUT / f"{name}.status").read_text() == "0\n", (OUT / f"{name}.stderr").read_text()
    document = manifest(name)
    assert (document["block_source"], document["sessiond"], document["state"]) == ("kernel", name, "complete")
    assert document["notes"] == []
    app, kernel = document["channels"]
    assert (app["domain"], kernel["domain"]) == ("ust", "kernel")
    assert app["event_count"] >= 21 * OPS[name]
    assert kernel["event_count"] > 6 * OPS[name]  # Q G D C, pwrite64's entry and exit
    assert app["discarded_count"] == kernel["discarded_count"] == 0
    assert "vdb" in {device["name"] for device in document["devices"]}


def test_nothing_is_left_in_the_guest() -> None:
    assert (OUT / "private.left").read_text() == ""
    assert "opline-" not in (OUT / "system.sessions").read_text()


@pytest.mark.parametrize("name", OPS)
def test_every_op_is_complete_and_partitioned(name: str) -> None:
    stages = "(select sum(duration_ns) from stages where stages.op_id = ops.op_id)"
    assert ask(
        name,
        ops="select count(*) from ops",
        complete="select count(*) from ops where complete and not tainted",
        partitioned=f"select count(*) from ops where latency_ns = unattributed_ns + {stages}",
    ) == dict.fromkeys(("ops", "complete", "partitioned"), OPS[name])


@pytest.mark.parametrize("name", OPS)
def test_every_op_has_one_request_by_thread_and_by_sector(name: str) -> None:
    assert ask(
        name,
        one_request="select count(*) from ops where request_count = 1",
        links="select count(*) from links where evidence = 'thread+sector' and not shared and not ambiguous",
        both_rules="select count(*) from bios where op_by_thread = op_by_sector",
        other_op="select count(*) from bios where op_by_thread <> op_by_sector",
        q_to_c="""select count(*) from requests where op_count = 1 and outcome = 'completed' and
            queue_ns <= getrq_ns and getrq_ns <= issue_ns and issue_ns <= complete_ns""",
        within_the_op="""select count(*) from ops join requests using (op_id) where
            queue_ns between begin_ns and end_ns and complete_ns between begin_ns and end_ns""",
    ) == dict.fromkeys(("one_request", "links", "both_rules", "q_to_c", "within_the_op"), OPS[name]) | {"other_op": 0}


@pytest.mark.parametrize("name", OPS)
def test_every_event_has_a_fate_and_nothing_is_lost(name: str) -> None:
    recorded = sum(channel["event_count"] for channel in manifest(name)["channels"])
    counts = ask(
        name,
        fates="select sum(count) from fates",
        orphans="select count(*) from fates where fate like 'orphan:%'",
        losses="select count(*) from losses where loss <> 'late_transitions'",  # a sendmsg that returns late is none
    )
    assert counts == {"fates": recorded, "orphans": 0, "losses": 0}


@pytest.mark.parametrize("name", OPS)
def test_every_transition_is_the_hidden_ops(name: str) -> None:
    verdict = check(OUT / name, OUT / name / "client-log.csv", OUT / name / "client-points.csv")
    # Times are not to be had: every thread of the guest waits for the emulator now and then.
    exact = {"ops", "join", "transitions", "stitching", "agreement"}
    assert exact <= {finding.name for finding in verdict.findings if finding.holds}, str(verdict)


@pytest.mark.parametrize("name", OPS)
def test_the_tracers_own_system_calls_are_left_out(name: str) -> None:
    """The consumer daemon writes each page of the application's buffers once: more than everything else together."""
    text = subprocess.run(
        ["babeltrace2", OUT / name / "trace"], capture_output=True, text=True, check=True, timeout=120
    )
    callers = [line for line in text.stdout.splitlines() if "syscall_entry_" in line]
    assert callers and not [line for line in callers if 'procname = "lttng-' in line]


@pytest.mark.parametrize("name", OPS)
def test_the_state_dump_names_the_disk(name: str) -> None:
    assert " vdb " in opline("ops", OUT / name, "--limit", "1")
