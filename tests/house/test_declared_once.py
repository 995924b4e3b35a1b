# SPDX-License-Identifier: MIT
"""What is declared once for all outputs: the attributes of ops and the steps of block requests. A new one is a line of
the declaration and its value in the core; code that is generated (cog) repeats it."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.lib.build_run import P, RunBuilder
from tests.lib.recorded import RunOf

import opline
from opline.store.schema import ATTRIBUTES, Attribute
from opline_analyses.cli import main
from opline_analyses.ops import transitions
from opline_analyses.view.kinds import FAST

ROOT = Path(__file__).resolve().parents[2]
CODE = ("correlator", "analyses", "tracepoints")


def written_by_hand(path: str) -> str:
    """A file without what cog generates."""
    text = (ROOT / path).read_text(errors="replace")
    return re.sub(r"\]\]\]$.*?\[\[\[end\]\]\]", "", text, flags=re.DOTALL | re.MULTILINE)


def files_with(pattern: str) -> set[str]:
    """The files of code in which something is written by hand."""
    found = subprocess.run(
        ["git", "grep", "-lE", pattern, "--", *CODE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {path for path in found.stdout.splitlines() if re.search(pattern, written_by_hand(path))}


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda a: a.column)
def test_an_attribute_of_ops_is_named_in_two_files(attribute: Attribute) -> None:
    assert files_with(rf"\b{attribute.column}\b") == {
        "correlator/opline/store/schema.py", "correlator/native/src/stages/op_attributes.cpp",
    }  # fmt: skip


def test_an_attribute_is_in_all_outputs(run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    run = run_of("demo-qd4")
    first = {row["op_id"]: row["cpu"] for row in run.rows("transitions") if row["seq"] == 0}
    assert len(set(first.values())) > 1
    assert {row["op_id"]: row["begin_cpu"] for row in run.rows("ops")} == first
    capfd.readouterr()
    assert main(["csv", str(run.path), "--all"]) == 0
    rows = csv.DictReader(io.StringIO(capfd.readouterr().out))
    assert {int(row["op_id"]): int(row["begin_cpu"]) for row in rows} == first
    assert main(["ops", str(run.path), "--json", "--limit", "50"]) == 0
    records = map(json.loads, capfd.readouterr().out.splitlines())
    assert all(record["begin_cpu"] == first[record["op_id"]] for record in records)
    with opline.open(run.path) as opened:
        assert set(opened.sql("SELECT op_id, begin_cpu FROM ops").rows()) == set(first.items())
    assert "CPU" in {kind.name for kind in FAST}


def test_an_attribute_with_words_is_in_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(transitions, "ATTRIBUTES", [Attribute("begin_cpu", "", "", "", text="on CPU {}")])
    built = RunBuilder()
    built.op([P("a", 0, cpu=3), P("b", 900)])
    assert main(["ops", str(built.write(tmp_path / "run"))]) == 0
    assert capfd.readouterr().out.splitlines()[0].endswith("4096 B at 0  on CPU 3")
