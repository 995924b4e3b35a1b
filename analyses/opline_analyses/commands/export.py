# SPDX-License-Identifier: MIT
"""`opline export RUN --to FORMAT -o FILE`: the run in the formats of other programs."""

from __future__ import annotations

import argparse
import io
import sys
from functools import partial

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.api.files import check_format, export
from opline_analyses.base.files import complete_file, complete_folder, output_path
from opline_analyses.base.text import count_of
from opline_analyses.commands.common import add_run, opened
from opline_analyses.commands.options import add_filters, add_which, op_filters
from opline_analyses.export.formats import BOTH, FOLDERS, FORMATS, MEDIA

NAME = "export"
STATUS_PART = 3  # the collector did not take all: as of a recording in which something is missing
HELP = "the run for Perfetto, Jaeger, Prometheus, flame graphs and others"
PROGRESS = AS_IT_GOES = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--sort": "each format has its own order",
    "--csv --json": "--to names the format; `opline csv` and `opline ops --json` have the same ops",
}
EXAMPLES = """\
formats of single ops:
  perfetto     for https://ui.perfetto.dev: a track per thread with the stages, a
               flow per op, a track per device, counters of what is in flight
  chrome       Chrome's JSON trace, for Perfetto and chrome://tracing
  otlp         OpenTelemetry (protobuf): an op is a trace, a stage or a block
               request a span. --send sends to a collector, 1000 ops a request
  otlp-json    the same as JSON, a request in each line
  jaeger       Jaeger's JSON, which its page opens from a file
  zipkin       Zipkin's JSON, for its page and /api/v2/spans
  arrow        an Arrow IPC file with the rows and columns of `opline csv`
  duckdb       one DuckDB file with all tables (docs/tables.md), and the
               functions dev_name(dev) and wall(ns)
  ctf          a folder with a CTF 1.8 trace of ops and stages, for babeltrace2
               and Trace Compass
  fio-iolog    fio's I/O log (version 3, fio 3.31) of the block requests, for
               fio --read_iolog

formats of sums, over the ops that count (as in `opline stages`):
  speedscope   a profile per class, thread and stage
  folded       a line per class, thread and stage, ns, for flamegraph.pl
  openmetrics  histograms of latencies and stages, for Prometheus
  lami         LAMI 1.0: result tables of the LTTng analyses
  hgrm         HdrHistogram's percentiles of the latencies, us, for its plotter
  hlog         HdrHistogram's interval log, ns, a histogram per second and class
  waits-folded, waits-speedscope, pprof
               where threads waited: class, stage, kernel stacks, ns; from a
               recording of `opline record`. pprof: for `go tool pprof -http`

--against typical has the waits of slow ops beside those of typical ones, as
means per op: two numbers in a line of waits-folded (flamegraph.pl draws the
difference), two profiles of a class in waits-speedscope, the values typical,
slow and difference in pprof. Slow ops are the slowest 1 %, or as --slowest or
--latency say; typical ones as in `opline why`.

Only arrow has ops without an end. A viewer takes fewer ops than a run may have:
take a part of a large run (--since, --slowest).

examples:
  opline export run1 --to perfetto --slowest 1000 -o run1.pftrace
  opline export run1 --to otlp --send http://localhost:4318/v1/traces
  opline export run1 --to jaeger --slowest 100 -o slow.json
  opline export run1 --to speedscope -o run1.speedscope.json
  opline export run1 --to waits-folded --slowest 100 -o waits.folded
  opline export run1 --to pprof --against typical -o waits.pb.gz
  opline export run1 --to openmetrics -o run1.txt
  opline export run1 --to duckdb -o run1.duckdb
"""


