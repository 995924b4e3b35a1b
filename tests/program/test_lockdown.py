# SPDX-License-Identifier: MIT
"""`opline sql` reads the run's own tables and nothing else, unless --unrestricted."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.lib.build_run import small_run

from opline_analyses.cli import main

ASKS = (
    "SELECT count(*) FROM ops", "FROM ops", "DESCRIBE ops", "SHOW TABLES", "SUMMARIZE ops", "VALUES (1)",
    "WITH x AS (SELECT 1 AS a) SELECT * FROM x", "SELECT * FROM range(3)", "SELECT 1 UNION ALL SELECT 2",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t",
    "SELECT * FROM ops o ASOF JOIN stages s ON o.begin_ns >= s.begin_ns", "SELECT unnest([1, 2])",
    "PIVOT ops ON class IN ('write') USING count(*)", "SELECT op_id FROM ops WHERE EXISTS (FROM stages)",
)  # fmt: skip
REFUSED = (
    "SELECT * FROM read_text('{secret}')", "SELECT * FROM '{secret}'", "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM glob('/etc/*')", "COPY ops TO '{made}'", "COPY (SELECT 1) TO '{table}' (USE_TMP_FILE false)",
    "WITH x AS (COPY ops TO '{table}' (USE_TMP_FILE false)) SELECT 1", "EXPORT DATABASE '{made}'",
    "WITH x AS (SELECT * FROM (WITH y AS (COPY ops TO '{made}') SELECT 1)) SELECT * FROM x",
    "SELECT * FROM query('WITH x AS (COPY ops TO ''{made}'') SELECT 1')", "ATTACH '{made}'", "INSTALL httpfs",
    "LOAD httpfs", "EXPLAIN ANALYZE COPY ops TO '{table}' (USE_TMP_FILE false)", "SET enable_external_access = true",
    "PREPARE v AS COPY ops TO '{made}'", "SELECT 1; COPY ops TO '{made}'", "SELECT * FROM arrow_scan(1, 2, 3)",
    "CREATE TABLE t AS SELECT 1", "SELECT * FROM query_table('secret')", "SELECT * FROM args",
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return small_run(tmp_path / "run")


@pytest.mark.parametrize("query", ASKS)
def test_what_asks_is_answered(query: str, run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The same with and without the limits; rows may come in any order."""
    assert main(["sql", str(run), query]) == 0
    restricted = capfd.readouterr().out.splitlines()
    assert main(["sql", str(run), query, "--unrestricted"]) == 0
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(restricted) or query.startswith("SUMMARIZE")


@pytest.mark.parametrize("query", REFUSED)
def test_what_goes_further_is_refused(
    query: str, run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, and nothing has changed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("secret")
    before = {p: hashlib.sha256(p.read_bytes()).digest() for p in run.iterdir()}
    names = {"secret": tmp_path / "secret", "made": tmp_path / "made", "table": run / "ops.parquet"}
    assert main(["sql", str(run), query.format(**names)]) == 1
    said = capfd.readouterr()
    assert said.out == "" and said.err.startswith("opline: SQL: ") and said.err.count("\n") == 1
    assert {p: hashlib.sha256(p.read_bytes()).digest() for p in run.iterdir()} == before
    assert {p.name for p in tmp_path.iterdir()} == {"run", "secret"}


def test_unrestricted_writes(run: Path, tmp_path: Path) -> None:
    assert main(["sql", str(run), f"COPY ops TO '{tmp_path}/out.csv'", "--unrestricted"]) == 0
    assert (tmp_path / "out.csv").read_text().count("\n") == 4


def test_a_mistake_is_said_as_duckdb_says_it(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", str(run), "SELEC 1"]) == 1
    assert "syntax error" in capfd.readouterr().err
