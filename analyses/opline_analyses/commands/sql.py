# SPDX-License-Identifier: MIT
"""`opline sql RUN QUERY`: ask the run's tables with SQL."""

from __future__ import annotations

import argparse
import textwrap

from opline.store.schema import TABLES
from opline_analyses.api.block import sql
from opline_analyses.commands.common import add_form, add_model, csv_output, input_path, opened, write
from opline_analyses.commands.options import add_io_filters, io_filters
from opline_analyses.commands.vocabulary import CHOICE
from opline_analyses.runs.run import asked

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


def run(args: argparse.Namespace) -> int:
    """Runs the query and prints its rows."""
    with opened(args) as opened_run, asked(opened_run):
        found = sql(opened_run, args.query, io_filters(args), unrestricted=args.unrestricted)
        if found is not None and args.csv:
            with csv_output(args) as out:
                found.write_csv(out)
        elif found is not None:
            write(args, found.table())
    return 0
