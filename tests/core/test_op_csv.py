# SPDX-License-Identifier: MIT
"""`opline csv`: of a trace, where the core makes the rows while it reads, and of its run it prints the same; and both
are what SQL makes of the run's tables.
"""

from __future__ import annotations

import csv
import errno
import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lib.recorded import LAB, NAMES, RunOf, model_of

from opline import _core
from opline.errors import OplineError
from opline.store.arrays import ABSENT
from opline.store.schema import ATTRIBUTES
from opline_analyses.cli import main
from opline_analyses.client.client_files import find_log
from opline_analyses.client.client_log import join_client_log
from opline_analyses.ops.op_csv import FIXED, STAGE_COLUMNS, collector, stage_columns, write
from opline_analyses.ops.stages import stages_in_order
from opline_analyses.runs.run import open_tables

Trace = Callable[[str], Path]


def by_sql(run: Path, log: Path | None) -> tuple[str, str]:
    """The wide form with --all and the long form, from the tables alone."""
    opened = open_tables(run)
    opened.con.execute("CREATE TEMP TABLE client_ops (op_id BIGINT, client_ns BIGINT)")
    if log:
        join_client_log(opened, log)
    stages = [name for name, _ in stages_in_order(opened)]
    quoted = [name.replace("'", "''") for name in stages]
    sums = "".join(f", sum(duration_ns) FILTER (stage = '{name}')::BIGINT AS s{n}" for n, name in enumerate(quoted))
    cells = "".join(f", p.s{n}" for n in range(len(stages)))
    wide = opened.rows(
        f"""WITH p AS (SELECT op_id{sums} FROM stages GROUP BY op_id),
                 f AS (SELECT l.op_id, arg_min(b.kind, b.bio_id) AS kind FROM links l JOIN bios b USING (bio_id)
                       GROUP BY l.op_id)
            SELECT o.op_id, o.class, o.object, o.host, o.pid, o.comm, o.begin_tid, o.end_tid, o.begin_ns, o.end_ns,
                   o.latency_ns, c.client_ns, CASE WHEN o.complete THEN 'true' ELSE 'false' END,
                   CASE WHEN o.complete AND o.tainted THEN 'tainted' ELSE o.reason END, o.length_bytes,
                   (o.dev >> 20) || ':' || (o.dev & 1048575), o.sector, f.kind, o.begin_cpu{cells}, o.unattributed_ns
            FROM ops o LEFT JOIN p USING (op_id) LEFT JOIN f USING (op_id)
            LEFT JOIN client_ops c USING (op_id) ORDER BY o.op_id"""
    )
    long = opened.rows(f"SELECT {', '.join(STAGE_COLUMNS)} FROM stages ORDER BY op_id, seq")
    header = [*(c for c, _ in FIXED), *stage_columns(stages), "unattributed_ns"]
    texts = []
    for rows in ([tuple(header), *wide], [STAGE_COLUMNS, *long]):
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        texts.append(out.getvalue())
    return texts[0], texts[1]


@pytest.mark.parametrize("name", NAMES)
def test_of_a_trace_of_its_run_and_by_sql(
    name: str, trace: Trace, run_of: RunOf, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.toml"
    model.write_text(model_of(name).text)
    run = run_of(name).path
    log = find_log(trace(name))  # of a trace it is found beside it
    whole, long = by_sql(run, log)
    of_trace = [str(trace(name)), "--model", str(model)]
    out = tmp_path / "out.csv"
    for options, wanted in ((["--all"], whole), (["--stages"], long)):
        for of in (of_trace, [str(run), *(("--client-log", str(log)) if log else ())]):
            assert main(["csv", *of, *options, "-o", str(out)]) == 0
            assert out.read_text() == wanted
    rows = list(csv.DictReader(io.StringIO(whole, newline="")))
    capfd.readouterr()
    assert main(["csv", *of_trace, "-o", str(out)]) == 0
    complete = [row for row in rows if row["complete"] == "true"]
    assert list(csv.DictReader(io.StringIO(out.read_text(), newline=""))) == complete
    left_out = len(rows) - len(complete)
    assert (f"left out: {left_out} incomplete op" in capfd.readouterr().err) == (left_out > 0)


def test_selected_ops_of_a_trace(trace: Trace, tmp_path: Path) -> None:
    of_trace = ["csv", str(trace("app-sync-qd4-nvme")), "--model", str(LAB), "-o", str(tmp_path / "out.csv")]
    assert main([*of_trace]) == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert main([*of_trace, "--slowest", "5"]) == 0
    by_latency = sorted(rows, key=lambda r: (-int(r["latency_ns"]), int(r["op_id"])))
    assert list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text()))) == by_latency[:5]
    assert main([*of_trace, "--limit", "7"]) == 0
    assert list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text()))) == rows[:7]


def one_op(rows: _core.OpCsv, obj: bytes) -> None:
    """An op that knows its object and nothing else."""
    numbers = [np.array([n], np.int64) for n in (0, 0, *[ABSENT] * (12 + len(ATTRIBUTES)))]
    none = np.zeros(1, np.uint32)
    rows.ops(tuple(numbers), none, none, none, none, np.array([0, len(obj)], np.int32), obj)


@given(st.binary(max_size=12) | st.text(st.sampled_from('a,"\n\r€'), max_size=8).map(str.encode))
def test_texts_are_quoted_where_they_must_be_and_valid(obj: bytes) -> None:
    with collector(stages=False) as rows:
        one_op(rows, obj)
        (row,) = csv.reader(io.StringIO(rows.rows().decode(), newline=""))
    assert row[2] == obj.decode(errors="backslashreplace")


def test_a_full_temporary_folder_is_said_in_one_line() -> None:
    with Path("/dev/full").open("r+b", buffering=0) as full:
        rows = _core.OpCsv(False, full.fileno())
        for _ in range(100):
            one_op(rows, b"x" * (1 << 18))
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            rows.check()
        with pytest.raises(OplineError, match=f"{os.strerror(errno.ENOSPC)}.*TMPDIR"):
            write(rows, io.BytesIO())
