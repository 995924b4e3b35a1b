# SPDX-License-Identifier: MIT
"""`opline export RUN --to FORMAT -o FILE`: the run for Perfetto, OpenTelemetry, flame graphs."""

from __future__ import annotations

import argparse
import importlib

from opline.errors import OplineError
from opline.talk import talk
from opline_analyses.commands.common import add_run, opened
from opline_analyses.files import complete_file, output_path
from opline_analyses.selection import add_filters, add_which, selection

NAME = "export"
HELP = "the run for Perfetto, OpenTelemetry, or as folded stacks"
FORMATS = ("perfetto", "otlp", "folded")
# Of the extra `export` of setup.cfg, by the module that is missing without them.
PACKAGES = {"perfetto": "perfetto", "opentelemetry": "opentelemetry-proto"}
EXAMPLES = """\
  perfetto  Perfetto's protobuf trace, for https://ui.perfetto.dev: a track per
            thread with the stages, a flow per op, a track per device with the
            block requests, counters of what is in flight. FILE.pftrace
  otlp      an OpenTelemetry ExportTraceServiceRequest (protobuf): an op is a
            trace, a stage or a block request a span. A collector takes it:
            curl --data-binary @FILE -H 'Content-Type: application/x-protobuf'
            http://localhost:4318/v1/traces
  folded    a line per class, thread and stage with its nanoseconds, for
            speedscope and flamegraph.pl; of the ops that count

Ops without an end are left out. perfetto and otlp hold all selected ops in
memory: take a part of a large run (--since, --slowest).

examples:
  opline export run1 --to perfetto -o run1.pftrace
  opline export run1 --to otlp --slowest 100 -o slow.otlp
  opline export run1 --to folded -o run1.folded
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("--to", choices=FORMATS, required=True, help="the format")
    parser.add_argument("-o", "--output", metavar="FILE", type=output_path, required=True, help="the file to write")
    add_which(parser)
    add_filters(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the file."""
    try:
        module = importlib.import_module(f"opline_analyses.export.{args.to}")
    except ModuleNotFoundError as error:
        package = PACKAGES.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        raise OplineError(f"--to {args.to} needs the Python package {package}: pip install 'opline[export]'") from None
    with opened(args) as opened_run:
        which = selection(opened_run, args)
        with complete_file(args.output) as out:
            ops = module.write(opened_run, which, out)
    talk(f"wrote {args.output}: {ops} ops")
    return 0
