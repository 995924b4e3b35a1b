# SPDX-License-Identifier: MIT
"""What commands load: packages that take long to import are loaded by what needs them, and pandas by `df()` alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.lib.recorded import RunOf

HEAVY = ("duckdb", "numpy", "pyarrow", "matplotlib", "networkx", "pandas", "tomllib")
SQL = {"duckdb"}
ARRAYS = SQL | {"numpy"}
#: Of a run: the heavy modules that each command loads, all of them and no other.
LOADED: dict[tuple[str, ...], set[str]] = {
    ("losses",): set(),
    ("pack", "-o", "run.opline"): set(),
    ("what",): SQL,
    ("ops", "--slowest", "2"): SQL,
    ("btt",): SQL,
    ("sql", "SELECT count(*) FROM ops"): SQL,
    ("export", "--to", "perfetto", "-o", "trace"): ARRAYS,
    ("log",): ARRAYS,
    ("coverage",): ARRAYS,
    ("why", "--json"): ARRAYS,
    ("hist", "--per", "device"): ARRAYS,
    ("heatmap",): ARRAYS,
    ("stages", "--class", "write"): ARRAYS,
    ("csv", "--class", "write"): ARRAYS,
    ("report", "-o", "report.html"): ARRAYS | {"tomllib"},
}
#: Of a trace that no run is made of.
BARE: dict[tuple[str, ...], set[str]] = {("stages",): {"tomllib"}}
CODE = """
import json, os, sys
from opline_analyses.cli import main
given, commands, heavy = map(json.loads, sys.argv[1:])
for name, *options in commands:
    if (child := os.fork()) == 0:
        status = main([name, given, *options])
        print(json.dumps([status, [one for one in heavy if one in sys.modules]]), file=sys.stderr, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def loaded(
    given: Path, commands: Iterable[tuple[str, ...]], folder: Path
) -> dict[tuple[str, ...], tuple[int, set[str]]]:
    """Exit status and heavy modules of each command, each in a process that has loaded none before: a fork of one that
    has loaded the command line alone.
    """
    asked = [sys.executable, "-c", CODE, json.dumps(str(given)), json.dumps([*commands]), json.dumps(HEAVY)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=folder)
    found = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    return {command: (status, set(modules)) for command, (status, modules) in zip(commands, found, strict=True)}


def test_a_command_loads_what_it_needs(run_of: RunOf, trace: Callable[[str], Path], tmp_path: Path) -> None:
    assert loaded(run_of("demo-qd4").path, LOADED, tmp_path) == {c: (0, found) for c, found in LOADED.items()}
    (tmp_path / "bare").mkdir()
    bare = {(*command, "--model", "demo"): found for command, found in BARE.items()}
    assert loaded(trace("demo-qd4") / "trace", bare, tmp_path / "bare") == {c: (0, found) for c, found in bare.items()}


@pytest.mark.parametrize(
    ("package", "extra", "words"),
    [
        ("networkx", "graph", ("graph",)),
        ("matplotlib", "plot", ("plot", "-o", "plot.svg")),
        ("pyarrow", "arrow", ("export", "--to", "arrow", "-o", "ops.arrow")),
    ],
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


def test_looking_on_loads_no_pandas() -> None:
    """Between the collector's start and the first row there is no time for it: 0.2 s."""
    code = """
import sys
from opline_analyses.live.feed import Feed
from opline_analyses.live.snapshot import Snapshot
feed = Feed()
Snapshot(0, dict).show(feed.settled(), {})
print(sorted({"duckdb", "pandas", "pyarrow"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['duckdb']\n"
