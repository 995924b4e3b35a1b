# SPDX-License-Identifier: MIT
"""What commands load: packages that take long to import are loaded by what needs them, and pandas by `df()` alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.lib.recorded import RunOf

COMMANDS = (
    ("stages",), ("stages", "--class", "write"), ("why",), ("why", "--json"), ("coverage",), ("ops", "--slowest", "2"),
    ("csv", "--class", "write"), ("requests",), ("hist", "--per", "device"), ("iostat", "-x"), ("heatmap",),
    ("outliers",), ("btt",), ("burst",), ("log",), ("losses",), ("interference", "--slowest", "2"),
    ("sql", "SELECT count(*) FROM ops"), ("report", "-o", "report.html"),
)  # fmt: skip
HEAVY = ("pandas", "networkx", "matplotlib")
CODE = """
import json, sys
from opline_analyses.cli import main
found = {}
for name, *options in json.loads(sys.argv[2]):
    assert main([name, sys.argv[1], *options]) == 0, name
    found[" ".join([name, *options])] = [heavy for heavy in json.loads(sys.argv[3]) if heavy in sys.modules]
print(json.dumps(found), file=sys.stderr)
"""


def test_no_command_loads_what_it_does_not_use(run_of: RunOf, tmp_path: Path) -> None:
    asked = [sys.executable, "-c", CODE, str(run_of("demo-qd4").path), json.dumps(COMMANDS), json.dumps(HEAVY)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=tmp_path)
    found = json.loads(done.stderr.splitlines()[-1])
    assert len(found) == len(COMMANDS)
    assert {name: heavy for name, heavy in found.items() if heavy} == {}


@pytest.mark.parametrize(
    ("package", "extra", "words"),
    [("networkx", "graph", ("graph",)), ("matplotlib", "plot", ("plot", "-o", "plot.svg"))],
)
def test_a_missing_extra_is_one_line_and_the_rest_works(
    run_of: RunOf, tmp_path: Path, package: str, extra: str, words: tuple[str, ...]
) -> None:
    without = f"""
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from opline_analyses.cli import main
sys.exit(main(sys.argv[1:]))
"""

    def run(name: str, *options: str) -> Any:
        asked = [sys.executable, "-c", without, name, str(run_of("demo-qd4").path), *options]
        return subprocess.run(asked, capture_output=True, text=True, check=False, cwd=tmp_path)

    done = run(*words)
    assert done.returncode == 1
    assert done.stderr == f"opline: this needs the Python package {package}: pip install 'opline[{extra}]'\n"
    assert done.stdout == "" and list(tmp_path.iterdir()) == []
    assert run("stages").returncode == 0
