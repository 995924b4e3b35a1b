# SPDX-License-Identifier: MIT
"""`opline sql RUN QUERY`: ask the run's tables with SQL."""

from __future__ import annotations

import argparse
import textwrap

from opline.store.schema import TABLES
from opline_analyses.base.result_table import Column, ResultTable
from opline_analyses.block.io_table import narrow
from opline_analyses.commands.common import add_form, add_model, csv_output, input_path, opened, write
from opline_analyses.commands.options import add_io_filters, io_filters
from opline_analyses.commands.vocabulary import CHOICE
from opline_analyses.runs.functions import make_functions
from opline_analyses.runs.lockdown import check, lock

NAME = "sql"
HELP = "ask the run's tables with SQL"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {CHOICE: "the query says so: ORDER BY, LIMIT"}
_TABLES = "\n".join(textwrap.fill(f"  {t.name:12} one row per {t.row}", 80, subsequent_indent=" " * 15) for t in TABLES)
EXAMPLES = f"""\
The query is DuckDB's SQL: one SELECT (or DESCRIBE, SHOW, SUMMARIZE) on the
run's own tables. --unrestricted allows other files, COPY, ATTACH, INSTALL and
several statements. Filters select rows of `requests`, or of the table of --of.
dev_name(dev) is a device's name, wall(ns) a timestamp in UTC. Tables
(docs/tables.md has the columns; times are ns):
{_TABLES}

examples:
  opline sql run1 "SELECT class, avg(latency_ns) FROM ops GROUP BY class"
  opline sql run1 "SELECT * FROM requests ORDER BY d2c_ns DESC LIMIT 10"
  opline sql run1 "DESCRIBE stages"
  opline sql run1 "SELECT dev_name(dev), wall(issue_ns), d2c_ns FROM requests"
  opline sql run1 -d sda -i writes "SELECT queue_comm, count(*) FROM requests
    GROUP BY 1"
  opline sql run1 --csv "SELECT op_id, sum(duration_ns) FROM stages
    WHERE kind = 'wait' GROUP BY op_id" > waits.csv
"""
_NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "FLOAT", "DOUBLE", "DECIMAL")
_PLAIN = 0.1, 1e15  # numbers from and up to here have three decimals, others four figures
NULL = "·"  # in the table for people only


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("run", metavar="RUN", type=input_path, help="a run, a recording, or a trace (with --model)")
    parser.add_argument("query", metavar="QUERY", help="one SQL statement")
    add_model(parser)
    parser.add_argument(
        "--unrestricted", action="store_true", help="let the query read and write files, attach and install"
    )
    add_io_filters(parser)
    add_form(parser, csv="CSV", json="a JSON list with one object per row")


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return NULL if value is None else str(value)
    return f"{value:.3f}" if value == 0 or _PLAIN[0] <= abs(value) < _PLAIN[1] else f"{value:.4g}"


def run(args: argparse.Namespace) -> int:
    """Runs the query and prints its rows."""
    from opline_analyses.runs.run import asked

    with opened(args) as opened_run, asked(opened_run):
        opened_run.con.make_views()
        make_functions(opened_run)
        narrow(opened_run, io_filters(args))
        if not args.unrestricted:
            check(opened_run.con, args.query)
            lock(opened_run.con, opened_run.files.paths())
        result = opened_run.con.sql(args.query)
        if result is None:  # a statement without a result
            return 0
        columns, types = result.columns, [str(t) for t in result.types]
        if args.csv:
            from opline_analyses.runs.query_csv import write_csv

            with csv_output(args) as out:
                write_csv(columns, result, out)
            return 0
        from opline_analyses.runs.query_json import records

        seen = [
            Column(c, c, _cell, "f64" if t.startswith(_NUMERIC) else "text", left=not t.startswith(_NUMERIC))
            for c, t in zip(columns, types, strict=True)
        ]
        write(args, ResultTable(seen, result.fetchall(), document=lambda t: records(columns, t.rows)))
    return 0