def collector(text: str) -> str:
    """The argument of --send. Raises UsageError for what is no address of an HTTP port."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        fine = fine and text.isascii() and text.isprintable() and " " not in text
    except ValueError:  # half a bracket, a port that is no number
        fine = False
    if not fine:
        raise UsageError(f"--send takes an address like http://localhost:4318/v1/traces, not {text!r}.")
    return text


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("--to", choices=FORMATS, metavar="FORMAT", required=True, help="the format: of the lists below")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "-o", "--output", metavar="FILE", type=output_path, help="the file to write, of ctf a new folder"
    )
    where.add_argument(
        "--send", metavar="URL", type=collector, help="of otlp: the collector's address, /v1/traces included"
    )
    parser.add_argument("--against", choices=("typical",), help=f"of {', '.join(BOTH)}: slow ops beside typical ones")
    add_which(parser)
    add_filters(parser)
    lami = parser.add_argument_group("of lami, as Trace Compass calls it (External Analyses)")
    lami.add_argument("--mi-version", action=_Said, help="print the version of the interface")
    lami.add_argument("--metadata", action=_Said, help="print what there is")
    lami.add_argument("--test-compatibility", action="store_true", help="exit status 0: RUN can be read")
    lami.add_argument("--output-progress", action="store_true", help="accepted; no progress is printed")
    lami.add_argument("--begin", metavar="NS", type=int, help="ops that begin at NS or later, since 1970")
    lami.add_argument("--end", metavar="NS", type=int, help="ops that begin before NS")


class _Said(argparse.Action):
    """Prints what an option asks, and ends: there need not be a RUN."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(
        self, parser: argparse.ArgumentParser, _namespace: object, _values: object, option: str | None = None
    ) -> None:
        """Prints."""
        from opline_analyses.export import lami

        text = lami.MI_VERSION if option == "--mi-version" else lami.metadata()
        sys.stdout.write(text + "\n")
        parser.exit()


def _of_lami(args: argparse.Namespace) -> int:
    """Prints the results, of the part that --begin and --end mean."""
    from opline_analyses.runs.wall_clock import offset_ns

    with opened(args) as opened_run:
        if args.test_compatibility:
            return 0
        offset, filters = offset_ns(opened_run) or 0, op_filters(args)
        for name, at_ns in (("since", args.begin), ("until", args.end)):
            if at_ns is not None:  # zeros in front: an absolute time
                filters = filters.replaced(**{name: f"{max(0, at_ns - offset):020d}"})
        out = io.BytesIO()
        export(opened_run, filters, to="lami", out=out)
    sys.stdout.write(out.getvalue().decode())
    return 0


def _check(args: argparse.Namespace) -> None:
    """Raises UsageError for options that do not go together."""
    if args.output is None and args.send is None:
        raise UsageError(f"--to {args.to} needs -o FILE{' or --send URL' if args.to in MEDIA else ''}.")
    if args.send and args.to not in MEDIA:
        raise UsageError(f"--send is for --to {' and '.join(MEDIA)}: name a file with -o.")
    if args.against and args.to not in BOTH:
        raise UsageError(f"--against is for --to {', '.join(BOTH)}.")
    if args.against and args.slowest and args.latency:
        raise UsageError("--against takes one of --slowest and --latency: they say which ops are slow.")


def run(args: argparse.Namespace) -> int:
    """Writes the file, or sends the parts."""
    if args.to == "lami" and args.output is None:
        return _of_lami(args)
    _check(args)
    check_format(args.to)
    filters, slow = op_filters(args), None
    if args.against:  # which ops are slow is what --slowest and --latency say, and these choose no ops then
        slow, filters = (str(args.slowest or "1%"), args.latency), filters.replaced(slowest=None, latency=None)
    write = partial(export, filters=filters, to=args.to, slow=slow)
    with opened(args) as opened_run:
        if args.send:
            found = write(opened_run, send=args.send)
        elif args.to in FOLDERS:
            with complete_folder(args.output) as folder:
                found = write(opened_run, folder=folder)
        else:
            with complete_file(args.output) as out:
                found = write(opened_run, out=out)
        if found.rejected or found.reason:
            why = f": {found.reason}" if found.reason else ""
            talk(f"{args.send} rejected {count_of(found.rejected, 'span')} of these {found.counted}{why}")
            return STATUS_PART if found.rejected else 0
    talk(f"{'sent to' if args.send else 'wrote'} {args.send or args.output}: {found.counted}")
    return 0
