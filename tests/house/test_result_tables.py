# SPDX-License-Identifier: MIT
"""Results are written in one way: base/result_table.py makes CSV, JSON and aligned lines of all that commands print."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "analyses" / "opline_analyses"
#: Writers of CSV: the table, and what changes cells of written CSV for spreadsheets.
CSV = {"base/result_table.py", "base/safe_cells.py"}
#: JSON that is no result: other tools' formats, the page's data, files that opline reads again, quoted texts.
JSON = {
    "api/recording.py", "base/result_table.py", "commands/events.py", "compare/figures.py", "engine/interface.py",
    "engine/task.py", "hosts/agent.py", "hosts/remote.py", "infer/events.py", "infer/fields.py", "infer/probed.py",
    "infer/text.py", "report/document.py", "view/pages.py",
}  # fmt: skip
#: Aligned lines that are no table: what stands in a widget or a list of steps, and the layouts of other tools.
LAYOUTS = {
    "block/io_log.py", "block/iostat.py", "block/outliers.py", "commands/bitesize.py", "counts/screen.py",
    "intervals/hist.py", "ops/transitions.py",
}  # fmt: skip


MADE_BY = ("Column", "text", "label", "time", "share")


def calls() -> Iterator[tuple[str, str]]:
    """Of each file the functions that are called, as `module.name` or `name`."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield str(path.relative_to(ROOT)), ast.unparse(node.func)


def test_one_file_writes_csv() -> None:
    assert {file for file, name in calls() if name in ("csv.writer", "csv.DictWriter")} == CSV


def test_one_file_writes_json_of_results() -> None:
    found = {file for file, name in calls() if name in ("json.dumps", "json.dump")}
    assert {file for file in found if not file.startswith("export/")} == JSON


def test_one_file_aligns_tables() -> None:
    found = {file for file, name in calls() if name.endswith((".ljust", ".rjust"))}
    assert found - LAYOUTS == {"base/result_table.py"}, found


def test_names_of_columns_are_identifiers() -> None:
    """Every `Column`, `text`, `label`, `time` and `share` that is made with a name as it stands."""
    names = []
    for path in sorted(ROOT.rglob("*.py")):
        if "result_table" not in path.read_text():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in MADE_BY:
                continue
            if node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value:
                names.append(node.args[0].value)
    assert len(names) > 100
    assert [name for name in names if not str(name).isidentifier()] == []
