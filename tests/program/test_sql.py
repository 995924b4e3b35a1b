# SPDX-License-Identifier: MIT
"""`opline sql`: whatever a query gives is in its output, in each form."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.io_runs import io_run

from opline_analyses.cli import main

Asked = Callable[..., str]


@pytest.fixture
def asked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Asked:
    run = io_run(tmp_path / "run", [{"d": 1, "c": 5}, {"d": 7, "c": 8}])

    def ask(query: str, *options: str) -> str:
        assert main(["sql", str(run), query, *options]) == 0
        return capfd.readouterr().out

    return ask


def test_columns_of_one_name_are_all_there(asked: Asked) -> None:
    """Those of a join, for example."""
    query = "SELECT o.op_id, s.op_id + 10 AS op_id, 3 AS op_id_1 FROM ops o JOIN stages s USING (op_id) LIMIT 1"
    assert json.loads(asked(query, "--json")) == [{"op_id": 0, "op_id_1": 10, "op_id_1_1": 3}]
    assert asked(query, "--csv") == "op_id,op_id,op_id_1\n0,10,3\n"


def test_json_is_json_where_a_number_is_none(asked: Asked) -> None:
    def refused(name: str) -> None:
        raise ValueError(name)

    query = "SELECT 'nan'::DOUBLE AS a, ['-inf'::DOUBLE, 1.5] AS b, {'x': 'inf'::DOUBLE} AS c, 1.5 AS d"
    found = json.loads(asked(query, "--json"), parse_constant=refused)
    assert found == [{"a": None, "b": [None, 1.5], "c": {"x": None}, "d": "1.5"}]


def test_lists_structures_and_intervals_in_cells(asked: Asked) -> None:
    query = """SELECT list(op_id ORDER BY op_id) AS ids, {'a': 1, 'b': 'x,"y'} AS s, MAP {'k': [1]} AS m,
                      INTERVAL 90 MINUTE AS i, NULL::INTEGER[] AS n FROM ops"""
    (row,) = csv.DictReader(io.StringIO(asked(query, "--csv")))
    assert json.loads(row["ids"]) == [0, 1] and json.loads(row["s"]) == {"a": 1, "b": 'x,"y'}
    assert json.loads(row["m"]) == {"k": [1]} and row["i"] == "01:30:00" and row["n"] == ""


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("0.0", "0.000"), ("0.00002::DOUBLE", "2e-05"), ("-0.0123456::DOUBLE", "-0.01235"), ("0.5::DOUBLE", "0.500"),
        ("1234567.8::DOUBLE", "1234567.800"), ("1e300::DOUBLE", "1e+300"),
    ],
)  # fmt: skip
def test_a_small_number_is_not_shown_as_none(asked: Asked, number: str, shown: str) -> None:
    assert asked(f"SELECT ({number})::DOUBLE AS x").split() == ["x", shown]
