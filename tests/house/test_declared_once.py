# SPDX-License-Identifier: MIT
"""What is declared once for all outputs: the attributes of ops and the steps of block requests. A new one is a line of
the declaration and its value in the core; code that is generated (cog) repeats it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.build_run import P, RunBuilder
from tests.lib.recorded import RunOf

import opline
from opline.steps import STEPS
from opline.store.schema import ATTRIBUTES, Attribute
from opline_analyses.cli import main
from opline_analyses.ops import transitions
from opline_analyses.ops.oplist import Request
from opline_analyses.view.kinds import FAST

ROOT = Path(__file__).resolve().parents[2]
#: Beside the declaration Python has the step's time as a typed field of a request, at any place among the fields.
A_FIELD = "    error: int | None\n    shared: bool"
SIXTH = ((A_FIELD, f"    reach_ns: int | None\n{A_FIELD}"),)
OF_SIXTH = """
import json, sys
from pathlib import Path
from tests.lib.build_run import P, Rq, RunBuilder
import opline
from opline_analyses.api.files import part
built = RunBuilder()
built.op([P("a", 1_000_000), P("b", 1_010_000)], [Rq(1_001_000, 1_002_000, None, 1_004_000, 1_008_000)])
built.rows["requests"][0]["reach_ns"] = 1_006_000
with opline.open(built.write(Path(sys.argv[1]))) as run:
    listed = run.op_list(unfold=True)
    (record,) = listed.records()
    head = part(run._run).page.head
    found = {"text": listed.text(), "sql": run.sql("SELECT reach_ns FROM requests").rows(),
             "requests": record["requests"], "steps": head["steps"], "colours": head["block_colours"]}
print(json.dumps(found))
"""
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


def test_the_list_of_steps_is_written_once() -> None:
    assert files_with("(?i)[\"'`]qgidc") == set()
    assert {step.column for step in STEPS} <= set(Request._fields)


def test_a_sixth_step_is_in_text_csv_json_sql_and_page(tmp_path: Path) -> None:
    """In a copy of opline that declares a step more, a table with its column is shown everywhere."""
    packages = tmp_path / "packages"
    for name, folder in (("opline", "correlator"), ("opline_analyses", "analyses")):
        ignored = shutil.ignore_patterns("__pycache__", "_bridge.so")
        shutil.copytree(ROOT / folder / name, packages / name, ignore=ignored)
    declared = packages / "opline" / "steps.py"
    one_more = '    Step("R", "reach_ns", "", "reached the driver", "R: reached the driver.", True),\n    Step("C", '
    declared.write_text(declared.read_text().replace('    Step("C", ', one_more))
    oplist = packages / "opline_analyses" / "ops" / "oplist.py"
    text = oplist.read_text()
    for before, after in SIXTH:
        assert before in text
        text = text.replace(before, after, 1)
    oplist.write_text(text)
    shutil.copytree(ROOT / "tests" / "lib", packages / "tests" / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "tests" / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-c", OF_SIXTH, str(tmp_path / "run")], cwd=packages, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(packages)}, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert re.search(r"^ +6\.000 .*\bR\b", found["text"], re.MULTILINE), found["text"]
    assert found["sql"] == [[1_006_000]]
    assert found["requests"][0]["reach_ns"] == 1_006_000
    assert found["steps"] == "qgidrc" and "D2R" in found["colours"]
