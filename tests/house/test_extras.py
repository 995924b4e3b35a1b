# SPDX-License-Identifier: MIT
"""Which files import packages of extras: no other needs more than DuckDB and numpy."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from opline_analyses.base.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
#: Of each package, who imports it, but for type checkers.
IMPORTED = {
    "pyarrow": {"base/extras.py", "export/arrow.py", "store/arrow.py"},
    "matplotlib": {
        "compare/plot.py", "hosts/plot.py", "pictures/plot.py", "pictures/plot_op.py", "pictures/plot_runs.py",
    },
    "networkx": {"ops/graph.py"},
}  # fmt: skip


def imported() -> dict[str, set[str]]:
    found = defaultdict(set)
    for package in (ROOT / "correlator" / "opline", ROOT / "analyses" / "opline_analyses"):
        for path in package.rglob("*.py"):
            tree = ast.parse(path.read_text())
            typed = {
                inside
                for node in ast.walk(tree)
                if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
                for inside in ast.walk(node)
            }
            for node in ast.walk(tree):
                if node in typed or not isinstance(node, ast.Import | ast.ImportFrom):
                    continue
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                for name in names:
                    found[name.partition(".")[0]].add(str(path.relative_to(package)))
    return found


def test_packages_of_extras_are_imported_where_they_are_the_product() -> None:
    found = imported()
    assert {name: found[name] for name in IMPORTED} == IMPORTED
    assert IMPORTED.keys() <= EXTRAS.keys()
