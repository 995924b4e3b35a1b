# SPDX-License-Identifier: MIT
"""The analyses of block I/O: plain functions of a run, which give result tables. The commands print what they give.

``filters`` choose the I/Os (block/io_filter.py). Times in arguments are nanoseconds; texts are as on the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.block.io_filter import IoFilters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.base.result_table import ResultTable
    from opline_analyses.block.hist_result import HistOptions
    from opline_analyses.block.io_log import Lines
    from opline_analyses.counts.asked import Asked
    from opline_analyses.counts.collected import Collected
    from opline_analyses.counts.inputs import Kind
    from opline_analyses.runs.query import Answer
    from opline_analyses.runs.run import Run

ALL = IoFilters()


def hist(
    run: Run,
    filters: IoFilters = ALL,
    options: HistOptions | None = None,
    *,
    interval_ns: int | None = None,
    count: int | None = None,
) -> ResultTable:
    """Distributions of latencies: a row per interval, group and bucket. ``interval_ns``: a distribution for each, of
    ``count`` intervals at most; None: one of all. Raises UsageError.
    """
    from opline_analyses.block.hist_result import HistOptions, result

    return result(run, filters, options or HistOptions(), interval_ns, count)


def hist_of_counts(
    found: Collected, *, interval_ns: int | None = None, count: int | None = None, style: str = "table", unit: str
) -> ResultTable:
    """The same of another tool's histograms, in its own intervals or those that end in the same ``interval_ns``. Raises
    OplineError.
    """
    from opline_analyses.counts import histograms
    from opline_analyses.counts.collected import grouped

    shown = grouped(found, None if interval_ns is None else max(1, interval_ns // 1000), count)
    return histograms.result(found, shown, style, unit)


def hist_of_values(
    kind: Kind,
    given: Asked,
    filters: IoFilters,
    options: HistOptions,
    *,
    interval_ns: int | None = None,
    count: int | None = None,
) -> ResultTable:
    """The same of another tool's latencies, which no I/O is known of. Raises OplineError."""
    from opline_analyses.counts.histograms import of_values

    return of_values(kind, given, filters, options, interval_ns, count)


def iostat(
    run: Run,
    filters: IoFilters = ALL,
    *,
    interval_ns: int | None = None,
    count: int | None = None,
    style: str = "linux",
    by: str | None = "device",
) -> ResultTable:
    """Counts, bytes, times, queue and utilisation: a row per interval and group. ``by``: a key of io_filter.PER, as
    "cgroup"; None: all I/Os in one row. ``style``: whose columns the text has; with "extended", as of -x,
    merges are counted. Raises UsageError.
    """
    from opline_analyses.block.iostat_result import result

    return result(run, filters, interval_ns, count, style, by)


def top(
    run: Run,
    filters: IoFilters = ALL,
    *,
    by: str = "thread",
    interval_ns: int | None = None,
    count: int | None = None,
    sort: str = "ios",
    limit: int | None = None,
) -> ResultTable:
    """Who did the I/Os: a row per interval and group with counts, bytes, percentiles and the share of the time.
    ``by``: a key of io_filter.PER; ``sort``: ios, bytes, latency, name or share; ``limit``: rows of each interval.
    Raises UsageError.
    """
    from opline_analyses.block.top_result import result

    return result(run, filters, by, interval_ns, count, sort, limit)


def requests(
    run: Run, filters: IoFilters = ALL, *, owned: bool = False, order: str = "time", limit: int | None = None
) -> ResultTable:
    """A row per block request: steps, owner, queue met. ``owned``: only those that serve an op; ``order``: time, q2c,
    d2c or size. Raises UsageError.
    """
    from opline_analyses.block.io_filter import all_ids, chosen_ids, rows_of, tell_nothing
    from opline_analyses.block.io_sources import requests as source
    from opline_analyses.block.request_text import result
    from opline_analyses.block.requests import Wanted

    rows = rows_of(run, filters, source(parts=True))
    meant = chosen_ids(rows)
    sql, parameters = meant or all_ids(rows)
    if not run.row(f"SELECT count(*) FROM ({sql})", parameters)[0]:
        tell_nothing(run, rows)
    return result(run, Wanted(meant, owned, order, limit))


def outliers(
    run: Run,
    filters: IoFilters = ALL,
    *,
    threshold_ns: int | None = None,
    interval_ns: int | None = None,
    limit: int | None = 100,
    order: str = "latency",
    style: str = "table",
    rows_only: bool = False,
) -> ResultTable:
    """I/Os that take longer than ``threshold_ns`` (None: 10 times the median, or p99.9 where none does): a row for each
    of the first ``limit`` in the ``order`` latency, time, start or size. ``interval_ns``: the text has statistics for
    each; ``style``: whose text; ``rows_only``: no text and no document. Raises UsageError.
    """
    from opline_analyses.block.outliers_result import Asked, result

    return result(run, filters, Asked(threshold_ns, interval_ns, limit, order, style, rows_only))


def bitesize(run: Run, filters: IoFilters = ALL, *, limits_bytes: tuple[int, ...] | None = None) -> ResultTable:
    """How large the issued I/Os are: a row per bucket, whose limits increase (None: powers of two, from the least size
    to the greatest). Raises UsageError.
    """
    from opline_analyses.block.bitesize_result import of_issued

    return of_issued(run, filters, limits_bytes)


def burst(
    run: Run,
    filters: IoFilters = ALL,
    *,
    interval_ns: int | None = None,
    by: str = "bytes",
    words: Sequence[str] | None = None,
) -> ResultTable:
    """When far more happens than on average: a row per burst. ``by``: bytes, ios or waited; ``words``: how a command
    line opens the run. Raises UsageError.
    """
    from opline_analyses.block.burst_result import result

    return result(run, filters, interval_ns, by, [str(run.given)] if words is None else words)


def ios(
    run: Run, filters: IoFilters = ALL, *, sort: str = "time", limit: int | None = None, lines: Lines | None = None
) -> ResultTable:
    """Every I/O: a row for each, in the order ``sort`` (time, start, latency, size); what is left out is a note.
    ``lines``: how people read them (default: as iosnoop lists them). Raises UsageError.
    """
    from opline_analyses.block.io_log import of_rows

    return of_rows(run, filters, sort, limit, lines)


def btt(run: Run, filters: IoFilters = ALL, *, sort: str = "device", limit: int | None = None) -> ResultTable:
    """The block layer's intervals: a row per device and interval. ``sort``: device, ios or latency."""
    from opline_analyses.block.btt_result import of_requests

    return of_requests(run, filters, sort, limit)


def losses(run: Run, filters: IoFilters = ALL) -> ResultTable:
    """What is missing: a row per loss. What was found is how many of the I/Os that are meant can be measured, None
    where no filter is given. Raises UsageError.
    """
    from opline_analyses.block.losses_result import chosen_of, result

    return result(run, chosen_of(run, filters))


def sql(run: Run, query: str, filters: IoFilters = ALL, *, unrestricted: bool = False) -> Answer | None:
    """What DuckDB's SQL says of the run's tables, of which the filters' one has only the rows that are meant; None of a
    statement without rows. One statement that only asks, unless ``unrestricted``. The run is for this query alone:
    its connection stays locked. Raises OplineError, and DuckDB's errors.
    """
    from opline_analyses.block.io_table import narrow
    from opline_analyses.runs.functions import make_functions
    from opline_analyses.runs.query import answer

    run.con.make_views()
    make_functions(run)
    narrow(run, filters)
    return answer(run, query, unrestricted)
