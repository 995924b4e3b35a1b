# SPDX-License-Identifier: MIT
"""The analyses of ops: plain functions of a run, which give result tables. The commands print what they give.

``filters`` choose the ops (runs/selection.py); without a class those that count
(client/defaults.py). Times in arguments are nanoseconds; texts are as on the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline_analyses.client.defaults import default_selection
from opline_analyses.runs.selection import OpFilters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import BinaryIO

    from opline_analyses.base.result_table import ResultTable
    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.compare.figures import Figures
    from opline_analyses.compare.gate import Condition
    from opline_analyses.ops.listing import OpListing
    from opline_analyses.runs.run import Run

ALL = OpFilters()


def stages(run: Run, filters: OpFilters = ALL, *, tainted: bool = False, spread: bool = False) -> ResultTable:
    """Count, mean, percentiles, max and share of each stage: a row per stage, then what no stage claims and the
    latency. A `StageTable` was found. ``spread``: the text has min and standard deviation, too. Raises OplineError
    where no op counts.
    """
    from opline_analyses.ops.stage_text import result
    from opline_analyses.ops.stages import stage_table

    counted = stage_table(run, default_selection(run, filters), tainted)
    if not run.is_cluster:
        return result(counted, tainted=tainted, spread=spread)
    from opline_analyses.hosts.bounds import both_ways, stage_bounds

    return result(counted, stage_bounds(run), both_ways(run), tainted, spread)


def places(run: Run, filters: OpFilters = ALL, *, tainted: bool = False, spread: bool = False) -> ResultTable:
    """The same for each host of a joined run, and for the way between two hosts. A `StageTable` was found. Raises
    OplineError where no op counts.
    """
    from opline_analyses.hosts.bounds import both_ways, place_bounds
    from opline_analyses.ops.places import place_table
    from opline_analyses.ops.stage_text import result

    counted = place_table(run, default_selection(run, filters), tainted)
    if not run.is_cluster:
        return result(counted, tainted=tainted, spread=spread, first="host")
    return result(counted, place_bounds(run), both_ways(run), tainted, spread, "host")


def states(run: Run, filters: OpFilters = ALL, *, tainted: bool = False) -> ResultTable:
    """What the threads did in each stage, and who woke them: a row per stage, then all of them. A `StateTable` was
    found. Raises OplineError where no op counts, or no thread's states are known.
    """
    from opline_analyses.ops.states import result, state_table

    return result(state_table(run, default_selection(run, filters), tainted), tainted)


def why(
    run: Run,
    filters: OpFilters = ALL,
    *,
    slowest: str = "1%",
    latency: str | None = None,
    tainted: bool = False,
    every_ns: int | None = None,
    everything: bool = False,
    rows_only: bool = False,
    words: tuple[Sequence[str], Sequence[str]] | None = None,
) -> ResultTable:
    """Why the ``slowest`` ops, or those of a ``latency``, are slow: a row per stage, the largest difference to typical
    ops first, then the latency. A `Why` was found. ``every_ns``: the client's schedule; ``everything``: the text has
    every table; ``rows_only``: no text and no document, which take longer; ``words``: how a command line opens the run
    and chooses the ops. Raises OplineError.
    """
    from opline_analyses.why.result import result
    from opline_analyses.why.sets import choose, rule_of

    rule = rule_of(slowest, latency)
    source, chosen = words if words is not None else ([str(run.given)], filters.words())
    sets = choose(run, default_selection(run, filters), rule, tainted)
    return result(
        run, sets, source, chosen, tainted=tainted, every_ns=every_ns, everything=everything, rows_only=rows_only
    )


def coverage(
    run: Run,
    filters: OpFilters = ALL,
    *,
    client: Path | None = None,
    client_log: Path | None = None,
    per_op: Path | None = None,
    every_ns: int | None = None,
) -> ResultTable:
    """How much of the time that the client reports is accounted for: a row per part of the mean. A `Coverage` was
    found. ``client``, ``client_log``: the client's report and log (default: those in the recording); ``per_op``: a
    file for the parts of each op; ``every_ns``: the client's schedule. Raises OplineError.
    """
    from opline_analyses.client.coverage_result import result

    return result(run, filters, client_file=client, log_file=client_log, per_op_file=per_op, every_ns=every_ns)


def graph(run: Run, filters: OpFilters = ALL, *, tainted: bool = False) -> ResultTable:
    """Which point follows which, how often, how fast: a row per edge. A `networkx.DiGraph` was found."""
    from opline_analyses.base.extras import with_extras

    with with_extras():
        from opline_analyses.ops.graph import edge_table, transition_graph

    return edge_table(transition_graph(run, default_selection(run, filters), tainted))


def write_graph(graph: ResultTable, out: BinaryIO, *, form: str) -> None:
    """Writes what ``graph`` gave as ``form``: dot, graphml, json (node-link), or a picture by Graphviz: svg, png, pdf.
    Raises OplineError.
    """
    from opline_analyses.ops import graph as graphs

    graphs.write_graph(graph.found, form, out)


def graph_difference(a: ResultTable, b: ResultTable, *, names: Sequence[str]) -> ResultTable:
    """What has changed from A to B, which ``graph`` gave: a row per edge, the largest change of time per op first.
    ``names``: what the two runs are called. The changes were found.
    """
    from opline_analyses.ops.graph import change_table, difference

    head = {"schema": "opline graph diff 1", "a": names[0], "b": names[1]}
    return change_table(difference(a.found, b.found), head | {"ops": [one.found.graph["ops"] for one in (a, b)]})


def listed(
    run: Run,
    filters: OpFilters = ALL,
    *,
    style: str = "default",
    states: bool = False,
    behind: bool = False,
    unfold: bool = False,
    most: int | None = None,
) -> OpListing:
    """Whole ops, one after another, each with its transitions, stages and block requests. ``style``: whose text; in
    one of another tool only complete ops. ``states``: what the threads did; ``behind``: which other ops the threads
    were at meanwhile; ``unfold``: every step of an op with many requests; ``most``: so many ops, where the filters
    have no limit. Raises UsageError.
    """
    from opline_analyses.ops.listing import OpListing
    from opline_analyses.runs.selection import selection

    ranked = filters.slowest is not None or filters.sort is not None
    which = (default_selection if ranked else selection)(run, filters)
    return OpListing(run, which, style, states, behind, unfold, most)


def interference(
    run: Run,
    filters: IoFilters,
    *,
    op: int | None = None,
    slowest: int | None = None,
    sort: str = "request",
    limit: int | None = None,
) -> ResultTable:
    """Who the block requests of an ``op``, or of the ``slowest`` ones, waited for: a row per request and owner.
    ``filters`` choose the requests; of each op the first ``limit`` in the order ``sort``. Raises OplineError.
    """
    from opline_analyses.ops.interference_text import of_ops

    if (op is None) == (slowest is None):
        raise OplineError("Either an op, or so many of the slowest.", exit_code=2)
    return of_ops(run, filters, op, slowest, sort, limit)


def figures(
    run: Run,
    filters: OpFilters = ALL,
    *,
    name: str | None = None,
    lost: int | None = None,
    tainted: bool = False,
    sketched: bool = False,
) -> Figures:
    """What `compare` compares of a run. ``name``: what it is called; ``lost``: how much is missing in it; ``sketched``:
    with the distributions of latencies, for pictures and baselines. Raises OplineError.
    """
    from opline_analyses.compare.figures import figures_of
    from opline_analyses.runs import ledger

    lost = ledger.bad_count(ledger.entries(run)) if lost is None else lost
    called = name or run.given.resolve().name
    which = default_selection(run, filters, f"{called}: ")
    return figures_of(run, which, called, lost, tainted, sketched)


def compare(
    a: Sequence[Figures],
    b: Sequence[Figures],
    *,
    limit: float = 0.05,
    everything: bool = False,
    conditions: Sequence[Condition] = (),
) -> ResultTable:
    """What has changed from the runs A to the runs B: a row per figure. A change below ``limit`` does not matter;
    ``everything``: the text has a line for each figure; ``conditions`` are judged (compare/gate.py). What was found is
    the `Comparison` and the findings about the conditions; the notes are doubts.
    """
    from opline_analyses.compare.result import result

    return result(a, b, limit, everything, conditions)


def read_baseline(path: Path) -> list[Figures]:
    """The runs of a baseline, for ``compare``. Raises OplineError."""
    from opline_analyses.compare import figures as of_baselines

    return of_baselines.read_baseline(path)


def baseline(runs: Sequence[Figures]) -> str:
    """The text of a baseline: a JSON document with the figures of these runs."""
    from opline_analyses.compare.figures import baseline_text

    return baseline_text(runs)
