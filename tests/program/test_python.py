# SPDX-License-Identifier: MIT
"""opline in Python: the tables are the run's, the options the commands', and the notebook in examples runs."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.lib.build_run import P, RunBuilder
from tests.lib.recorded import Correlated, RunOf
from tests.page.test_report import HOSTILE, hostile_run

import opline
import opline_analyses as analyses
from opline.errors import OplineError, UsageError
from opline.store.schema import TABLES
from opline_analyses.api.table import INSTANTS
from opline_analyses.cli import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def demo(run_of: RunOf) -> Correlated:
    return run_of("demo-qd4")


def test_every_table_is_there_with_its_rows(demo: Correlated) -> None:
    with opline.open(demo.path) as run:
        for spec in TABLES:
            table = getattr(run, spec.name)
            assert table.columns == tuple(column.name for column in spec.columns)
            assert len(table) == len(demo.rows(spec.name))
        assert run.ops.arrow().to_pylist() == demo.rows("ops")
        assert sum(batch.num_rows for batch in run.stages.batches(1000)) == len(demo.rows("stages"))


def test_statistics_are_those_of_the_command(demo: Correlated, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["stages", str(demo.path), "--csv", "--class", "read", "--since", "0.05"]) == 0
    rows = {row["stage"]: row for row in csv.DictReader(io.StringIO(capfd.readouterr().out))}
    with opline.open(demo.path) as run:
        table = run.stage_table(class_="read", since=0.05)
        for item in table.items():
            assert (rows[item["stage"]]["p99_ns"], rows[item["stage"]]["count"]) == (
                str(item["p99_ns"]), str(item["count"]),
            )  # fmt: skip
        assert len(table) == len(rows) and table.found.latency.p99_ns == int(rows["latency"]["p99_ns"])


@pytest.mark.parametrize(
    ("words", "called"),
    [
        ("stages --tainted", lambda run: run.stage_table(tainted=True)),
        ("why --latency >100us", lambda run: run.why(latency=">100us")),
        ("coverage --class write", lambda run: run.coverage(class_="write")),
        ("graph", lambda run: run.graph()),
        ("interference --slowest 2", lambda run: run.interference(slowest=2)),
        ("hist 0.1 --per device -i writes", lambda run: run.hist(interval=0.1, per="device", io="writes")),
        ("hist --of bios --from queue", lambda run: run.hist(of="bios", from_="queue")),
        ("iostat 0.1", lambda run: run.iostat(interval="0.1")),
        ("requests --sort q2c --limit 5", lambda run: run.request_table(order="q2c", limit=5)),
        ("btt", lambda run: run.btt()),
        ("outliers --threshold 100us -i writes", lambda run: run.outliers(threshold="100us", io="writes")),
        ("burst 10ms --by ios", lambda run: run.burst(interval="10ms", by="ios")),
        ("log --limit 7 --sort latency", lambda run: run.io_table(limit=7, sort="latency")),
        (
            "heatmap --of ops --rows 50 --stepsec 10ms",
            lambda run: run.heatmap(of="ops", rows=50, stepsec="10ms").table(),
        ),
    ],
)
def test_a_method_gives_what_the_command_prints(
    demo: Correlated, capfd: pytest.CaptureFixture[str], words: str, called: Any
) -> None:
    name, *options = words.split()
    capfd.readouterr()
    assert main([name, str(demo.path), *options, "--csv"]) == 0
    printed = capfd.readouterr().out
    with opline.open(demo.path) as run:
        found = called(run)
        assert "".join(found.csv()) == printed
        if name != "heatmap":
            assert found.text() and "".join(found.json())
        assert found.arrow().num_rows == len(found) == len(printed.splitlines()) - 1
        assert list(found.df().columns) == list(found.names)


@pytest.mark.parametrize(
    ("words", "called"),
    [
        ("csv --slowest 5", lambda run, path: run.csv(path, slowest=5)),
        ("csv --all --class read", lambda run, path: run.csv(path, incomplete=True, class_="read")),
        ("csv --stages --limit 9", lambda run, path: run.csv(path, stages=True, limit=9)),
        ("export --to chrome --limit 9", lambda run, path: run.export(path, "chrome", limit=9)),
        ("export --to folded --class write", lambda run, path: run.export(path, "folded", class_="write")),
        ("report --title T --until 0.7", lambda run, path: run.report(path, title="T", until=0.7)),
        ("plot --title T", lambda run, path: run.plot(path, title="T")),
        ("plot --op 3 --title T", lambda run, path: run.plot(path, op=3, title="T")),
        ("plot --cdf --title T", lambda run, path: run.plot(path, cdf=True, title="T")),
        ("pack --anonymous", lambda run, path: run.pack(path, anonymous=True)),
    ],
)
def test_a_method_writes_the_file_of_the_command(demo: Correlated, tmp_path: Path, words: str, called: Any) -> None:
    name, *options = words.split()
    ending = "svg" if name == "plot" else "out"
    by_command, by_method = tmp_path / f"command.{ending}", tmp_path / f"method.{ending}"
    assert main([name, str(demo.path), *options, "-o", str(by_command)]) == 0
    with opline.open(demo.path) as run:
        called(run, by_method)
    assert by_method.read_bytes() == by_command.read_bytes()


def test_ops_are_listed_as_the_command_lists_them(demo: Correlated, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["ops", str(demo.path), "--slowest", "3", "--behind"]
    capfd.readouterr()
    assert main(words) == 0
    printed = capfd.readouterr().out
    assert main([*words, "--json"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    with opline.open(demo.path) as run:
        found = run.op_list(slowest=3, behind=True)
        assert found.text() + "\n" == printed
        assert json.loads(json.dumps(list(found.records()))) == lines
        assert [op.op_id for op in found] == [line["op_id"] for line in lines]


def test_the_graph_is_one_of_networkx(demo: Correlated) -> None:
    with opline.open(demo.path) as run:
        table = run.graph()
    edges = {(row["source"], row["target"]): row["count"] for row in table.items()}
    assert {(a, b): data["count"] for a, b, data in table.found.edges(data=True)} == edges != {}


@pytest.mark.parametrize(
    ("called", "said"),
    [
        (lambda run, path: run.export(path, "nothing"), "There is no format nothing."),
        (lambda run, path: run.export(path, "chrome", against="typical"), 'against="typical" is for waits-folded'),
        (lambda run, path: run.plot(path.with_suffix(".txt")), "the name must end in .png, .svg, .pdf."),
        (lambda run, path: run.plot(path, run), "Other runs need cdf=True or stages=True."),
        (lambda run, path: run.csv(path, nothing=1), "There is no option --nothing."),
    ],
)
def test_a_file_that_cannot_be_is_one_line(demo: Correlated, tmp_path: Path, called: Any, said: str) -> None:
    with opline.open(demo.path) as run, pytest.raises(UsageError, match=re.escape(said)):
        called(run, tmp_path / "file.svg")
    assert list(tmp_path.iterdir()) == []


def test_results_of_one_run_do_not_change_each_other(demo: Correlated) -> None:
    """Analyses make temporary tables of the same names: what one has found is its own."""
    with opline.open(demo.path) as run:
        first = run.why()
        expected = first.text()
        again = run.why()
        run.coverage(class_="read")
        run.stage_table(class_="write")
        assert again.text() == expected == first.text()


def test_runs_are_compared(demo: Correlated, run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    other = run_of("demo-kernel")
    capfd.readouterr()
    assert main(["compare", str(demo.path), str(other.path), "--csv"]) == 0
    printed = capfd.readouterr().out
    with opline.open(demo.path) as a, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with opline.open(other.path) as b:
            assert "".join(a.compare(b).csv()) == printed


def test_a_heat_map_is_that_of_the_command(demo: Correlated, capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--of", "ops", "--log", "--rows", "50", "--stepsec", "10ms"]
    assert main(["heatmap", str(demo.path), "--json", *options]) == 0
    with opline.open(demo.path) as run:
        heatmap = run.heatmap(of="ops", log=True, rows=50, stepsec="10ms")
    assert heatmap.record() == json.loads(capfd.readouterr().out)
    assert heatmap.svg().startswith("<?xml")


def test_pandas_keeps_integers_and_what_is_unknown(tmp_path: Path) -> None:
    built = RunBuilder()
    built.op([P("a", 2**60 + 1), P("b", 2**60 + 900, stage="s")])  # no double has the first number
    built.op([P("a", 2**60 + 5)], complete=False)
    with opline.open(built.write(tmp_path / "run")) as run:
        frame = run.ops.where("begin_ns > ?", 2**60).df()
        assert frame["begin_ns"].tolist() == [2**60 + 1, 2**60 + 5]
        assert frame["latency_ns"].tolist() == [899, pd.NA]


def test_sql_asks_and_says_what_is_wrong(demo: Correlated) -> None:
    with opline.open(demo.path) as run:
        (row,) = run.sql("SELECT count(*) FROM ops WHERE class = ? -- comment", "read").rows()
        assert row == (sum(r["class"] == "read" for r in demo.rows("ops")),)
        assert run.sql("SELECT op_id FROM ops ORDER BY latency_ns DESC, op_id").head(3).rows() == [
            (r["op_id"],) for r in sorted(demo.rows("ops"), key=lambda r: (-r["latency_ns"], r["op_id"]))[:3]
        ]
        for wrong in ("SELEC", "SELECT nix FROM ops", "DROP VIEW ops", "SELECT 1; SELECT 2", "SELECT * FROM run"):
            with pytest.raises(OplineError, match=r"^SQL: ") as caught:
                run.sql(wrong).rows()
            assert "\n" not in str(caught.value)
        with pytest.raises(UsageError, match="--nix"):
            run.stage_table(nix=1)
        with pytest.raises(OplineError, match="no table nix"):
            run.table("nix")


def test_a_long_query_draws_nothing() -> None:
    """From `python -c`, as from a notebook, DuckDB draws a bar on the standard output after 2 s if it is not told."""
    query = "SELECT value FROM duckdb_settings() WHERE name = 'enable_progress_bar'"
    code = f"from opline_analyses.runs.database import in_memory; print(in_memory().execute({query!r}).fetchall())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[('false',)]\n"
    package = Path(analyses.__file__).parent
    own = [path.name for path in package.rglob("*.py") if "duckdb.connect(" in path.read_text()]
    assert own == ["database.py"]


def test_names_are_texts_in_a_notebook(tmp_path: Path) -> None:
    with opline.open(hostile_run(tmp_path / "run")) as run:
        shown = run.ops._repr_html_()
        assert HOSTILE not in shown
        assert "<script" not in shown + run._repr_html_()
        assert "\u202e" not in shown


def test_what_is_missing_is_a_warning(demo: Correlated, run_of: RunOf) -> None:
    lossy = run_of("discard-tiny-buffers")
    with pytest.warns(opline.LossWarning, match="data loss: discarded_events"):
        run = opline.open(lossy.path)
    assert run.missing()
    assert "kinds of losses" in repr(run)
    run.close()
    run.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opline.open(demo.path).close()


RUN_FILES = shutil.ignore_patterns("manifest.json", "*.parquet")


def test_a_trace_is_correlated_for_a_while_or_for_good(demo: Correlated, tmp_path: Path) -> None:
    # a copy: a run that another test has kept in the trace would be opened
    trace = str(shutil.copytree(demo.manifest["trace"], tmp_path / "trace", ignore=RUN_FILES))
    with opline.correlate(trace, "demo", tmp_path / "kept") as run:
        assert run.ops.arrow().to_pylist() == demo.rows("ops")
    assert (tmp_path / "kept" / "manifest.json").is_file()
    # a process that never closes it leaves nothing behind
    program = f"import opline; run = opline.open({trace!r}, 'demo'); print(len(run.ops), run._run.path)"
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, check=True)
    number, path = done.stdout.split()
    assert int(number) == len(demo.rows("ops"))
    assert not Path(path).exists()


def test_the_package_alone_imports_nothing_above_it() -> None:
    program = (
        "import sys, opline; print([m for m in sys.modules if m.startswith(('opline.', 'opline_analyses', 'duckdb'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, check=True)
    assert done.stdout == "[]\n"


def test_instants_become_timestamps(demo: Correlated) -> None:
    with opline.open(demo.path) as run:
        first_ns, length_ns = run.sql("SELECT min(begin_ns), max(end_ns) - min(begin_ns) FROM ops").rows()[0]
        for spec in TABLES:  # an instant lies in the run; a length of time does not reach its begin
            for name in (c.name for c in spec.columns if c.name.endswith("_ns")):
                for (value,) in run.sql(f"SELECT DISTINCT {name} FROM {spec.name} WHERE {name} IS NOT NULL").rows():
                    assert (abs(value - first_ns) <= 2 * length_ns) == (name in INSTANTS), (spec.name, name)
        ops = run.ops.head(3)
        timed = ops.timestamps()
        assert timed.columns == tuple(name.removesuffix("_ns") if name in INSTANTS else name for name in ops.columns)
        begins = [value for (value,) in run.sql("SELECT begin_ns FROM ops LIMIT 3").rows()]
        made = timed.df()
        assert str(made["begin"].dtype) == "datetime64[ns]"
        assert made["begin"].diff().dropna().astype("int64").tolist() == [b - a for a, b in pairwise(begins)]
        assert made["begin"][0].year == 2026 and str(made["latency_ns"].dtype) == "Int64"
        assert run.sql("SELECT wall(begin_ns) FROM ops LIMIT 1").arrow().column(0)[0].value == made["begin"][0].value


def test_integers_stay_integers_beside_unknown_values(demo: Correlated) -> None:
    with opline.open(demo.path) as run:
        for spec in TABLES:
            kinds = {c.name: c.type for c in spec.columns}
            types = run.table(spec.name).df().dtypes
            for name, kind in kinds.items():
                if kind in ("i64", "u64", "i32", "u32"):
                    wanted = {"i": "Int", "u": "UInt"}[kind[0]] + kind[1:]
                    assert str(types[name]) == wanted, (spec.name, name)


def test_polars(demo: Correlated) -> None:
    pytest.importorskip("polars")
    with opline.open(demo.path) as run:
        frame = run.ops.pl()
        assert frame.height == len(run.ops) and frame.columns == list(run.ops.columns)
        assert frame["latency_ns"].to_list() == [row[0] for row in run.sql("SELECT latency_ns FROM ops").rows()]
        stages = run.stage_table()
        assert stages.pl()["total_ns"].to_list() == stages.column("total_ns")


def test_the_notebook_runs_in_a_kernel(tmp_path: Path) -> None:
    """As Jupyter runs it, where ipywidgets is not installed; what each cell ends with is shown."""
    assert importlib.util.find_spec("ipywidgets") is None
    source = ROOT / "examples" / "notebook" / "first_look.ipynb"
    argv = [
        sys.executable,
        "-m",
        "nbconvert",
        "--to",
        "notebook",
        "--execute",
        "--output-dir",
        str(tmp_path),
        str(source),
    ]
    folders = {f"JUPYTER_{name}_DIR": str(tmp_path) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **folders, "IPYTHONDIR": str(tmp_path), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    cells = json.loads((tmp_path / source.name).read_text())["cells"]
    shown = [out["data"] for cell in cells for out in cell.get("outputs", ()) if out["output_type"] == "execute_result"]
    assert "2003 ops" in "".join(shown[0]["text/html"])
    assert sum("text/html" in data for data in shown) >= 8
    assert "image/svg+xml" in shown[-1]


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells, one after the other; what a cell ends with can be shown."""
    import ast

    notebook = json.loads((ROOT / "examples" / "notebook" / "first_look.ipynb").read_text())
    monkeypatch.chdir(ROOT / "examples" / "notebook")
    names: dict[str, Any] = {}
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        tree = ast.parse("".join(cell["source"]))
        last = tree.body[-1]
        if isinstance(last, ast.Expr) and not isinstance(last.value, ast.Call):
            tree.body.pop()
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr) and last not in tree.body:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            shown.append(getattr(value, "_repr_html_", getattr(value, "_repr_svg_", value.__repr__))())
    assert [text[:5] for text in shown[:2]] == ["<p>&l", "<tabl"]
    assert "2003 ops" in shown[0]
    assert shown[-1].startswith("<?xml")
