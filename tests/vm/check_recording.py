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

OUT = Path(os.environ["OPLINE_VM_OUT"])
OPS = {"private": 211, "system": 23}


def manifest(name: str) -> dict[str, Any]:
    document = json.loads((OUT / name / "recording.json").read_text())
    assert isinstance(document, dict)
    return document


def test_doctor_finds_the_kernel_domain() -> None:
    document = json.loads((OUT / "doctor.json").read_text())
    assert document["block_source"] == "kernel"


@pytest.mark.parametrize("name", OPS)
def test_one_session_has_both_domains(name: str) -> None:
    assert (OUT / f"{name}.status").read_text() == "0\n", (OUT / f"{name}.stderr").read_text()
    document = manifest(name)
    assert document["block_source"] == "kernel" and document["sessiond"] == name and document["state"] == "complete"
    app, kernel = document["channels"]
    assert (app["domain"], kernel["domain"]) == ("ust", "kernel")
    assert app["event_count"] > 14 * OPS[name] and kernel["event_count"] > 4 * OPS[name]
    assert app["discarded_count"] == kernel["discarded_count"] == 0
    assert "vdb" in {device["name"] for device in document["devices"]}


def test_nothing_is_left_in_the_guest() -> None:
    assert (OUT / "private.left").read_text() == ""
    assert "opline-" not in (OUT / "system.sessions").read_text()


def ask(name: str, query: str) -> list[int]:
    """The one row that DuckDB answers."""
    program = Path(sys.executable).with_name("opline")
    argv = [str(program), "sql", str(OUT / name), query, "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    return list(row.values())


@pytest.mark.parametrize("name", OPS)
def test_every_op_is_complete_linked_and_partitioned(name: str) -> None:
    exact = "latency_ns = unattributed_ns + (select sum(duration_ns) from stages s where s.op_id = o.op_id)"
    counts = ["count(*)", *(f"count(*) filter ({what})" for what in ("complete", "request_count = 1", exact))]
    assert ask(name, f"select {', '.join(counts)} from ops o") == [OPS[name]] * 4


@pytest.mark.parametrize("name", OPS)
def test_every_request_of_an_op_has_its_steps(name: str) -> None:
    steps = "count(*), count(queue_ns), count(issue_ns), count(complete_ns)"
    assert ask(name, f"select {steps} from requests where op_count > 0") == [OPS[name]] * 4
