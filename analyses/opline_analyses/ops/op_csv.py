# SPDX-License-Identifier: MIT
"""One row per op, one column per stage: for spreadsheets, gnuplot and pandas.

Takes a run and a selection, or a trace; gives CSV by RFC 4180 with LF at line ends. The native core writes the rows in
both cases (output/csv/op_csv.hpp): a run is fed by columns, never as Python objects per cell. The columns before the
stages are fixed; the stages follow in the order in which an op meets the stages; `unattributed_ns` is last. In each row
the stage columns and unattributed_ns sum to latency_ns. An empty cell is unknown, or a stage that the op does not have.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from opline import _core
from opline.correlation import temporary_file_failed
from opline.store.schema import ATTRIBUTES
from opline_analyses.base.result_table import csv_header, identifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO, Any, BinaryIO

    import numpy as np

    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

# column, meaning; the core writes these cells, in this order
FIXED: tuple[tuple[str, str], ...] = (
    ("op_id", "Number, from 0, in order of begin."),
    ("class", "Class in the model."),
    ("object", "The application's name of the object."),
    ("host", "Host of the trace."),
    ("pid", "Process of the begin point."),
    ("comm", "Name of the thread begin_tid."),
    ("begin_tid", "Thread of the begin point."),
    ("end_tid", "Thread of the end point."),
    ("begin_ns", "Time of the begin point, ns of the raw monotonic clock."),
    ("end_ns", "Time of the end point."),
    ("latency_ns", "end_ns - begin_ns."),
    ("client_ns", "The client's own figure, if known."),
    ("complete", "true: the end point was seen."),
    (
        "reason",
        "Why the op does not count: no_end, key_reused, ends_before_begin, tainted (lost events).",
    ),
    ("bytes", "Length of the data."),
    ("dev", "Device of the first block request, major:minor."),
    ("sector", "First sector of the first bio (512 bytes each)."),
    ("rw", "Kind of the first block request: read, write, discard, write_zeroes, flush, other."),
    *((a.column, a.meaning) for a in ATTRIBUTES),
)
# of the long form, in the core's order
STAGE_COLUMNS = (
    *("op_id", "seq", "stage", "kind", "from_point", "to_point", "begin_ns", "duration_ns", "tid", "request_id"),
)
_OP_NUMBERS = (
    *("op_id", "pid", "begin_tid", "end_tid", "begin_ns", "end_ns", "latency_ns", "length_bytes", "dev", "sector"),
    *("complete", "tainted", "unattributed_ns"),
    *(a.column for a in ATTRIBUTES),
)
_OP_TEXTS = ("class", "host", "comm", "reason")


UNATTRIBUTED = "unattributed_ns"


def stage_columns(names: Iterable[str]) -> list[str]:
    """The columns of stages: identifiers ending in _ns; `stage_` before a name of a fixed column."""
    fixed = {*(c for c, _ in FIXED), UNATTRIBUTED}
    found: list[str] = []
    for name in names:
        own = f"stage {name}" if f"{identifier(name)}_ns" in fixed else name
        found.append(f"{identifier(own, (column.removesuffix('_ns') for column in found))}_ns")
    return found


@contextmanager
def collector(stages: bool) -> Iterator[_core.OpCsv]:
    """The receiver of the ops, or with ``stages`` of their intervals, until ``write``; the surplus over the memory
    waits in a temporary file.
    """
    with _file_without_a_name() as file:
        yield _core.OpCsv(stages, file.fileno())


def _file_without_a_name() -> IO[bytes]:
    """The first attempt of ``tempfile.TemporaryFile``; importing tempfile takes 6 ms."""
    folder = next(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))), "/tmp")
    try:
        return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600), "r+b", buffering=0)
    except OSError:  # no such folder, or a file system without such files
        import tempfile

        return tempfile.TemporaryFile(prefix="opline-")


def feed(run: Run, which: Selection, rows: _core.OpCsv, *, stages: bool = False, client: bool = False) -> None:
    """The selected ops of a run. ``stages``: as ``rows`` was made; ``client``: the temporary table client_ops is there
    (client_log.py). Raises OplineError.
    """
    import numpy as np

    ids = run.con.execute(which.sql(), list(which.parameters)).fetchnumpy()["op_id"]
    (last,) = run.row("SELECT coalesce(max(op_id), -1) FROM all_ops")
    places = np.full(last + 1, -1, np.int64)
    places[ids] = ids if stages else np.arange(len(ids))
    number_of = cache(rows.add_text)
    _feed_stages(run, places, rows, number_of)
    if not stages:
        _feed_ops(run, places, rows, number_of)
        _feed_bios(run, places, rows, number_of)
        if client:
            _feed_clients(run, places, rows)


def _feed_stages(run: Run, places: np.ndarray[Any, Any], rows: _core.OpCsv, number_of: Any) -> None:
    import numpy as np

    from opline.store.arrays import ABSENT
    from opline_analyses.runs.columns import batches

    for batch in batches(run, "stages", STAGE_COLUMNS):
        ops = batch.numbers("op_id").filled(np.int64)
        texts = (batch.codes(c).numbers(number_of) for c in ("stage", "kind", "from_point", "to_point"))
        times = (batch.numbers(c).filled(np.int64, ABSENT) for c in ("begin_ns", "duration_ns", "tid", "request_id"))
        rows.stages(places[ops], ops, batch.numbers("seq").filled(np.uint32), *texts, *times)


def _feed_ops(run: Run, places: np.ndarray[Any, Any], rows: _core.OpCsv, number_of: Any) -> None:
    import numpy as np

    from opline.store.arrays import ABSENT
    from opline_analyses.runs.columns import batches

    for batch in batches(run, "ops", (*_OP_NUMBERS, *_OP_TEXTS, "object"), whole=("object",)):
        ops = [batch.numbers(c).filled(np.int64, ABSENT) for c in _OP_NUMBERS]
        texts = [batch.codes(c).numbers(number_of) for c in _OP_TEXTS]
        objects = batch.texts("object")
        if not (wanted := places[ops[0]] >= 0).all():
            ops, texts = ([column[wanted] for column in columns] for columns in (ops, texts))
            objects = objects.only(wanted)
        rows.ops((places[ops[0]], *ops), *texts, objects.ends, objects.data)


def _feed_bios(run: Run, places: np.ndarray[Any, Any], rows: _core.OpCsv, number_of: Any) -> None:
    from opline.store.arrays import read
    from opline_analyses.runs.columns import ranges

    for part in ranges(run, "links", "op_id", "bio_id"):
        first = run.con.sql(
            f"""SELECT l.op_id, min(b.bio_id) AS bio_id, arg_min(b.kind, b.bio_id) AS kind
                FROM (SELECT * FROM links WHERE op_id BETWEEN {part.first} AND {part.last}) l
                JOIN (SELECT * FROM bios WHERE bio_id BETWEEN {part.least} AND {part.most}) b USING (bio_id)
                GROUP BY l.op_id"""
        )
        for batch in read(first):
            ops, bios = (batch.numbers(c).values for c in ("op_id", "bio_id"))
            wanted = places[ops] >= 0
            kinds = batch.codes("kind").numbers(number_of)
            rows.bios(places[ops[wanted]], bios[wanted], kinds[wanted])


def _feed_clients(run: Run, places: np.ndarray[Any, Any], rows: _core.OpCsv) -> None:
    from opline.store.arrays import read

    found = run.con.sql("SELECT op_id, client_ns::BIGINT AS client_ns FROM client_ops WHERE client_ns IS NOT NULL")
    for batch in read(found):
        ops, values = (batch.numbers(c).values for c in ("op_id", "client_ns"))
        wanted = places[ops] >= 0
        rows.clients(places[ops[wanted]], values[wanted])


def write(rows: _core.OpCsv, out: BinaryIO, *, stages: bool = False) -> None:
    """Writes the header and all rows. ``stages``: as ``rows`` was made. Raises OplineError."""
    if stages:
        out.write(csv_header(STAGE_COLUMNS))
    else:
        out.write(csv_header([*(c for c, _ in FIXED), *stage_columns(rows.stages_in_order()), UNATTRIBUTED]))
    while chunk := _next(rows):
        out.write(chunk)


def _next(rows: _core.OpCsv) -> bytes:
    try:
        return rows.rows()
    except OSError as error:
        raise temporary_file_failed(error) from error
